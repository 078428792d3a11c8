"""Links between layers that were fitted to the data each by itself."""

from __future__ import annotations

from functools import reduce

import numpy as np

from deepmf.constraints import Constraint, Nonnegative, Simplex, Unconstrained
from deepmf.core.datafit import SQUARED
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import State
from deepmf.core.terms import DataTerm
from deepmf.data.panels import Coding, DensePanels
from deepmf.fitting.calibration import UNPENALIZED, Settled, alone, settled
from deepmf.fitting.problem import Layer, Problem
from deepmf.fitting.records import Moment
from deepmf.fitting.sweep import Sweep
from deepmf.losses import Multilayer
from deepmf.solvers import FastProjectedGradient
from deepmf.solvers.positive import raised

_ITER, _TOL = 1000, 1e-6
"""Limits for a link."""

_SWEEPS, _SETTLED, _INNER = 2000, 1e-6, (10, 0.01)
"""Limits for the fit of the components before."""

_TOLERATED_VIOLATION = 1e-9
"""Share of its largest entry that a matrix of a set may be off by."""


def append_linked(now: Moment, problem: Problem, W: Array, F: Array) -> None:
    """Add a layer that was fitted flat to the data, with codes F.

    Its H is ``argmin ||F - H Ht||`` with the codes Ht of the layer before, where the model
    compares layers with the data, and otherwise ``argmin ||W_{l-1} - W_l H||``.
    """
    s, k = now.state, now.state.depth
    H: Array
    if not k:
        H = np.empty((len(F), 0))
        now.layer_codes.append(F)
    elif problem.loss.errors == "data":
        Ht = reduce(lambda codes, H: H @ codes, s.H[1:], now.layer_codes[0])
        H = link(F, Ht, problem.layers[k].constraint_H)
        if problem.keeps_zeros:
            H = raised(H, problem.layers[k].constraint_H)
    else:
        W, H, now.settled[k] = link_components(s.W[k - 1], W, problem.layer(k))
    s.H.append(H)
    s.W.append(W)
    if s.depth < len(problem.layers):
        now.sizes.append(problem.fit(s.depth).size(W))


def append_codes(now: Moment, problem: Problem, Z: Array, H: Array, swept: bool) -> None:
    """Add a layer over codes, in the scale of the codes before it.

    Where all layers are ``swept`` together next, these sweeps must begin in the sets of Z and H,
    which the new scale may have left. Where none are, sets that no new scale suits have the codes
    before as they are.
    """
    s, layer = now.state, problem.layers[now.state.depth]
    if s.scales and (swept or _may_scale(layer)):
        Z = s.scales[-1][:, None] * Z
        scales = layer.constraint_W.scales(Z)
        if scales is not None:
            Z, H = layer.constraint_W.project(Z / scales), H * scales[:, None]
        if swept:
            Z, H = _inside(Z, layer.constraint_W), _inside(H, layer.constraint_H)
    s.W.append(Z)
    s.H.append(np.empty((len(H), 0)))
    now.layer_codes.append(H)
    if s.depth < len(problem.layers):
        means = np.mean(np.abs(H), axis=1)
        scaled = swept or _may_scale(problem.layers[s.depth])
        s.scales.append(np.where((means > 0) & scaled, means, 1.0))
        fit = SQUARED if problem.loss.joint else problem.fit(s.depth)  # see `errors.measure`
        now.sizes.append(fit.size(H / s.scales[-1][:, None]))


def _may_scale(layer: Layer) -> bool:
    """Whether Z and H stay in their sets when rows of Z are scaled, and H makes up for it."""
    Z, H = layer.constraint_W, layer.constraint_H
    return Z.cone or (isinstance(Z, Simplex) and H.cone)


def _inside(M: Array, constraint: Constraint) -> Array:
    """M itself if it lies in the set, or else its projection."""
    return constraint.project(M) if constraint.violation(M) > _TOLERATED_VIOLATION else M


def link_codes(now: Moment, problem: Problem, F: Array) -> Array:
    """``Z = argmin ||H / s - Z F||`` for the codes H before and those of a flat fit, F.

    The scale that a set asks for comes later.
    """
    before = now.layer_codes[-1] / now.state.scales[-1][:, None]
    own = problem.layers[now.state.depth].constraint_W
    free: Constraint = Nonnegative() if own.nonnegative else Unconstrained()
    return link(before, F, own if own.cone else free)


def link(target: Array, codes: Array, constraint: Constraint) -> Array:
    """``argmin ||target - M codes||`` over the matrices M of a set."""
    M = constraint.project(np.linalg.lstsq(codes.T, target.T, rcond=None)[0].T)
    q = Quadratic.of(B=codes @ codes.T, C=target @ codes.T)
    return FastProjectedGradient().improve(q, constraint, M, _ITER, _TOL)


def link_components(before: Array, W: Array, problem: Problem) -> tuple[Array, Array, Settled]:
    """W_l, ``H = argmin ||W_{l-1} - W_l H||``, and a layer's fit to W_{l-1} without penalties.

    The fit begins at W_l; its error and the penalties measured by it are those to expect of the
    layer. With as many components as features it would leave no error, and W_l stays as it is.
    Where H has a scale of its own, W_l comes in that of the data, and is given that of W_{l-1}.
    """
    panels, constraint = DensePanels(np.ascontiguousarray(before)), problem.layers[0].constraint_H
    if problem.layers[0].constraint_W.cone and not constraint.cone:
        W = W * (_size(before) / _size(W))
    if problem.keeps_zeros:
        W = raised(W, problem.layers[0].constraint_W)
    coding = Coding((DataTerm(1.0, W, problem.fit(0)),), constraint)
    panels.begin(coding, positive=problem.keeps_zeros)
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
