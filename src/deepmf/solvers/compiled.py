"""The fast projected gradient method compiled by Numba, for built-in sets.

Same steps and decisions as `projected_gradient`, which remains the reference and serves every
other case: user-defined sets, several Kronecker terms, large blocks updated as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

LANES = 64
"""Columns worked on together: a constant, so that loops over them become vector instructions."""

NONE, NONNEGATIVE, BOX, SIMPLEX, CAPPED = range(5)

jit = njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")


@jit
def _to_simplex(M: Any, width: int, cap: bool, lanes: Any) -> None:
    """max(v - t, 0) with sum 1 (or at most 1) per column, t by Michelot's shrinking active set."""
    r = len(M)
    t, total, count, remaining = lanes[0], lanes[1], lanes[2], lanes[3]
    for k in range(width):
        t[k], total[k] = M[0, k], 0
    for i in range(r):
        v = M[i]
        for k in range(width):
            t[k] = max(t[k], v[k])
        for k in range(width):
            total[k] += max(v[k], 0)
    for k in range(width):
        # a column inside the capped simplex is only clipped: it has neither shift nor t
        count[k] = 0 if cap and total[k] <= 1 else r
    for k in range(width):
        t[k] = 0 if count[k] == 0 else t[k]
    for k in range(width):
        total[k] = 0
    for i in range(r):
        v = M[i]
        for k in range(width):
            v[k] -= t[k]
        for k in range(width):
            total[k] += v[k]
    for k in range(width):
        t[k] = 0 if count[k] == 0 else (total[k] - 1) / r
    shrinking = True
    while shrinking:
        for k in range(width):
            total[k], remaining[k] = 0, 0
        for i in range(r):
            v = M[i]
            for k in range(width):
                total[k] += v[k] if v[k] > t[k] else 0
            for k in range(width):
                remaining[k] += 1 if v[k] > t[k] else 0
        shrinking = False
        for k in range(width):
            # a settled column keeps its t; rounding or NaN cannot keep one going
            shrinking |= 0 < remaining[k] < count[k]
        for k in range(width):
            smaller = 0 < remaining[k] < count[k]
            t[k] = (total[k] - 1) / remaining[k] if smaller else t[k]
        for k in range(width):
            count[k] = min(count[k], remaining[k]) if remaining[k] > 0 else count[k]
    for i in range(r):
        v = M[i]
        for k in range(width):
            v[k] = max(v[k] - t[k], 0)


@jit
def _project(M: Any, width: int, kind: int, lower: Any, upper: Any, lanes: Any) -> None:
    """Project the first columns of M in place; ``lanes`` is work space, 4 x width."""
    if kind == NONNEGATIVE:
        for i in range(len(M)):
            for k in range(width):
                M[i, k] = max(M[i, k], 0)
    elif kind == BOX:
        for i in range(len(M)):
            for k in range(width):
                M[i, k] = min(max(M[i, k], lower), upper)
    elif kind in (SIMPLEX, CAPPED):
        _to_simplex(M, width, kind == CAPPED, lanes)


@jit
def _times(A: Any, M: Any, out: Any) -> None:
    """A M into ``out``, two rows by four terms at a time so that loads are shared."""
    r = len(A)
    pairs, fours = r - r % 2, r - r % 4
    for i in range(r):
        for k in range(LANES):
            out[i, k] = 0
    for i in range(0, pairs, 2):
        for j in range(0, fours, 4):
            a0, a1, a2, a3 = A[i, j], A[i, j + 1], A[i, j + 2], A[i, j + 3]
            b0, b1, b2, b3 = A[i + 1, j], A[i + 1, j + 1], A[i + 1, j + 2], A[i + 1, j + 3]
            for k in range(LANES):
                x0, x1, x2, x3 = M[j, k], M[j + 1, k], M[j + 2, k], M[j + 3, k]
                out[i, k] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                out[i + 1, k] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
        for j in range(fours, r):
            a0, b0 = A[i, j], A[i + 1, j]
            for k in range(LANES):
                out[i, k] += a0 * M[j, k]
                out[i + 1, k] += b0 * M[j, k]
    for i in range(pairs, r):
        for j in range(r):
            a0 = A[i, j]
            for k in range(LANES):
                out[i, k] += a0 * M[j, k]


@jit
def _advance(old: Any, new: Any, ahead: Any, better: Any, beta: Any) -> None:
    """Take the steps that are better; ``ahead`` is extrapolated from there."""
    for k in range(LANES):
        d = new[k] - old[k]
        taken = new[k] if better[k] > 0 else old[k]
        old[k] = taken
        ahead[k] = taken + beta[k] * d


@jit
def descend(
    A: Any, c: Any, m: Any, work: Any, lanes: Any, step: Any, kind: int, lower: Any, upper: Any,
    max_iter: int, tol2: Any, alpha1: Any, accelerated: bool,
) -> None:  # fmt: skip
    """LANES columns, each on its own, in place: m -> argmin of 1/2 <m, A m> - <c, m> over the set.

    ``work`` is 5 x r x LANES and ``lanes`` 12 x LANES of scratch. Flags are numbers, 0 or 1, so
    that decisions are made for all columns by the same instructions, and loops write one row each:
    more than a few would not be vectorised, for rows might overlap for all the compiler knows.
    """
    r = len(A)
    Hm, y, Hy, new, Hnew = work[0], work[1], work[2], work[3], work[4]
    alpha, beta, change, length, first = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]
    fresh, moving, better = lanes[5], lanes[6], lanes[7]
    scratch = lanes[8:12]  # of the projection, and free again after it
    onward, following = lanes[8], lanes[9]
    _times(A, m, Hm)
    for i in range(r):
        for k in range(LANES):
            y[i, k] = m[i, k]
            Hy[i, k] = Hm[i, k]
    for k in range(LANES):
        alpha[k], first[k], fresh[k], moving[k] = alpha1, -1, 1, 1
    for _ in range(max_iter):
        for i in range(r):
            out, at, grad, linear, size = new[i], y[i], Hy[i], c[i], step[i]
            for k in range(LANES):
                out[k] = at[k] - size * (grad[k] - linear[k])
        _project(new, LANES, kind, lower, upper, scratch)
        _times(A, new, Hnew)
        for k in range(LANES):
            change[k], length[k] = 0, 0
        for i in range(r):
            old, now, Hold, Hnow, linear = m[i], new[i], Hm[i], Hnew[i], c[i]
            for k in range(LANES):
                change[k] += (0.5 * (Hold[k] + Hnow[k]) - linear[k]) * (now[k] - old[k])
            for k in range(LANES):
                d = now[k] - old[k]
                length[k] += d * d
        for k in range(LANES):
            first[k] = length[k] if first[k] < 0 else first[k]
        for k in range(LANES):
            better[k] = moving[k] if change[k] <= 0 else 0
        for k in range(LANES):
            onward[k] = better[k] if length[k] > tol2 * first[k] else 0
        for k in range(LANES):
            moving[k] *= max(onward[k], 1 - fresh[k])
        for k in range(LANES):
            onward[k] *= accelerated
        for k in range(LANES):
            fresh[k] = 1 - onward[k]
        for k in range(LANES):
            a2 = alpha[k] * alpha[k]
            following[k] = (np.sqrt(a2 * a2 + 4 * a2) - a2) / 2
        for k in range(LANES):
            a = alpha[k]
            beta[k] = onward[k] * a * (1 - a) / (a * a + following[k])
        for k in range(LANES):
            alpha[k] = following[k] if onward[k] > 0 else alpha1
        for i in range(r):
            _advance(m[i], new[i], y[i], better, beta)
            _advance(Hm[i], Hnew[i], Hy[i], better, beta)
        still_moving = False
        for k in range(LANES):
            still_moving |= moving[k] > 0
        if not still_moving:
            break


@jit
def load(M: Any, begin: int, width: int, out: Any) -> None:
    """Columns ``begin``, ... of M into ``out``; zeros beyond ``width``."""
    for i in range(len(M)):
        row = M[i, begin : begin + width]
        for k in range(width):
            out[i, k] = row[k]
        for k in range(width, out.shape[1]):
            out[i, k] = 0


@jit
def store(m: Any, begin: int, width: int, out: Any) -> None:
    """The first columns of m into columns ``begin``, ... of ``out``."""
    for i in range(len(m)):
        row = out[i, begin : begin + width]
        for k in range(width):
            row[k] = m[i, k]


@jit
def columns(
    A: Any, C: Any, M: Any, out: Any, start: int, stop: int, step: Any, kind: int, lower: Any,
    upper: Any, max_iter: int, tol2: Any, alpha1: Any, accelerated: bool,
) -> None:  # fmt: skip
    """Columns start, ..., stop - 1 of M, each on its own, LANES side by side, into ``out``."""
    r = len(M)
    m, c = np.empty((r, LANES), M.dtype), np.empty((r, LANES), M.dtype)
    work, lanes = np.empty((5, r, LANES), M.dtype), np.empty((12, LANES), M.dtype)
    for begin in range(start, stop, LANES):
        width = min(LANES, stop - begin)
        load(M, begin, width, m)
        load(C, begin, width, c)
        descend(A, c, m, work, lanes, step, kind, lower, upper, max_iter, tol2, alpha1, accelerated)
        store(m, begin, width, out)


@jit
def _hessian(A: Any, B: Any, left: bool, right: bool, M: Any) -> Any:
    out = M
    if left:
        out = np.dot(A, out)
    if right:
        out = np.dot(out, B)
    return out if left or right else M.copy()


@jit
def block(
    A: Any, B: Any, left: bool, right: bool, scale: Any, C: Any, M: Any, size: Any,
    kind: int, lower: Any, upper: Any, max_iter: int, tol2: Any, alpha1: Any, accelerated: bool,
) -> Any:  # fmt: skip
    """All of M at once, with one decision for all; a side that is off is the identity.

    The Hessian is ``scale * A M B``.
    """
    n, r = M.shape
    m, y = M.copy(), M.copy()
    Hm = scale * _hessian(A, B, left, right, m)
    Hy = Hm.copy()
    lanes = np.empty((4, r), M.dtype)
    alpha, first, fresh = alpha1, -1.0, True
    for _ in range(max_iter):
        new = y - size * (Hy - C)
        _project(new, r, kind, lower, upper, lanes)
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
