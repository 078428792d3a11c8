"""The fast projected gradient method compiled by Numba, for small blocks and built-in sets.

Same steps and decisions as `projected_gradient`, which remains the reference and serves every
other case: user-defined sets, several Kronecker terms, large ranks (where BLAS is faster).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

LANES = 32
"""Columns worked on together, so that the compiler can use vector instructions across them."""

NONE, NONNEGATIVE, BOX, SIMPLEX, CAPPED = range(5)

_jit = njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")


@_jit
def _project_column_to_simplex(v: Any, k: int, cap: bool) -> None:
    """max(v - t, 0) with sum 1 (or at most 1), t by Michelot's shrinking active set."""
    n = len(v)
    if cap:
        total = 0.0
        for i in range(n):
            v[i, k] = max(v[i, k], 0)
            total += v[i, k]
        if total <= 1:
            return
    top = v[0, k]
    for i in range(1, n):
        top = max(top, v[i, k])
    total, count = 0.0, n
    for i in range(n):
        v[i, k] -= top
        total += v[i, k]
    t = (total - 1) / count
    while True:
        total, remaining = 0.0, 0
        for i in range(n):
            if v[i, k] > t:
                total += v[i, k]
                remaining += 1
        if remaining >= count or remaining == 0:  # settled; rounding or NaN cannot keep it going
            break
        count = remaining
        t = (total - 1) / count
    for i in range(n):
        v[i, k] = max(v[i, k] - t, 0)


@_jit
def _project(M: Any, width: int, kind: int, lower: Any, upper: Any) -> None:
    """Project the first columns of M in place."""
    if kind == NONNEGATIVE:
        for i in range(len(M)):
            for k in range(width):
                M[i, k] = max(M[i, k], 0)
    elif kind == BOX:
        for i in range(len(M)):
            for k in range(width):
                M[i, k] = min(max(M[i, k], lower), upper)
    elif kind in (SIMPLEX, CAPPED):
        for k in range(width):
            _project_column_to_simplex(M, k, kind == CAPPED)


@_jit
def _times(A: Any, M: Any, width: int, out: Any) -> None:
    """A M for the first columns, into ``out``."""
    r = len(M)
    for i in range(r):
        for k in range(width):
            out[i, k] = 0
        for j in range(r):
            a = A[i, j]
            for k in range(width):
                out[i, k] += a * M[j, k]


@_jit
def columns(
    A: Any, C: Any, M: Any, out: Any, step: Any, kind: int, lower: Any, upper: Any,
    max_iter: int, tol2: Any, alpha1: Any, accelerated: bool,
) -> None:  # fmt: skip
    """Every column of M on its own, LANES of them side by side; the result goes to ``out``."""
    r, n = M.shape
    m = np.empty((r, LANES), M.dtype)
    Hm, y, Hy, c, new, Hnew = (
        np.empty_like(m), np.empty_like(m), np.empty_like(m),
        np.empty_like(m), np.empty_like(m), np.empty_like(m),
    )  # fmt: skip
    alpha, beta = np.empty(LANES, M.dtype), np.empty(LANES, M.dtype)
    change, length, first = (
        np.empty(LANES, M.dtype), np.empty(LANES, M.dtype), np.empty(LANES, M.dtype)
    )  # fmt: skip
    fresh, moving, better = (
        np.empty(LANES, np.bool_),
        np.empty(LANES, np.bool_),
        np.empty(LANES, np.bool_),
    )
    for begin in range(0, n, LANES):
        width = min(LANES, n - begin)
        for i in range(r):
            for k in range(width):
                m[i, k] = M[i, begin + k]
                y[i, k] = m[i, k]
                c[i, k] = C[i, begin + k]
        _times(A, m, width, Hm)
        for i in range(r):
            for k in range(width):
                Hy[i, k] = Hm[i, k]
        for k in range(width):
            alpha[k], first[k], fresh[k], moving[k] = alpha1, -1, True, True

        for _ in range(max_iter):
            for i in range(r):
                for k in range(width):
                    new[i, k] = y[i, k] - step * (Hy[i, k] - c[i, k])
            _project(new, width, kind, lower, upper)
            _times(A, new, width, Hnew)
            for k in range(width):
                change[k], length[k] = 0, 0
            for i in range(r):
                for k in range(width):
                    d = new[i, k] - m[i, k]
                    change[k] += (0.5 * (Hm[i, k] + Hnew[i, k]) - c[i, k]) * d
                    length[k] += d * d
            any_moving = False
            for k in range(width):
                if first[k] < 0:
                    first[k] = length[k]
                better[k] = moving[k] and change[k] <= 0
                onward = better[k] and length[k] > tol2 * first[k]
                moving[k] = moving[k] and (onward or not fresh[k])
                if onward and accelerated:
                    a2 = alpha[k] * alpha[k]
                    following = (np.sqrt(a2 * a2 + 4 * a2) - a2) / 2
                    beta[k] = alpha[k] * (1 - alpha[k]) / (a2 + following)
                    alpha[k], fresh[k] = following, False
                else:
                    alpha[k], beta[k], fresh[k] = alpha1, 0, True
                any_moving = any_moving or moving[k]
            for i in range(r):
                for k in range(width):
                    d, Hd = new[i, k] - m[i, k], Hnew[i, k] - Hm[i, k]
                    m[i, k] = new[i, k] if better[k] else m[i, k]
                    Hm[i, k] = Hnew[i, k] if better[k] else Hm[i, k]
                    y[i, k] = m[i, k] + beta[k] * d
                    Hy[i, k] = Hm[i, k] + beta[k] * Hd
            if not any_moving:
                break
        for i in range(r):
            for k in range(width):
                out[i, begin + k] = m[i, k]


@_jit
def _hessian(A: Any, B: Any, left: bool, right: bool, M: Any) -> Any:
    out = M
    if left:
        out = np.dot(A, out)
    if right:
        out = np.dot(out, B)
    return out if left or right else M.copy()


@_jit
def block(
    A: Any, B: Any, left: bool, right: bool, scale: Any, C: Any, M: Any, step: Any,
    kind: int, lower: Any, upper: Any, max_iter: int, tol2: Any, alpha1: Any, accelerated: bool,
) -> Any:  # fmt: skip
    """All of M at once, with one decision for all; a side that is off is the identity.

    The Hessian is ``scale * A M B``.
    """
    n, r = M.shape
    m, y = M.copy(), M.copy()
    Hm = scale * _hessian(A, B, left, right, m)
    Hy = Hm.copy()
    alpha, first, fresh = alpha1, -1.0, True
    for _ in range(max_iter):
        new = y - step * (Hy - C)
        _project(new, r, kind, lower, upper)
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
