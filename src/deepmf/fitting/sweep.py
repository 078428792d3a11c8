"""One sweep through the blocks, and the objective that it decreases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from deepmf.core.state import State
from deepmf.core.terms import Factor, H, Model, W
from deepmf.data.panels import Coding, Panels
from deepmf.fitting.calibration import Calibration, penalty_value
from deepmf.fitting.errors import Errors, measure
from deepmf.fitting.problem import Problem
from deepmf.losses import Loss
from deepmf.regularizers import Regularizer


class Sweep:
    """Updates the blocks of some layers in turn: H_l, then W_l (Algorithm 3).

    Weights are fixed, so every block update decreases `objective` (for a consistent loss).

    Parameters
    ----------
    panels : Panels
        The data side.
    state : State
        The small side; it changes with every update.
    problem : Problem
        Constraints, penalties and the solver.
    loss : Loss
        The model.
    calibration : Calibration
        Layer weights and penalty strengths.
    layers : sequence of int
        The layers whose blocks are updated.
    inner_iter, inner_tol
        Limits of the solver in one block.
    """

    def __init__(
        self,
        panels: Panels,
        state: State,
        problem: Problem,
        loss: Loss,
        calibration: Calibration,
        layers: Sequence[int],
        inner_iter: int,
        inner_tol: float,
    ) -> None:
        self.panels, self.state, self.problem, self.loss = panels, state, problem, loss
        self.calibration, self.layers = calibration, layers
        self.inner_iter, self.inner_tol = inner_iter, inner_tol
        self.ahead: float | None = None
        """Extrapolation of H_1, see `Coding.ahead`."""
        self.blocks = [factor for k in layers for factor in (H(k), W(k))]
        """The factors in the order of their updates; ``H(0)`` is all codes on the data side."""
        if state.over_codes:
            self.blocks = [H(0), *(W(k) for k in layers)]

    @cached_property
    def penalties(self) -> dict[Factor, tuple[float, Regularizer]]:
        """Strength and penalty of the factors that have one, in absolute terms."""
        return self.calibration.penalties_on(self.problem, self.blocks, self.state)

    @cached_property
    def model(self) -> Model:
        """The terms of each block."""
        depth, weights = self.state.depth, self.calibration.weights
        if self.state.over_codes:
            return self.loss.model_over_codes(depth, weights, self.problem.fits)
        return self.loss.model(depth, weights, self.layers, self.problem.fits)

    def run(self) -> None:
        """Update every block once."""
        for factor in self.blocks:
            self.update(factor)

    def update(self, factor: Factor) -> None:
        """Improve one factor, all others fixed."""
        s, solver = self.state, self.problem.solver
        if factor == H(0):
            s.data = self.panels.update(self.coding(), solver, self.inner_iter, self.inner_tol)
            return
        q = self.model.block(s, factor)
        constraint, _ = self.problem.layers[factor.layer].of(factor.kind)
        if factor in self.penalties:
            strength, penalty = self.penalties[factor]
            q = q + strength * penalty.majorize(s[factor])
        s[factor] = solver.improve(q, constraint, s[factor], self.inner_iter, self.inner_tol)

    def coding(self) -> Coding:
        """H_1's problem at the current state."""
        strength, penalty = self.penalties.get(H(0), (0.0, None))
        bases, coupling = self.model.bases(self.state), self.model.coupling(self.state)
        constraint = self.problem.codes_constraint
        return Coding(bases, constraint, penalty, strength, self.ahead, coupling)

    def measure(self, whole: bool = True) -> Errors:
        """Errors of all layers, and the values of the model's terms; see `errors.measure`."""
        return measure(self.panels, self.state, self.model.terms, self.problem.fits, whole)

    def fit_term(self, errors: Errors) -> float:
        """The loss without penalties."""
        return float(np.dot([t.weight for t in self.model.terms], errors.terms))

    def objective(self, errors: Errors) -> float:
        """The loss plus the penalties of the layers being updated."""
        penalties = sum(
            strength * penalty_value(self.state, factor, penalty)
            for factor, (strength, penalty) in self.penalties.items()
        )
        return self.fit_term(errors) + penalties
