"""Layer weights and penalty strengths, fixed from the errors at the start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.core.state import State
from deepmf.core.terms import Factor, H, W
from deepmf.data.panels import Panels
from deepmf.fitting.errors import measure
from deepmf.fitting.problem import Problem
from deepmf.losses import Loss


class Calibration(NamedTuple):
    """Weights that stay as they are while the sweeps of a stage decrease the objective."""

    weights: Array
    """Weight of each layer's term."""
    strengths_W: list[float]
    """``weight_l * strength`` of the penalty on each W."""
    strengths_H: list[float]
    """``weight_l * strength`` of the penalty on each H."""

    def strength(self, factor: Factor) -> float:
        """Factor in front of the penalty on one factor."""
        return (self.strengths_W if factor.kind == "W" else self.strengths_H)[factor.layer]


def calibrate(
    panels: Panels, s: State, problem: Problem, loss: Loss, sizes: list[float]
) -> Calibration:
    """Weights and strengths from the errors now and the sizes of what the layers approximate."""
    errors = measure(panels, s)
    own = 0.5 * (errors.layer if loss.errors == "layer" else errors.data)
    weights = loss.weights(own, 0.5 * np.asarray(sizes[: s.depth], dtype=float))

    def strength(factor: Factor) -> float:
        _, penalty = problem.layers[factor.layer].of(factor.kind)
        if penalty is None:
            return 0.0
        value = penalty_value(s, problem, factor)
        return float(weights[factor.layer] * penalty.strength(value, float(own[factor.layer])))

    layers = range(s.depth)
    return Calibration(weights, [strength(W(k)) for k in layers], [strength(H(k)) for k in layers])


def penalty_value(s: State, problem: Problem, factor: Factor) -> float:
    """The regularizer's value at a factor, without its strength; 0 where there is none."""
    _, penalty = problem.layers[factor.layer].of(factor.kind)
    if penalty is None:
        return 0.0
    return s.data.penalty if factor == H(0) else penalty.value(s[factor])
