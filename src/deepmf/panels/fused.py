"""One pass over some columns of X, compiled: G'X, the descent of H, then X H' and H H'.

A block of columns is read once and stays in cache between the products. Every kind of matrix has
its own pair of products; the rest is shared. Sums over columns are in float64.
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
def _add_outer(G: Any, X: Any, C: Any) -> None:
    """C += G'X, four rows of X at a time (one row of C: two would not be vectorised)."""
    m, r = G.shape
    n = X.shape[1]
    fours = m - m % 4
    for i in range(0, fours, 4):
        x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        for k in range(r):
            a0, a1, a2, a3 = G[i, k], G[i + 1, k], G[i + 2, k], G[i + 3, k]
            c = C[k]
            for j in range(n):
                c[j] += a0 * x0[j] + a1 * x1[j] + a2 * x2[j] + a3 * x3[j]
    for i in range(fours, m):
        x0 = X[i]
        for k in range(r):
            a0, c = G[i, k], C[k]
            for j in range(n):
                c[j] += a0 * x0[j]


@_jit
def _add_inner(X: Any, H: Any, out: Any) -> None:
    """out += X H', two rows of X and four of H at a time."""
    m, n = X.shape
    r = len(H)
    pairs, fours = m - m % 2, r - r % 4
    zero = out[0, 0] * 0
    for i in range(0, pairs, 2):
        for k in range(0, fours, 4):
            s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = zero
            for j in range(n):
                x, y = X[i, j], X[i + 1, j]
                h0, h1, h2, h3 = H[k, j], H[k + 1, j], H[k + 2, j], H[k + 3, j]
                s0 += x * h0
                s1 += x * h1
                s2 += x * h2
                s3 += x * h3
                t0 += y * h0
                t1 += y * h1
                t2 += y * h2
                t3 += y * h3
            out[i, k] += s0
            out[i, k + 1] += s1
            out[i, k + 2] += s2
            out[i, k + 3] += s3
            out[i + 1, k] += t0
            out[i + 1, k + 1] += t1
            out[i + 1, k + 2] += t2
            out[i + 1, k + 3] += t3
        for k in range(fours, r):
            s0 = t0 = zero
            for j in range(n):
                s0 += X[i, j] * H[k, j]
                t0 += X[i + 1, j] * H[k, j]
            out[i, k] += s0
            out[i + 1, k] += t0
    for i in range(pairs, m):
        for k in range(r):
            s0 = zero
            for j in range(n):
                s0 += X[i, j] * H[k, j]
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
    _add_inner(H64, H64, HHt)


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
    block, C, H64 = (
        np.empty((rows, WIDTH), H.dtype),
        np.empty((r, WIDTH), H.dtype),
        np.empty((r, WIDTH)),
    )
    m, c, work, lanes = _scratch(r, H)
    for begin in range(first, last, WIDTH):
        width = min(WIDTH, last - begin)
        load(X, begin, width, block)
        C[:] = 0
        _add_outer(G, block, C)
        _improve(
            A, C, H, H64, begin, width, m, c, work, lanes, HHt,
            step, kind, lower, upper, max_iter, tol2, alpha1, accelerated,
        )  # fmt: skip
        _add_inner(block, H64, XHt)


@_jit
def update_columns(
    Xt: Any, A: Any, Gt: Any, H: Any, first: int, last: int, HXt: Any, HHt: Any, step: Any,
    kind: int, lower: Any, upper: Any, max_iter: int, tol2: Any, alpha1: Any, accelerated: bool,
) -> None:  # fmt: skip
    """The same for an X whose columns are contiguous, given as X', G' and giving H X'."""
    r = len(Gt)
    C, Ct = np.empty((r, WIDTH), H.dtype), np.empty((WIDTH, r), H.dtype)
    H64, Ht = np.empty((r, WIDTH)), np.empty((WIDTH, r))
    m, c, work, lanes = _scratch(r, H)
    for begin in range(first, last, WIDTH):
        width = min(WIDTH, last - begin)
        block = Xt[begin : begin + width]
        Ct[:] = 0
        _add_inner(block, Gt, Ct)
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
        _add_outer(Ht[:width], block, HXt)


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
