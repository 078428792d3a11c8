"""Layer weights and penalties in absolute terms, fixed for a run of sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from deepmf.core.datafit import SquaredError
from deepmf.core.quadratic import Array
from deepmf.core.state import State
from deepmf.core.terms import Factor, H, W
from deepmf.data.matrix import as_numpy
from deepmf.data.panels import Panels
from deepmf.fitting.errors import Errors, measure
from deepmf.fitting.problem import Problem
from deepmf.losses import Loss
from deepmf.regularizers import Regularizer
from deepmf.regularizers.base import LayerFit
from deepmf.regularizers.stacked import Part, Stacked

_SAMPLE = 4096
"""Columns of X from which the effective dimension of a residual is estimated."""

Attributes = dict[str, Any] | None
"""Attributes that `Regularizer.absolute` set on the penalty of a factor; None: no penalty."""

UNPENALIZED: dict[str, Attributes] = {"H": {"weight": 0.0}, "W": None}
"""No penalties; that on H_1, which only the data side can evaluate, stays with strength 0."""


class Settled(NamedTuple):
    """A layer's fit on its own, without penalties where these are measured by it."""

    error: float
    """1/2 ||W_{l-1} - W_l H_l||^2, see `settled` for layers with as many components as features."""
    alone: dict[str, Attributes]
    """Penalties on "H" and "W" while the layer is fitted alone."""
    joint: dict[str, Attributes]
    """Penalties on "H" and "W" in the model, whose errors may be those of the data."""


class Calibration(NamedTuple):
    """Weights that stay as they are while the sweeps of a stage decrease the objective."""

    weights: Array
    """Weight of each layer's term."""
    penalties: list[dict[str, Attributes]]
    """Penalties on "H" and "W" of each layer."""

    def penalty(self, problem: Problem, factor: Factor) -> Regularizer | None:
        """The penalty on a factor in absolute terms."""
        _, penalty = problem.layers[factor.layer].of(factor.kind)
        attributes = self.penalties[factor.layer][factor.kind]
        return None if penalty is None or attributes is None else penalty.having(attributes)

    def penalties_on(
        self, problem: Problem, factors: Sequence[Factor], s: State
    ) -> dict[Factor, tuple[float, Regularizer]]:
        """Strength and penalty of those factors that have one."""
        known = {factor: self.penalty(problem, factor) for factor in factors}
        found = {f: (self.strength(problem, f), p) for f, p in known.items() if p is not None}
        if not s.over_codes:
            return found
        parts = [
            Part(s.rows(k), self.strength(problem, H(k)), penalty)
            for k in range(s.depth)
            if (penalty := self.penalty(problem, H(k))) is not None
        ]
        found.pop(H(0), None)
        return {H(0): (1.0, Stacked(parts, s.rows(s.depth - 1).stop)), **found} if parts else found

    def penalty_on_codes(self, problem: Problem, s: State, codes: Array) -> float:
        """The value of the penalties on the codes of all layers, for depth over codes."""
        _, penalty = self.penalties_on(problem, [H(0)], s).get(H(0), (0.0, None))
        return 0.0 if penalty is None else penalty.value(codes)

    def strength(self, problem: Problem, factor: Factor) -> float:
        """Factor in front of the value of the penalty on a factor: ``weight_l * weight``."""
        penalty = self.penalty(problem, factor)
        return 0.0 if penalty is None else float(self.weights[factor.layer] * penalty.weight)


def settled(panels: Panels, s: State, problem: Problem, k: int) -> Settled:
    """The error of a layer's fit, the state's last, and the penalties measured by it.

    With as many components as features the error says little of the noise: its start fits some of
    it. It then counts as the geometric mean of that error and of the one if samples were unmixed.
    """
    errors = measure(panels, s, fits=problem.fits)
    alone = _penalties(panels, s, problem, k, "layer", errors)
    same = problem.loss.errors == "layer" or k == 0
    joint = alone if same else _penalties(panels, s, problem, k, "data", errors)
    error = float(errors.layer[k])
    if problem.overfitted(k, panels.shape) and type(problem.fit(k)) is SquaredError:
        error = (error * _unmixed_error(panels, s.W[k])) ** 0.5
    return Settled(0.5 * error, alone, joint)


def _unmixed_error(panels: Panels, W: Array) -> float:
    """sum_j min over k and h of ||x_j - w_k h||^2: each sample has the component nearest to it."""
    norms = np.linalg.norm(W, axis=0)
    along = panels.dot(W / np.where(norms > 0, norms, 1))
    return max(panels.norm2 - float(np.sum(np.max(along, axis=0, initial=0.0) ** 2)), 0.0)


def alone(depth: int, k: int, penalties: dict[str, Attributes]) -> Calibration:
    """Weights for fitting one of some layers by itself."""
    return Calibration(np.ones(depth), [penalties if i == k else UNPENALIZED for i in range(depth)])


def joint(
    panels: Panels, s: State, problem: Problem, loss: Loss, sizes: list[float], known: list[Settled]
) -> Calibration:
    """Weights for fitting all layers, from the fits of each alone or else from the errors now."""
    layers = range(s.depth)
    errors = measure(panels, s, fits=problem.fits)
    own = 0.5 * (errors.layer if loss.errors == "layer" else errors.data)
    if known and loss.errors == "layer" and not s.over_codes:
        own = np.array([layer.error for layer in known])
    weights = loss.weights(own, 0.5 * np.asarray(sizes[: s.depth], dtype=float))
    settled = known[:1] if s.over_codes else known  # deeper layers were linked since
    penalties = [
        settled[k].joint
        if k < len(settled)
        else _penalties(panels, s, problem, k, loss.errors, errors)
        for k in layers
    ]
    return Calibration(weights, penalties)


def penalty_value(s: State, factor: Factor, penalty: Regularizer) -> float:
    """The regularizer's value at a factor, without its strength."""
    return s.data.penalty if factor == H(0) else penalty.value(s[factor])


def _penalties(
    panels: Panels, s: State, problem: Problem, k: int, against: str, errors: Errors
) -> dict[str, Attributes]:
    """The penalties on both factors of a layer, measured by its fit as it is now."""
    error = 0.5 * float((errors.layer if against == "layer" else errors.data)[k])

    def residual() -> Array:
        if against == "layer" and k and s.over_codes:
            return np.eye(len(s.W[k]))  # only fits of layers alone form residuals of codes
        if against == "layer" and k:
            return problem.fit(k).residual(s.W[k - 1], s.W[k] @ s.H[k])
        n = panels.shape[1]
        some = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp))
        if type(problem.fit(k)) is SquaredError:
            return panels.residuals(some, s.basis(k))
        P = s.basis(k) @ as_numpy(panels.codes.H[:, some]).astype(np.float64)
        return problem.fit(k).residual(panels.columns(some), P)

    def absolute(factor: Factor) -> Attributes:
        _, penalty = problem.layers[k].of(factor.kind)
        if penalty is None:
            return None
        M: Array | None = None
        if s.over_codes and factor.kind == "H":
            value = penalty.value(as_numpy(panels.codes.H)[s.rows(k)].astype(np.float64))
        else:
            M = None if factor == H(0) else s[factor]
            value = penalty_value(s, factor, penalty)
        overfitted = problem.overfitted(k, panels.shape)
        return penalty.absolute(LayerFit(M, value, error, residual, overfitted))

    return {"H": absolute(H(k)), "W": absolute(W(k))}
