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


def link_components(before: Array, W: Array, problem: Problem) -> tuple[Array, Settled]:
    """``H = argmin ||W_{l-1} - W_l H||``, and how well a layer fits W_{l-1} without penalties.

    The fit begins at W_l, of which it tells how large an error and which penalties to expect.
    """
    panels, constraint = DensePanels(np.ascontiguousarray(before)), problem.layers[0].constraint_H
    coding = Coding.of(W, constraint)
    panels.begin(coding)
    answer = panels.update(coding, FastProjectedGradient(), _ITER, _TOL)
    H = panels.codes.H.copy()
    s = State([W], [np.empty((len(H), 0))], answer)
    plain = alone(1, 0, UNPENALIZED)
    sweep = Sweep(panels, s, problem, Multilayer(), plain, [0], *_INNER)
    value = sweep.objective(sweep.measure())
    for _ in range(_SWEEPS):
        sweep.run()
        last, value = value, sweep.objective(sweep.measure())
        if last - value <= _SETTLED * value:
            break
    return H, settled(panels, s, problem, 0)
