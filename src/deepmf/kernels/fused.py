"""One compiled pass over some columns of X: G'X + V, the descent of H, then X H' and H H'.

G is given as -G, so that its product is the slope's constant part. V is the shift of a penalty on
the codes, a column for each of X's columns or one for all.

A block of columns is read once and stays in a core's cache between the products, while the next one
is fetched. Every kind of matrix has its own pair of products; the rest is shared. Sums over columns
are in float64. Sides of length r are padded by zeros to an even number,
or in results to a multiple of eight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepmf.kernels.descent import copy, descend, put, scratch
from deepmf.kernels.simd import lanes, load, prefetch, splat, store
from deepmf.kernels.tiles import add_inner, add_outer, inlined, jit, zeros

_SOON = 8
"""Distance, in entries of a sparse column, at which the rows they meet are prefetched."""


@jit
def _improve(
    A: Any, C: Any, V: Any, H: Any, part: Any, H64: Any, begin: int, width: int, work: Any,
    lane: Any, HHt: Any, descent: Any,
) -> None:  # fmt: skip
    """Descend a block's codes from its C = -G'X - V; leave them in H and, in float64, in H64."""
    copy(H, begin, width, part)
    _shift(V, begin, width, C)
    for at in range(0, width, lane.shape[1]):
        descend(A, C, part, at, work, lane, descent)
    put(part, begin, width, H)
    copy(H, begin, width, H64)
    add_inner(H64, 0, len(H64), 0, H64.shape[1], 0, H64, HHt)


@jit
def _shift(V: Any, begin: int, width: int, C: Any) -> None:
    """C -= V, which has a column for each of X's columns, or one for all."""
    for i in range(len(V)):
        row = C[i]
        if V.shape[1] > 1:
            own = V[i, begin : begin + width]
            for k in range(width):
                row[k] -= own[k]
        elif V[i, 0] != 0:
            for k in range(width):
                row[k] -= V[i, 0]


@jit
def _block(r: int, width: int, H: Any) -> Any:
    """Work arrays of a block: G'X, the codes, and the codes in float64."""
    return zeros(r, width, H.dtype), zeros(r, width, H.dtype), zeros(r, width, np.float64)


@jit
def _transpose(M: Any, out: Any) -> None:
    """M' into ``out``, as far as both reach."""
    for i in range(min(out.shape[0], M.shape[1])):
        for j in range(min(out.shape[1], M.shape[0])):
            out[i, j] = M[j, i]


@jit
def update_rows(
    X: Any, A: Any, G: Any, V: Any, H: Any, first: int, last: int, block: int, XHt: Any, HHt: Any,
    descent: Any,
) -> None:  # fmt: skip
    """Columns first, ..., last - 1 of an X whose rows are contiguous, a block at a time.

    Half of the next block is fetched during each of the products.
    """
    rows, r = G.shape
    half = rows // 4 * 2
    C, part, H64 = _block(r, block, H)
    work, lane = scratch(A)
    for begin in range(first, last, block):
        width = min(block, last - begin)
        C[:] = 0
        add_outer(G[:half], X, 0, begin, width, block, C)
        add_outer(G[half:], X, half, begin, width, 0, C)
        _improve(A, C, V, H, part, H64, begin, width, work, lane, HHt, descent)
        add_inner(X, 0, half, begin, width, 0, H64, XHt[:half])
        add_inner(X, half, rows - half, begin, width, block, H64, XHt[half:])


@jit
def update_columns(
    Xt: Any, A: Any, Gt: Any, V: Any, H: Any, first: int, last: int, block: int, HXt: Any,
    HHt: Any, descent: Any,
) -> None:  # fmt: skip
    """Columns first, ..., last - 1 of an X whose columns are contiguous; X', G' in, H X' out."""
    r, rows = len(Gt), Xt.shape[1]
    C, part, H64 = _block(r, block, H)
    Ct, Ht = zeros(block, HHt.shape[1], H.dtype), zeros(block, r, np.float64)
    work, lane = scratch(A)
    for begin in range(first, last, block):
        width = min(block, last - begin)
        Ct[:] = 0
        half = width // 4 * 2
        add_inner(Xt, begin, half, 0, rows, block * rows, Gt, Ct[:half])
        add_inner(Xt, begin + half, width - half, 0, rows, 0, Gt, Ct[half:])
        _transpose(Ct, C)
        _improve(A, C, V, H, part, H64, begin, width, work, lane, HHt, descent)
        _transpose(H64, Ht)
        add_outer(Ht[:half], Xt, begin, 0, rows, 0, HXt)
        add_outer(Ht[half:width], Xt, begin + half, 0, rows, block * rows, HXt)


@jit
def update_sparse(
    data: Any, indices: Any, indptr: Any, A: Any, G: Any, V: Any, H: Any, first: int, last: int,
    block: int, XHt: Any, HHt: Any, descent: Any,
) -> None:  # fmt: skip
    """Columns first, ..., last - 1 of an X in CSC form; rows of G and X H' are whole vectors."""
    r, wide = len(A), G.shape[1]
    C, part, H64 = _block(r, block, H)
    Ct, Ht = zeros(block, wide, H.dtype), zeros(block, wide, np.float64)
    work, lane = scratch(A)
    for begin in range(first, last, block):
        width = min(block, last - begin)
        for j in range(width):
            _sum_rows(data, indices, indptr[begin + j], indptr[begin + j + 1], G, Ct, j)
        _transpose(Ct, C)
        _improve(A, C, V, H, part, H64, begin, width, work, lane, HHt, descent)
        _transpose(H64, Ht)
        for j in range(width):
            _add_to_rows(data, indices, indptr[begin + j], indptr[begin + j + 1], Ht, j, XHt)


@inlined
def _sum_rows(data: Any, indices: Any, p: int, end: int, G: Any, out: Any, to: int) -> None:
    """out[to] = sum of data[i] G[indices[i]], p <= i < end.

    By four vectors while there are as many; rows of G are asked for before they are needed.
    """
    width, k = lanes(G), 0
    while k + 4 * width <= G.shape[1]:
        s0 = s1 = s2 = s3 = splat(G, 0)
        for i in range(p, end):
            row, x, soon = indices[i], splat(G, data[i]), indices[min(i + _SOON, end - 1)]
            for v in range(4):
                prefetch(G, soon, k + v * width)
            s0, s1 = s0 + x * load(G, row, k), s1 + x * load(G, row, k + width)
            s2, s3 = s2 + x * load(G, row, k + 2 * width), s3 + x * load(G, row, k + 3 * width)
        store(s0, out, to, k)
        store(s1, out, to, k + width)
        store(s2, out, to, k + 2 * width)
        store(s3, out, to, k + 3 * width)
        k += 4 * width
    while k < G.shape[1]:
        s0 = splat(G, 0)
        for i in range(p, end):
            s0 = s0 + splat(G, data[i]) * load(G, indices[i], k)
        store(s0, out, to, k)
        k += width


@inlined
def _add_to_rows(data: Any, indices: Any, p: int, end: int, H: Any, j: int, out: Any) -> None:
    """out[indices[i]] += data[i] H[j], p <= i < end."""
    width = lanes(out)
    for i in range(p, end):
        row, x, soon = indices[i], splat(out, data[i]), indices[min(i + _SOON, end - 1)]
        for k in range(0, out.shape[1], width):
            prefetch(out, soon, k)
            store(load(out, row, k) + x * load(H, j, k), out, row, k)
