"""One pass over some columns of X, compiled: G'X, the descent of H, then X H' and H H'.

A block of columns is read once and stays in a core's cache between the products. Every kind of
matrix has its own pair of products; the rest is shared. Sums over columns are in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from deepmf.solvers.compiled import LANES, descend, load, store

WIDTH = 4 * LANES
"""Columns in a block: with some hundred rows it fills most of a core's second-level cache."""

_jit = njit(
    cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy"
)  # sums of products may be reordered


@_jit
def _add_outer(G: Any, X: Any, top: int, left: int, width: int, C: Any) -> None:
    """C += G'Y with Y the rows top, ... and columns left, ..., left + width - 1 of X.

    Four rows of Y at a time, and one of C: two would not be vectorised.
    """
    m, r = G.shape
    right, fours = left + width, m - m % 4
    for i in range(0, fours, 4):
        p = top + i
        x0, x1 = X[p, left:right], X[p + 1, left:right]
        x2, x3 = X[p + 2, left:right], X[p + 3, left:right]
        for k in range(r):
            a0, a1, a2, a3 = G[i, k], G[i + 1, k], G[i + 2, k], G[i + 3, k]
            c = C[k]
            for j in range(width):
                c[j] += a0 * x0[j] + a1 * x1[j] + a2 * x2[j] + a3 * x3[j]
    for i in range(fours, m):
        x0 = X[top + i, left:right]
        for k in range(r):
            a0, c = G[i, k], C[k]
            for j in range(width):
                c[j] += a0 * x0[j]


@_jit
def _add_inner(X: Any, top: int, height: int, left: int, width: int, H: Any, out: Any) -> None:
    """out += Y H' with Y the given part of X, two rows of Y and four of H at a time."""
    r = len(H)
    right, pairs, fours = left + width, height - height % 2, r - r % 4
    zero = out[0, 0] * 0
    for i in range(0, pairs, 2):
        x, y = X[top + i, left:right], X[top + i + 1, left:right]
        for k in range(0, fours, 4):
            h0, h1, h2, h3 = H[k], H[k + 1], H[k + 2], H[k + 3]
            s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = zero
            for j in range(width):
                s0 += x[j] * h0[j]
                s1 += x[j] * h1[j]
                s2 += x[j] * h2[j]
                s3 += x[j] * h3[j]
                t0 += y[j] * h0[j]
                t1 += y[j] * h1[j]
                t2 += y[j] * h2[j]
                t3 += y[j] * h3[j]
            out[i, k] += s0
            out[i, k + 1] += s1
            out[i, k + 2] += s2
            out[i, k + 3] += s3
            out[i + 1, k] += t0
            out[i + 1, k + 1] += t1
            out[i + 1, k + 2] += t2
            out[i + 1, k + 3] += t3
        for k in range(fours, r):
            h0 = H[k]
            s0 = t0 = zero
            for j in range(width):
                s0 += x[j] * h0[j]
                t0 += y[j] * h0[j]
            out[i, k] += s0
            out[i + 1, k] += t0
    for i in range(pairs, height):
        x = X[top + i, left:right]
        for k in range(r):
            h0 = H[k]
            s0 = zero
            for j in range(width):
                s0 += x[j] * h0[j]
            out[i, k] += s0


@_jit
def _improve(
    A: Any, C: Any, H: Any, H64: Any, begin: int, width: int, m: Any, c: Any, work: Any,
    lanes: Any, HHt: Any, step: Any, kind: int, lower: Any, upper: Any, max_iter: int, tol2: Any,
    alpha1: Any, accelerated: bool,
) -> None:  # fmt: skip
    """Descend a block's codes from its C = G'X; leave them in H and, in float64, in H64."""
    for first in range(0, width, LANES):
        part = min(LANES, width - first)
        load(H, begin + first, part, m)
        load(C, first, LANES, c)
        descend(A, c, m, work, lanes, step, kind, lower, upper, max_iter, tol2, alpha1, accelerated)
        store(m, begin + first, part, H)
    load(H, begin, width, H64)
    _add_inner(H64, 0, len(H64), 0, WIDTH, H64, HHt)


@_jit
def _scratch(r: int, like: Any) -> Any:
    return (
        np.empty((r, LANES), like.dtype),
        np.empty((r, LANES), like.dtype),
        np.empty((5, r, LANES), like.dtype),
        np.empty((12, LANES), like.dtype),
    )


@_jit
def update_rows(
    X: Any, A: Any, G: Any, H: Any, first: int, last: int, XHt: Any, HHt: Any, step: Any,
    kind: int, lower: Any, upper: Any, max_iter: int, tol2: Any, alpha1: Any, accelerated: bool,
) -> None:  # fmt: skip
    """Columns first, ..., last - 1 of an X whose rows are contiguous."""
    rows, r = G.shape
    C, H64 = np.empty((r, WIDTH), H.dtype), np.empty((r, WIDTH))
    m, c, work, lanes = _scratch(r, H)
    for begin in range(first, last, WIDTH):
        width = min(WIDTH, last - begin)
        C[:] = 0
        _add_outer(G, X, 0, begin, width, C)
        _improve(
            A, C, H, H64, begin, width, m, c, work, lanes, HHt,
            step, kind, lower, upper, max_iter, tol2, alpha1, accelerated,
        )  # fmt: skip
        _add_inner(X, 0, rows, begin, width, H64, XHt)


@_jit
def update_columns(
    Xt: Any, A: Any, Gt: Any, H: Any, first: int, last: int, HXt: Any, HHt: Any, step: Any,
    kind: int, lower: Any, upper: Any, max_iter: int, tol2: Any, alpha1: Any, accelerated: bool,
) -> None:  # fmt: skip
    """The same for an X whose columns are contiguous, given as X', G' and giving H X'."""
    r, rows = Gt.shape
    C, Ct = np.empty((r, WIDTH), H.dtype), np.empty((WIDTH, r), H.dtype)
    H64, Ht = np.empty((r, WIDTH)), np.empty((WIDTH, r))
    m, c, work, lanes = _scratch(r, H)
    for begin in range(first, last, WIDTH):
        width = min(WIDTH, last - begin)
        Ct[:] = 0
        _add_inner(Xt, begin, width, 0, rows, Gt, Ct)
        for i in range(r):
            for j in range(WIDTH):
                C[i, j] = Ct[j, i]
        _improve(
            A, C, H, H64, begin, width, m, c, work, lanes, HHt,
            step, kind, lower, upper, max_iter, tol2, alpha1, accelerated,
        )  # fmt: skip
        for i in range(r):
            for j in range(WIDTH):
                Ht[j, i] = H64[i, j]
        _add_outer(Ht[:width], Xt, begin, 0, rows, HXt)


@_jit
def update_sparse(
    data: Any, indices: Any, indptr: Any, A: Any, G: Any, H: Any, first: int, last: int, XHt: Any,
    HHt: Any, step: Any, kind: int, lower: Any, upper: Any, max_iter: int, tol2: Any, alpha1: Any,
    accelerated: bool,
) -> None:  # fmt: skip
    """The same for an X in compressed columns."""
    r = G.shape[1]
    C, H64 = np.empty((r, WIDTH), H.dtype), np.empty((r, WIDTH))
    sums, codes = np.empty(r, H.dtype), np.empty(r)
    m, c, work, lanes = _scratch(r, H)
    for begin in range(first, last, WIDTH):
        width = min(WIDTH, last - begin)
        C[:] = 0
        for j in range(width):
            sums[:] = 0
            for p in range(indptr[begin + j], indptr[begin + j + 1]):
                x, row = data[p], G[indices[p]]
                for k in range(r):
                    sums[k] += x * row[k]
            for k in range(r):
                C[k, j] = sums[k]
        _improve(
            A, C, H, H64, begin, width, m, c, work, lanes, HHt,
            step, kind, lower, upper, max_iter, tol2, alpha1, accelerated,
        )  # fmt: skip
        for j in range(width):
            for k in range(r):
                codes[k] = H64[k, j]
            for p in range(indptr[begin + j], indptr[begin + j + 1]):
                x, row = data[p], XHt[indices[p]]
                for k in range(r):
                    row[k] += x * codes[k]
