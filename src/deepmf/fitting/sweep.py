"""One sweep through the blocks, and the value of what it decreases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.core.state import State
from deepmf.data.panels import Coding, Panels
from deepmf.fitting.problem import Problem
from deepmf.losses import Loss

_GUARD = 1e-7
"""Relative squared error below which traces have too few digits left to follow a slow decrease."""

Kind = Literal["H", "W"]
Block = tuple[Kind, int]


@dataclass(frozen=True)
class Errors:
    """Squared errors of both kinds, one per layer."""

    layer: Array
    """||W_{l-1} - W_l H_l||^2."""
    data: Array
    """||X - W_l H_l...H_1||^2."""


class Calibration(NamedTuple):
    """What a sweep fixes when it is made."""

    weights: Array
    strengths_W: list[float]
    strengths_H: list[float]


def squared_errors(panels: Panels, s: State) -> Errors:
    """From traces where these keep their digits, from residuals where they would not.

    ``||X||^2 - 2 <B, X H_1'> + <B'B, H_1 H_1'>`` with B = W_l H_l...H_2 cancels as the fit becomes
    exact; below the guard the panels measure the residual itself. Where not every entry counts, the
    errors are over those that do, and residuals are all there is.
    """
    bases = [s.chain(k, 0) for k in range(s.depth)]
    data = np.zeros(s.depth)
    if panels.complete:
        data[:] = [s.norm2 + np.sum(B * (B @ s.data.HHt - 2 * s.data.XHt)) for B in bases]
    doubtful = np.flatnonzero(data < _GUARD * s.norm2)
    if len(doubtful):
        data[doubtful] = panels.residuals2([bases[k] for k in doubtful])
    deeper = [np.sum((s.W[k - 1] - s.W[k] @ s.H[k]) ** 2) for k in range(1, s.depth)]
    return Errors(np.array([data[0], *deeper]), data)


def first_coding(s: State, problem: Problem, loss: Loss, calibration: Calibration) -> Coding:
    """H_1's problem."""
    A, G = loss.first(s, calibration.weights)
    layer = problem.layers[0]
    strength = calibration.strengths_H[0]
    return Coding(A, G, layer.constraint_H, layer.regularizer_H, strength)


class Sweep:
    """Updates the blocks of some layers in turn: H_l, then W_l (Algorithm 3).

    Weights are fixed when the sweep is made, from the state at that moment or as in another sweep
    ``like`` it; from then on every block update decreases ``objective`` (for a consistent loss).
    """

    def __init__(
        self,
        panels: Panels,
        state: State,
        problem: Problem,
        loss: Loss,
        sizes: Sequence[float],
        layers: Sequence[int],
        inner_iter: int,
        inner_tol: float,
        like: Calibration | None = None,
    ) -> None:
        self.panels, self.state, self.problem, self.loss = panels, state, problem, loss
        self.layers = layers
        self.inner_iter, self.inner_tol = inner_iter, inner_tol
        self.momentum: float | None = None  # of H_1, see `Coding`
        self.weights: Array
        self.strengths_W: list[float]
        self.strengths_H: list[float]
        if like is None:
            self._calibrate(0.5 * np.asarray(sizes[: state.depth], dtype=float))
        else:
            self.weights, self.strengths_W, self.strengths_H = like
        self.value_weights = np.where(np.isin(np.arange(state.depth), layers), self.weights, 0.0)

    def _calibrate(self, sizes: Array) -> None:
        """Layer weights and penalty strengths from the errors now."""
        errors = squared_errors(self.panels, self.state)
        own = 0.5 * (errors.layer if self.loss.errors == "layer" else errors.data)
        self.weights = self.loss.weights(own, sizes)
        self.strengths_W = [self._strength("W", k, own[k]) for k in range(self.state.depth)]
        self.strengths_H = [self._strength("H", k, own[k]) for k in range(self.state.depth)]

    @property
    def calibration(self) -> Calibration:
        """Layer weights and penalty strengths."""
        return Calibration(self.weights, self.strengths_W, self.strengths_H)

    @property
    def blocks(self) -> list[Block]:
        """The blocks in the order of their updates."""
        return [(kind, k) for k in self.layers for kind in ("H", "W")]

    def run(self) -> None:
        """Update every block once."""
        for block in self.blocks:
            self.update(block)

    def update(self, block: Block) -> None:
        """Improve one factor, all others fixed."""
        kind, k = block
        s = self.state
        if kind == "H" and k == 0:
            coding = replace(self.coding(), momentum=self.momentum)
            s.data = self.panels.update(
                coding, self.problem.solver, self.inner_iter, self.inner_tol
            )
            return
        factors = s.factors(kind)
        q = (self.loss.W if kind == "W" else self.loss.H)(s, k, self.weights)
        constraint, penalty = self.problem.layers[k].of(kind)
        if penalty is not None:
            q = q + self._strengths(kind)[k] * penalty.majorize(factors[k])
        factors[k] = self.problem.solver.improve(
            q, constraint, factors[k], self.inner_iter, self.inner_tol
        )

    def coding(self) -> Coding:
        """H_1's problem at the current state."""
        coding = first_coding(self.state, self.problem, self.loss, self.calibration)
        if self.panels.complete:
            return coding
        return replace(coding, terms=tuple(self.loss.terms(self.state, self.weights)))

    def objective(self, errors: Errors) -> float:
        """The loss plus the penalties of the layers being updated."""
        penalties = sum(
            self._strengths(kind)[k] * self._penalty(kind, k) for kind, k in self.blocks
        )
        return self.fit_term(errors) + penalties

    def fit_term(self, errors: Errors) -> float:
        """The loss alone."""
        return self.loss.value(errors.layer, errors.data, self.value_weights)

    def _strengths(self, kind: Kind) -> list[float]:
        return self.strengths_W if kind == "W" else self.strengths_H

    def _penalty(self, kind: Kind, k: int) -> float:
        """The regulariser's value at a factor, without its strength; 0 where there is none."""
        _, penalty = self.problem.layers[k].of(kind)
        if penalty is None:
            return 0.0
        if kind == "W":
            return penalty.value(self.state.W[k])
        return self.state.data.penalty if k == 0 else penalty.value(self.state.H[k])

    def _strength(self, kind: Kind, k: int, error: float) -> float:
        """weight_l * strength, the latter measured against the layer's error now."""
        _, penalty = self.problem.layers[k].of(kind)
        if penalty is None:
            return 0.0
        strength = penalty.strength(self._penalty(kind, k), float(error))
        return float(self.weights[k] * strength)
