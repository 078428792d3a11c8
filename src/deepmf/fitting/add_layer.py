"""Adding layers: each starts from the basis of the one before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepmf._utils.messages import counted, setting
from deepmf._utils.threads import single_blas
from deepmf.constraints import Constraint
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import State
from deepmf.core.terms import DataTerm
from deepmf.data.matrix import as_numpy
from deepmf.data.panels import Coding, DensePanels, Panels
from deepmf.data.validation import check_scale, dense
from deepmf.fitting.problem import Problem
from deepmf.init import Start, StartError
from deepmf.solvers import FastProjectedGradient
from deepmf.solvers.positive import raised

_CODING_ITER = 100
_CODING_TOL = 1e-3
_TOLERATED_VIOLATION = 1e-6


@dataclass(frozen=True)
class Given:
    """Factors the user starts from."""

    W: list[Array]
    H: list[Array]


def add_layer(
    panels: Panels,
    s: State,
    problem: Problem,
    start: Start | Given,
    rng: np.random.Generator,
    number: int | None = None,
) -> None:
    """Append W_l and H_l to the state (H_1 to the panels), feasible for the layer's constraints.

    ``number`` is the layer's in messages, from 1, where it is not that in the state.
    """
    k = s.depth
    number = k + 1 if number is None else number
    data = panels if k == 0 else DensePanels(np.ascontiguousarray(s.W[k - 1]))
    if isinstance(start, Given):
        W = start.W[k]
        data.codes.set(start.H[k])
        inner_iter = 0
    else:
        W = _first_basis(data, problem, k, start, rng, number)
        inner_iter = _CODING_ITER
    layer = problem.layers[k]
    start_at = Coding.of(W, layer.constraint_H, layer.regularizer_H)
    coding = replace(start_at, terms=(DataTerm(1.0, W, problem.fit(k)),))
    # Least-squares codes by steps of the solver's kind; one that cannot leave zero makes its own.
    own = problem.solver
    solver = own if own.keeps_zeros else FastProjectedGradient(getattr(own, "scaled", True))
    with single_blas():
        if inner_iter:
            data.begin(start_at, positive=problem.keeps_zeros)
        answer = data.update(coding, solver, inner_iter, _CODING_TOL)
    if inner_iter and isinstance(q := answer.terms[0], Quadratic) and q.lipschitz() == 0:
        raise StartError(
            f"Layer {number}: every code under the start's basis is zero, so nothing could move. "
            f"Signed data need a signed basis: {setting(init='snpa')} or {setting(init='random')} "
            f"with {setting(constraint_W='none')}."
        )
    s.W.append(W)
    if k == 0:
        s.data = answer
        s.H.append(np.empty((layer.rank, 0)))
    else:
        s.H.append(data.codes.H)


def check_not_zero(before: Array, number: int) -> None:
    """Refuse to add a layer to one that has shrunk to zero."""
    if not before.any():
        raise ValueError(
            f"Layer {number} shrank to zero, so there is nothing for layer {number + 1} to work "
            f"with. Lower the weights of its regularizers, or fix its scale with a simplex "
            f"constraint."
        )


def _first_basis(
    data: Panels, problem: Problem, k: int, start: Start, rng: np.random.Generator, number: int
) -> Array:
    """The start's basis, rescaled and projected onto the layer's set."""
    layer = problem.layers[k]
    try:
        W = start(data, layer.rank, rng)
    except StartError as error:
        raise StartError(f"Layer {number}: {error.args[0].marked}") from None
    W = _checked(f"init's W of layer {number}", W, (data.shape[0], layer.rank), data.dtype)
    W = layer.constraint_W.arrange(W)
    scales = layer.constraint_W.scales(W)
    W = _nearest(W if scales is None else W / scales, layer.constraint_W)
    if problem.keeps_zeros:
        W = raised(W, layer.constraint_W)
    if not W.any():
        raise StartError(
            f"Layer {number}: the start's basis is zero once projected onto "
            f"{layer.constraint_W!r}. Use another {setting('init')}, or a constraint that the data "
            f"can meet."
        )
    return W


def _nearest(W: Array, constraint: Constraint) -> Array:
    """W projected; columns that vanish (negative data, nonnegative W) are tried the other way."""
    lost = ~constraint.project(W).any(axis=0)
    return constraint.project(np.where(lost, -W, W))


def check_given(Ws: object, Hs: object, problem: Problem, panels: Panels) -> Given:
    """The user's factors with shapes, finiteness and feasibility checked, and projected exactly.

    Where a set asks for a scale that a W has not, W_l D^-1 and D H_l are taken, and H_{l+1} D^-1
    (for depth over codes D Z_{l+1}).
    For a single layer the two matrices themselves will do.
    """
    depth = len(problem.layers)
    lists: list[Any] = [
        [M] if depth == 1 and isinstance(M, np.ndarray) and M.ndim == 2 else M
        for M in (as_numpy(Ws), as_numpy(Hs))
    ]
    for name, factors in zip("WH", lists):
        if not isinstance(factors, list | tuple) or len(factors) != depth:
            count = len(factors) if isinstance(factors, list | tuple) else "no list of"
            raise ValueError(
                f"init gives {count} {name} for {counted(depth, 'layer')}; "
                f"expected a pair of lists (Ws, Hs) with one matrix of each per layer."
            )
    m, n = panels.shape
    codes = problem.over_codes
    aboves = [m if codes else n, *problem.ranks]
    given = Given([], [])
    before: Array = np.ones(aboves[0])
    for k, layer in enumerate(problem.layers):
        what = [f"init's {name} of layer {k + 1}" for name in "WH"]
        tall, wide = (aboves[k], n) if codes else (m, aboves[k])
        W = _checked(what[0], lists[0][k], (tall, layer.rank), panels.dtype)
        H = _checked(what[1], lists[1][k], (layer.rank, wide), panels.dtype, zero_ok=True)
        W, H = (before[:, None] * W, H) if codes else (W, H / before)
        scales = _missing_scales(W, layer.constraint_W)
        given.W.append(_feasible(what[0], W / scales, layer.constraint_W))
        given.H.append(_feasible(what[1], scales[:, None] * H, layer.constraint_H))
        before = scales
    return given


def inside(given: Given, problem: Problem) -> Given:
    """Factors in the scales that other sets for W ask for; their products stay the same."""
    scaled = Given([], [])
    before: Array = np.ones(1)
    for layer, W, H in zip(problem.layers, given.W, given.H):
        scales = _missing_scales(W, layer.constraint_W)
        scaled.W.append(layer.constraint_W.project(W / scales))
        scaled.H.append(scales[:, None] * H / before)
        before = scales
    return scaled


def _missing_scales(W: Array, constraint: Constraint) -> Array:
    """Divisors that bring the columns of W into the set; 1 where none does."""
    ones = np.ones(W.shape[1])
    if constraint.violation(W) <= _TOLERATED_VIOLATION:
        return ones
    scales = constraint.scales(W)
    helps = scales is not None and constraint.violation(W / scales) <= _TOLERATED_VIOLATION
    return scales if scales is not None and helps else ones


def _checked(
    what: str, given: object, shape: tuple[int, int], dtype: np.dtype, zero_ok: bool = False
) -> Array:
    """A finite float64 matrix of this shape, of a size the data's type can square."""
    M = dense(as_numpy(given), what)
    if M.shape != shape:
        raise ValueError(f"{what} has shape {M.shape}; expected {shape}.")
    check_scale(M, what, zero_ok, dtype)
    return M.array.astype(np.float64)


def _feasible(what: str, M: Array, constraint: Constraint) -> Array:
    violation = constraint.violation(M)
    if violation > _TOLERATED_VIOLATION:
        raise ValueError(
            f"{what} is not in {constraint!r}: it is off by {violation:.3g} of its size. "
            f"Project it first, with the constraint's own project(), or name a set that it is in."
        )
    return constraint.project(M) if violation > 0 else M
