"""Links between layers that were fitted to the data each by itself."""

from __future__ import annotations

import numpy as np

from deepmf.constraints import Constraint
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import State
from deepmf.data.panels import Coding, DensePanels
from deepmf.fitting.calibration import UNPENALIZED, Settled, alone, settled
from deepmf.fitting.problem import Problem
from deepmf.fitting.sweep import Sweep
from deepmf.losses import Multilayer
from deepmf.solvers import FastProjectedGradient

_ITER, _TOL = 1000, 1e-6
"""Limits for a link."""

_SWEEPS, _SETTLED, _INNER = 2000, 1e-6, (10, 0.01)
"""Limits for the fit of the components before."""


def link(target: Array, codes: Array, constraint: Constraint) -> Array:
    """``argmin ||target - M codes||`` over the matrices M of a set."""
    M = constraint.project(np.linalg.lstsq(codes.T, target.T, rcond=None)[0].T)
    q = Quadratic.of(B=codes @ codes.T, C=target @ codes.T)
    return FastProjectedGradient().improve(q, constraint, M, _ITER, _TOL)


def link_components(before: Array, W: Array, problem: Problem) -> tuple[Array, Array, Settled]:
    """W_l, ``H = argmin ||W_{l-1} - W_l H||``, and a layer's fit to W_{l-1} without penalties.

    The fit begins at W_l, of which it tells how large an error and which penalties to expect. With
    as many components as features a fit would leave no error to tell of, and W_l stays as it is.
    Where H has a scale of its own, W_l comes in that of the data, and is given that of W_{l-1}.
    """
    panels, constraint = DensePanels(np.ascontiguousarray(before)), problem.layers[0].constraint_H
    if problem.layers[0].constraint_W.cone and not constraint.cone:
        W = W * (_size(before) / _size(W))
    coding = Coding.of(W, constraint)
    panels.begin(coding)
    answer = panels.update(coding, FastProjectedGradient(), _ITER, _TOL)
    H = panels.codes.H.copy()
    s = State([W.copy()], [np.empty((len(H), 0))], answer)
    plain = alone(1, 0, UNPENALIZED)
    sweep = Sweep(panels, s, problem, Multilayer(), plain, [0], *_INNER)
    value = sweep.objective(sweep.measure())
    for _ in range(0 if problem.overfitted(0, before.shape) else _SWEEPS):
        sweep.run()
        last, value = value, sweep.objective(sweep.measure())
        if last - value <= _SETTLED * value:
            break
    return W, H, settled(panels, s, problem, 0)


def _size(W: Array) -> float:
    """Root of the mean squared norm of columns; 1 where all are zero."""
    return float(np.linalg.norm(W)) / W.shape[1] ** 0.5 or 1.0
