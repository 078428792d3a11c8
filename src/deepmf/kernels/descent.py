"""The fast projected gradient method compiled by Numba, for built-in sets.

`solvers.projected_gradient` is the reference, and serves every other case: user-defined sets,
several Kronecker terms, large blocks updated as a whole. Steps and decisions are the same there,
in `descend` (columns), in `block` (a whole block) and in ``data/gpu/pass.cu``: a change in one of
the four is a change in all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from deepmf.kernels.grouped_sparse import grouped_sparse
from deepmf.kernels.limits import MAX_STEPS, NOTHING
from deepmf.kernels.simd import (
    lanes,
    load,
    maximum,
    minimum,
    splat,
    sqrt,
    store,
    total,
    where_at_most,
)
from deepmf.kernels.tiles import jit, plus_times, zeros

ENTRIES, SIMPLEX, CAPPED, GROUPED = range(4)
"""Sets: bounds on entries; columns that sum to 1, or to at most 1; grouped sparsity (blocks)."""


class Descent(NamedTuple):
    """Settings of a compiled descent; numbers are of the data's type."""

    step: Any
    """Step size of each row, an array."""
    set_code: int
    """The set: `ENTRIES`, `SIMPLEX`, `CAPPED` or `GROUPED`."""
    lower: Any
    """Smallest entry; of grouped sparsity, the sparsity."""
    upper: Any
    """Largest entry; of grouped sparsity, 1 where entries are nonnegative."""
    max_iter: int
    """Cap on iterations."""
    tol2: Any
    """Squared ratio of a step to the first one at which a column has converged."""
    alpha1: Any
    """alpha_1 of Algorithm 4."""
    accelerated: bool
    """Whether steps are extrapolated."""


@jit
def _to_simplex(M: Any, r: int, at: int, capped: bool) -> None:
    """max(v - t, 0) with sum 1 (or at most 1) for a vector's width of columns of M.

    t by Michelot's shrinking active set.
    """
    zero, one, rows = splat(M, 0), splat(M, 1), splat(M, r)
    t, inside = load(M, 0, at), zero
    for i in range(r):
        v = load(M, i, at)
        t, inside = maximum(t, v), inside + maximum(v, zero)
    # a column inside the capped simplex is only clipped: it has neither shift nor t
    count = where_at_most(inside, one, zero, rows) if capped else rows
    shift, size = where_at_most(count, zero, zero, t), zero
    for i in range(r):
        v = load(M, i, at) - shift
        size = size + v
        store(v, M, i, at)
    t = where_at_most(count, zero, zero, (size - one) / rows)
    while True:
        size, remaining = zero, zero
        for i in range(r):
            v = load(M, i, at)
            size = size + where_at_most(v, t, zero, v)
            remaining = remaining + where_at_most(v, t, zero, one)
        # a settled column keeps its t; rounding or NaN cannot keep one going
        fewer = where_at_most(remaining, count - one, one, zero)
        fewer = where_at_most(one, remaining, fewer, zero)
        if total(fewer) == 0:
            break
        t = where_at_most(one, fewer, (size - one) / remaining, t)
        count = where_at_most(one, fewer, remaining, count)
    for i in range(r):
        store(maximum(load(M, i, at) - t, zero), M, i, at)


@jit
def descend(A: Any, C: Any, M: Any, at: int, work: Any, lane: Any, descent: Any) -> None:
    """The columns at, at + 1, ... of M, two vectors of them, each on its own and in place.

    ::

        m -> argmin of f(m) = 1/2 <m, A m> + <c, m> over the set

    A, C and M are padded by zeros to an even number of rows. ``work`` and ``lane`` are scratch of
    `scratch`. Flags are numbers, 0 or 1: decisions are made for all columns by the same
    instructions.
    """
    step, kind, lower, upper, max_iter, tol2, alpha1, accelerated = descent
    r, width = len(step), lanes(M)
    now, then, new, slope, new_slope = work[0], work[1], work[2], work[3], work[4]  # A m + c
    zero, half, one, four = splat(M, 0), splat(M, 0.5), splat(M, 1), splat(M, 4)
    low, high, start, shorter = splat(M, lower), splat(M, upper), splat(M, alpha1), splat(M, tol2)
    for v in range(0, 2 * width, width):
        store(start, lane, 0, v)
        store(zero - one, lane, 1, v)
        store(one, lane, 2, v)
        store(one, lane, 3, v)
        for i in range(r):
            m = load(M, i, at + v)
            store(m, now, i, v)
            store(m, new, i, v)
    for iteration in range(max_iter + 1):  # of which the first only finds the slope at the start
        if kind != ENTRIES and iteration > 0:
            _to_simplex(new, r, 0, kind == CAPPED)
            _to_simplex(new, r, width, kind == CAPPED)
        plus_times(C, at, A, new, 0, new_slope)
        if iteration == 0:
            for i in range(r):
                for v in range(0, 2 * width, width):
                    s = load(new_slope, i, v)
                    store(s, slope, i, v)
                    m = load(now, i, v) - splat(M, step[i]) * s
                    store(minimum(maximum(m, low), high), new, i, v)
            continue
        still = zero
        for v in range(0, 2 * width, width):
            change, length = zero, zero
            for i in range(r):
                d = load(new, i, v) - load(now, i, v)
                change = change + (load(slope, i, v) + load(new_slope, i, v)) * d  # twice f's
                length = length + d * d
            alpha, first = load(lane, 0, v), load(lane, 1, v)
            fresh, moving = load(lane, 2, v), load(lane, 3, v)
            first = where_at_most(zero, first, first, length)
            better = where_at_most(change, zero, moving, zero)
            onward = where_at_most(length, shorter * first, zero, better)
            moving = moving * maximum(onward, one - fresh)
            if not accelerated:
                onward = zero
            a2 = alpha * alpha
            following = half * (sqrt(a2 * (a2 + four)) - a2)
            beta = onward * (alpha * (one - alpha) / (a2 + following))
            store(where_at_most(one, onward, following, start), lane, 0, v)
            store(first, lane, 1, v)
            store(one - onward, lane, 2, v)
            store(moving, lane, 3, v)
            still = still + moving
            for i in range(r):
                m, n = load(now, i, v), load(new, i, v)
                s, t = load(slope, i, v), load(new_slope, i, v)
                taken, its = where_at_most(one, better, n, m), where_at_most(one, better, t, s)
                store(taken, then, i, v)
                store(its, slope, i, v)
                y = taken + beta * (n - m) - splat(M, step[i]) * (its + beta * (t - s))
                store(minimum(maximum(y, low), high), new, i, v)
        now, then = then, now
        if total(still) == 0:
            break
    for i in range(r):
        for v in range(0, 2 * width, width):
            store(load(now, i, v), M, i, at + v)


@jit
def scratch(A: Any) -> Any:
    """Work space for `descend`."""
    width = 2 * lanes(A)
    work = zeros(5 * len(A), width, A.dtype).reshape((5, len(A), width))
    return work, zeros(4, width, A.dtype)


@jit
def columns(A: Any, C: Any, M: Any, out: Any, start: int, stop: int, descent: Any) -> None:
    """Columns start, ..., stop - 1 of M, each on its own, into ``out``.

    ::

        m -> argmin of 1/2 <m, A m> - <c, m> over the set
    """
    r = len(M)
    even = r + r % 2
    whole = zeros(even, even, M.dtype)
    whole[:r, :r] = A
    work, lane = scratch(whole)
    group = lane.shape[1]
    m, c = zeros(even, group, M.dtype), zeros(even, group, M.dtype)
    for begin in range(start, stop, group):
        width = min(group, stop - begin)
        copy(M, begin, width, m)
        copy(C, begin, width, c)
        for i in range(len(C)):
            for k in range(width):
                c[i, k] = -c[i, k]
        descend(whole, c, m, 0, work, lane, descent)
        put(m, begin, width, out)


@jit
def ahead(M: Any, before: Any, beta: Any, kind: int, lower: Any, upper: Any) -> None:
    """before <- P(M + beta (M - before)), a few columns at a time."""
    r, n = M.shape
    part = zeros(r, 4 * lanes(M), M.dtype)
    for begin in range(0, n, part.shape[1]):
        width = min(part.shape[1], n - begin)
        for i in range(r):
            m, b, p = M[i, begin : begin + width], before[i, begin : begin + width], part[i]
            for k in range(width):
                p[k] = min(max(m[k] + beta * (m[k] - b[k]), lower), upper)
        if kind != ENTRIES:
            for at in range(0, width, lanes(M)):
                _to_simplex(part, r, at, kind == CAPPED)
        put(part, begin, width, before)


@jit
def copy(M: Any, begin: int, width: int, out: Any) -> None:
    """Columns ``begin``, ... of M into ``out``; zeros beyond ``width``."""
    for i in range(len(M)):
        row = M[i, begin : begin + width]
        for k in range(width):
            out[i, k] = row[k]
        for k in range(width, out.shape[1]):
            out[i, k] = 0


@jit
def put(m: Any, begin: int, width: int, out: Any) -> None:
    """The first columns of m into columns ``begin``, ... of ``out``."""
    for i in range(len(out)):
        row = out[i, begin : begin + width]
        for k in range(width):
            row[k] = m[i, k]


@jit
def _project(M: Any, kind: int, lower: Any, upper: Any, wide: Any) -> Any:
    """M projected, in place if it may be; ``wide`` is work space, as M but of whole vectors."""
    r, width = M.shape
    if kind == GROUPED:
        return grouped_sparse(M, lower, upper > 0, MAX_STEPS, NOTHING)
    if kind == ENTRIES:
        for i in range(r):
            for k in range(width):
                M[i, k] = min(max(M[i, k], lower), upper)
        return M
    copy(M, 0, width, wide)
    for at in range(0, wide.shape[1], lanes(M)):
        _to_simplex(wide, r, at, kind == CAPPED)
    put(wide, 0, width, M)
    return M


@jit
def _hessian(A: Any, B: Any, left: bool, right: bool, M: Any) -> Any:
    out = M
    if left:
        out = np.dot(A, out)
    if right:
        out = np.dot(out, B)
    return out if left or right else M.copy()


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def block(
    A: Any, B: Any, left: bool, right: bool, scale: Any, C: Any, M: Any, size: Any, descent: Any
) -> Any:
    """All of M at once, with one decision for all; a side that is off is the identity.

    The Hessian is ``scale * A M B``; step sizes are those of ``size``.
    """
    _, kind, lower, upper, max_iter, tol2, alpha1, accelerated = descent
    n, r = M.shape
    m, y = M.copy(), M.copy()
    Hm = scale * _hessian(A, B, left, right, m)
    Hy = Hm.copy()
    whole = lanes(M)
    wide = np.empty((n, (r + whole - 1) // whole * whole), M.dtype)
    alpha, first, fresh = alpha1, -1.0, True
    for _ in range(max_iter):
        new = y - size * (Hy - C)
        new = _project(new, kind, lower, upper, wide)
        Hnew = scale * _hessian(A, B, left, right, new)
        change, length = 0.0, 0.0
        for i in range(n):
            for k in range(r):
                d = new[i, k] - m[i, k]
                change += (0.5 * (Hm[i, k] + Hnew[i, k]) - C[i, k]) * d
                length += d * d
        if first < 0:
            first = length
        better = change <= 0
        onward = better and length > tol2 * first
        done = fresh and not onward
        beta = 0.0
        if onward and accelerated:
            a2 = alpha * alpha
            following = (np.sqrt(a2 * a2 + 4 * a2) - a2) / 2
            beta = alpha * (1 - alpha) / (a2 + following)
            alpha, fresh = following, False
        else:
            alpha, fresh = alpha1, True
        if better:
            for i in range(n):
                for k in range(r):
                    y[i, k] = new[i, k] + beta * (new[i, k] - m[i, k])
                    Hy[i, k] = Hnew[i, k] + beta * (Hnew[i, k] - Hm[i, k])
            m, Hm = new, Hnew
        else:
            y, Hy = m.copy(), Hm.copy()
        if done:
            break
    return m
