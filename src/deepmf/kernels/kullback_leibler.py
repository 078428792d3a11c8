"""One compiled pass over some columns of X for the Kullback-Leibler divergence: H, then its sums.

Every column x of X is a problem of its own, with a basis B_t for each of T data terms::

    min over h >= 0 of  sum_t w_t (s_t'h - sum_i x_i log (B_t h)_i) + 1/2 h'A h - v'h

s_t has the sums of B_t's columns; A and v come from penalties on the codes. Only entries x_i > 0
count. The rows of B_t that belong to them are set side by side as the columns of a small G_t, which
stays in a core's cache for all that follows.

A step improves one entry of h after the other by Newton's method. It is taken if the objective
cannot have increased, which is known without logarithms: log(b / a) >= p + p^2 / 2 + p^3 / 3 with
p = 1 - a / b. Else, and for those who ask for it, a step is multiplicative and never increases the
objective.

Arithmetic is in float64 whatever the type of X and H. Sides of length r are padded by zeros to a
multiple of eight, and entries of a column to two vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepmf.kernels.padding import TILE, VECTOR
from deepmf.kernels.simd import (
    load,
    log,
    maximum,
    prefetch,
    splat,
    store,
    total,
    totals,
    transpose_rows,
    where_at_most,
)
from deepmf.kernels.tiles import add_outer, inlined, jit, zeros

_FLOOR = 1e-100
"""Least entry of B h: to divide by it, or by its square, does not overflow."""

_SOON = 8
"""Distance, in entries of a sparse column, at which the rows they meet are prefetched."""

_BLOCK = 16
"""Columns of a dense X that are copied together."""


# --- the passes ----------------------------------------------------------------------------


@jit
def update_sparse(
    data: Any, indices: Any, indptr: Any, w: Any, B: Any, s: Any, A: Any, V: Any, H: Any,
    first: int, last: int, newton: bool, steps: int, tol: float, K: Any, hsum: Any,
) -> None:  # fmt: skip
    """Columns first, ..., last - 1 of an X in CSC form.

    B (T x m x wide) in; K_t += (x / B_t h) h' (likewise) and hsum += h out, all in float64. There
    are at most ``steps`` steps, until one gains no more than tol^2 times what the first did.
    """
    T, wide = len(w), B.shape[2]
    longest = _longest(indptr, first, last)
    G, x, room = zeros(T * wide, longest, B.dtype), zeros(1, longest, B.dtype), _room(T, longest, wide)
    for j in range(first, last):
        p, end = indptr[j], indptr[j + 1]
        c = _gather(data, indices, p, end, x)
        for t in range(T):
            _gather_rows(indices, p, end, B[t], G, t * wide)
        _improve(x, G, w, s, A, V, H, j, c, newton, steps, tol, room, hsum)
        for t in range(T):
            _add_to_rows(room[2], t, indices, p, end, room[3], K[t])


@jit
def update_dense(
    X: Any, w: Any, Bt: Any, s: Any, A: Any, V: Any, H: Any, first: int, last: int, newton: bool,
    steps: int, tol: float, Kt: Any, hsum: Any,
) -> None:  # fmt: skip
    """Columns first, ..., last - 1 of an array; B' (T x rows x wide) in, K' (likewise) out."""
    T, rows, wide = Bt.shape
    G, room = Bt.reshape((T * rows, wide)), _room(T, wide, rows)
    x, ratio = zeros(_BLOCK, wide, Bt.dtype), zeros(T * _BLOCK, wide, Bt.dtype)
    h = zeros(_BLOCK, rows, Bt.dtype)
    for begin in range(first, last, _BLOCK):
        width = min(_BLOCK, last - begin)
        _copy_columns(X, begin, width, x)
        for j in range(width):
            own = x[j : j + 1]
            _improve(own, G, w, s, A, V, H, begin + j, wide, newton, steps, tol, room, hsum)
            h[j] = room[3][0]
            for t in range(T):
                ratio[t * _BLOCK + j] = room[2][t]
        for t in range(T):
            some = ratio[t * _BLOCK : t * _BLOCK + width]
            add_outer(h[:width], some, 0, 0, wide, 0, Kt[t])


@jit
def value_sparse(
    data: Any, indices: Any, indptr: Any, B: Any, H: Any, first: int, last: int
) -> float:
    """Sum of x log(B h) over columns first, ..., last - 1 of an X in CSC form; B is m x wide."""
    longest, wide = _longest(indptr, first, last), B.shape[1]
    G, x, h = zeros(wide, longest, B.dtype), zeros(1, longest, B.dtype), np.zeros(wide)
    out = 0.0
    for j in range(first, last):
        p, end = indptr[j], indptr[j + 1]
        c = _gather(data, indices, p, end, x)
        _gather_rows(indices, p, end, B, G, 0)
        for k in range(len(H)):
            h[k] = H[k, j]
        out += _value(x, G, h, len(H), c)
    return out


@jit
def value_dense(X: Any, Bt: Any, H: Any, first: int, last: int) -> float:
    """Sum of x log(B h) over columns first, ..., last - 1 of an array; B' is rows x wide."""
    rows, wide = Bt.shape
    x, h = zeros(_BLOCK, wide, Bt.dtype), np.zeros(rows)
    out = 0.0
    for begin in range(first, last, _BLOCK):
        width = min(_BLOCK, last - begin)
        _copy_columns(X, begin, width, x)
        for j in range(width):
            for k in range(len(H)):
                h[k] = H[k, begin + j]
            out += _value(x[j : j + 1], Bt, h, len(H), wide)
    return out


# --- entries of X and rows of B ------------------------------------------------------------


@jit
def _longest(indptr: Any, first: int, last: int) -> int:
    """Entries of the longest of some columns, padded."""
    longest = 0
    for j in range(first, last):
        longest = max(longest, indptr[j + 1] - indptr[j])
    return -(-longest // VECTOR) * VECTOR


@inlined
def _gather(data: Any, indices: Any, p: int, end: int, x: Any) -> int:
    """Entries of a column into x, then zeros up to two whole vectors; the size with them."""
    size = end - p
    c = -(-size // VECTOR) * VECTOR
    for i in range(size):
        x[0, i] = data[p + i]
    for i in range(size, c):
        x[0, i] = 0
    return c


@inlined
def _gather_rows(indices: Any, p: int, end: int, B: Any, G: Any, top: int) -> None:
    """Rows of B that a column meets as columns of G, from row ``top`` on; the last one fills up."""
    for i in range(0, -(-(end - p) // VECTOR) * VECTOR, TILE):
        for k in range(0, B.shape[1], TILE):
            transpose_rows(B, indices, p + i, end - 1, k, G, top + k, i)


@inlined
def _add_to_rows(
    ratio: Any, t: int, indices: Any, p: int, end: int, h: Any, out: Any
) -> None:
    """out[indices[i]] += ratio[t, i - p] h, p <= i < end; h is the first row of a matrix."""
    for i in range(p, end):
        row, q, soon = indices[i], splat(out, ratio[t, i - p]), indices[min(i + _SOON, end - 1)]
        for k in range(0, out.shape[1], TILE):
            prefetch(out, soon, k)
            store(load(out, row, k) + q * load(h, 0, k), out, row, k)


@jit
def _copy_columns(X: Any, begin: int, width: int, out: Any) -> None:
    """Columns of an array as rows."""
    for i in range(len(X)):
        for j in range(width):
            out[j, i] = X[i, begin + j]


# --- one column ----------------------------------------------------------------------------


@jit
def _room(T: int, wide: int, rows: int) -> Any:
    """Work arrays: two for B_t h, one for x / B_t h, and vectors of length r; the first is h."""
    y, z, ratio = (
        zeros(T, wide, np.float64), zeros(T, wide, np.float64), zeros(T, wide, np.float64)
    )  # fmt: skip
    return y, z, ratio, zeros(6, rows, np.float64)


@jit
def _improve(
    x: Any, G: Any, w: Any, s: Any, A: Any, V: Any, H: Any, j: int, c: int, newton: bool,
    steps: int, tol: float, room: Any, hsum: Any,
) -> None:  # fmt: skip
    """Column j of H, whose entries x and rows G are given; x / B_t h and h are left in ``room``."""
    y, z, ratio, vectors = room
    r = len(H)
    h, new, linear = vectors[1], vectors[2], vectors[3]
    _begin(w, s, V, H, j, h, linear)
    missed = _product(x, G, h, r, c, y)
    if steps > 0 and missed > 0:
        _lift(x, G, w, s, c, y, h)
        _product(x, G, h, r, c, y)
    if steps > 0:
        _scale(x, w, linear, A, h, r, c, y, vectors)
    least = gain = 0.0
    for step in range(steps):
        if newton:
            _newton(x, G, w, linear, A, h, r, c, y, z, new, vectors)
            gain = _finish(x, G, w, linear, A, h, r, c, y, z, ratio, new, vectors, H, j)
        if not newton or not gain >= 0:
            _multiply(x, G, w, linear, A, h, r, c, y, ratio, new, vectors)
            gain = _finish(x, G, w, linear, A, h, r, c, y, z, ratio, new, vectors, H, j)
            gain = abs(gain)
        h, new, y, z = new, h, z, y
        if step == 0:
            least = tol * tol * gain
        if gain <= least:
            break
    if steps == 0:
        _finish(x, G, w, linear, A, h, r, c, y, z, ratio, h, vectors, H, j)
    for k in range(r):
        vectors[0, k] = h[k]
        hsum[k] += h[k]


@jit
def _begin(w: Any, s: Any, V: Any, H: Any, j: int, h: Any, linear: Any) -> None:
    """h and sum_t w_t s_t - v of a column."""
    v = j if V.shape[1] > 1 else 0
    for k in range(len(H)):
        h[k], linear[k] = H[k, j], -V[k, v]
        for t in range(len(w)):
            linear[k] += w[t] * s[t, k]


@jit
def _product(x: Any, G: Any, h: Any, r: int, c: int, y: Any) -> float:
    """y_t = G_t'h; the sum of the x_i with nothing in y_t."""
    rows, nothing, least, missed = len(h), splat(y, 0), splat(y, _FLOOR), splat(y, 0)
    for t in range(len(y)):
        for i in range(0, c, VECTOR):
            a = b = nothing
            for k in range(r):
                own = splat(y, h[k])
                a = a + own * load(G, t * rows + k, i)
                b = b + own * load(G, t * rows + k, i + TILE)
            missed = missed + where_at_most(a, least, load(x, 0, i), nothing)
            missed = missed + where_at_most(b, least, load(x, 0, i + TILE), nothing)
            store(maximum(a, least), y, t, i)
            store(maximum(b, least), y, t, i + TILE)
    return total(missed)


@jit
def _lift(x: Any, G: Any, w: Any, s: Any, c: int, y: Any, h: Any) -> None:
    """Raise h where an x_i has nothing in y_t: by equal parts of x_i from all that could add to it.

    There the objective is infinite, and Newton's method would take for ever.
    """
    rows, r = len(h), s.shape[1]
    for t in range(len(y)):
        for i in range(c):
            if x[0, i] > 0 and y[t, i] <= _FLOOR:
                parts = 0
                for k in range(r):
                    parts += G[t * rows + k, i] > 0
                for k in range(r):
                    if G[t * rows + k, i] > 0:
                        size = 0.0
                        for u in range(len(w)):
                            size += s[u, k]
                        h[k] += x[0, i] / (parts * size)


@inlined
def _root(a: float, b: float, c: float) -> float:
    """The u >= 0 with a u^2 + b u = c, where a and c are not negative; -1 where there is none."""
    root = np.sqrt(b * b + 4 * a * c)
    if b > 0:
        return 2 * c / (b + root)
    return (root - b) / (2 * a) if a > 0 else -1.0


@jit
def _scale(
    x: Any, w: Any, linear: Any, A: Any, h: Any, r: int, c: int, y: Any, vectors: Any
) -> None:
    """Multiply h and y by the number that is best for all of h."""
    slope, mass, sums = vectors[4], 0.0, splat(y, 0)
    for i in range(0, c, TILE):
        sums = sums + load(x, 0, i)
    for t in range(len(w)):
        mass += w[t] * total(sums)
    _slope(linear, A, h, r, slope)
    a = b = 0.0
    for k in range(r):
        a += (slope[k] - linear[k]) * h[k]
        b += linear[k] * h[k]
    factor = _root(max(a, 0.0), b, mass)
    if factor >= 0:
        for k in range(r):
            h[k] *= factor
        for t in range(len(y)):
            for i in range(0, c, TILE):
                store(maximum(splat(y, factor) * load(y, t, i), splat(y, _FLOOR)), y, t, i)


@jit
def _slope(linear: Any, A: Any, h: Any, r: int, out: Any) -> None:
    """out = linear + A h; a row of A is zero where its diagonal entry is."""
    for k in range(r):
        out[k] = linear[k]
    for j in range(r):
        if A[j, j] > 0:
            for k in range(r):
                out[k] += h[j] * A[j, k]


@jit
def _newton(
    x: Any, G: Any, w: Any, linear: Any, A: Any, h: Any, r: int, c: int, y: Any, z: Any, new: Any,
    vectors: Any,
) -> None:  # fmt: skip
    """One Newton step for each entry of h in turn, into ``new``; z follows as y would.

    What an entry's change does to z is added as z is read for the next entry.
    """
    rows, slope, least = len(h), vectors[4], splat(y, _FLOOR)
    _slope(linear, A, h, r, slope)
    before, change, source = 0, 0.0, y
    for k in range(r):
        first, second = slope[k], A[k, k]
        for t in range(len(w)):
            moved, up, bent = splat(y, change), splat(y, 0), splat(y, 0)
            for i in range(0, c, TILE):
                now = load(source, t, i) + moved * load(G, t * rows + before, i)
                now = maximum(now, least)
                store(now, z, t, i)
                part = load(G, t * rows + k, i) / now
                weighted = load(x, 0, i) * part
                up, bent = up + weighted, bent + weighted * part
            first -= w[t] * total(up)
            second += w[t] * total(bent)
        if second > 0:
            new[k] = max(h[k] - first / second, 0.0)
        else:
            new[k] = 0.0 if first > 0 else h[k]
        before, change, source = k, new[k] - h[k], z
        if A[k, k] > 0:
            for i in range(r):
                slope[i] += change * A[k, i]


@jit
def _multiply(
    x: Any, G: Any, w: Any, linear: Any, A: Any, h: Any, r: int, c: int, y: Any, ratio: Any,
    new: Any, vectors: Any,
) -> None:  # fmt: skip
    """One multiplicative step into ``new``; A counts as the diagonal matrix of its rows' sizes."""
    slope, sums, rows = vectors[4], vectors[5], len(h)
    sums[:] = 0
    for t in range(len(w)):
        for i in range(0, c, TILE):
            store(splat(y, w[t]) * load(x, 0, i) / load(y, t, i), ratio, t, i)
        _add_products(ratio, t, G, t * rows, c, vectors, 5)
    _slope(linear, A, h, r, slope)
    for k in range(r):
        size = 0.0
        for i in range(r):
            size += abs(A[k, i])
        to = _root(size, slope[k] - size * h[k], sums[k] * h[k])
        new[k] = to if to >= 0 else h[k]


@inlined
def _add_products(a: Any, row: int, G: Any, top: int, c: int, out: Any, to: int) -> None:
    """out[to] += G_t a[row], G_t the rows of G from ``top`` on, as many as out has columns."""
    for k in range(0, out.shape[1], TILE):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = splat(G, 0)
        for i in range(0, c, TILE):
            own = load(a, row, i)
            s0 = s0 + own * load(G, top + k, i)
            s1 = s1 + own * load(G, top + k + 1, i)
            s2 = s2 + own * load(G, top + k + 2, i)
            s3 = s3 + own * load(G, top + k + 3, i)
            s4 = s4 + own * load(G, top + k + 4, i)
            s5 = s5 + own * load(G, top + k + 5, i)
            s6 = s6 + own * load(G, top + k + 6, i)
            s7 = s7 + own * load(G, top + k + 7, i)
        store(load(out, to, k) + totals(s0, s1, s2, s3, s4, s5, s6, s7), out, to, k)


@jit
def _finish(
    x: Any, G: Any, w: Any, linear: Any, A: Any, h: Any, r: int, c: int, y: Any, z: Any,
    ratio: Any, new: Any, vectors: Any, H: Any, j: int,
) -> float:  # fmt: skip
    """Put ``new``, in H's type, into H; z_t = G_t'new, x / z_t; a lower bound of what is gained."""
    slope, middle = vectors[4], vectors[5]
    for k in range(r):
        H[k, j] = new[k]
        new[k] = H[k, j]
        middle[k] = (h[k] + new[k]) / 2
    _slope(linear, A, middle, r, slope)
    _product(x, G, new, r, c, z)
    gain, one, half, third = 0.0, splat(y, 1), splat(y, 1 / 2), splat(y, 1 / 3)
    for t in range(len(w)):
        sums = splat(y, 0)
        for i in range(0, c, TILE):
            now = load(z, t, i)
            inverse = one / now
            q = load(x, 0, i) * inverse
            store(q, ratio, t, i)
            moved = now - load(y, t, i)
            p = moved * inverse
            sums = sums + q * moved * (one + p * (half + p * third))
        gain += w[t] * total(sums)
    for k in range(r):
        gain -= slope[k] * (new[k] - h[k])
    return gain


@jit
def _value(x: Any, G: Any, h: Any, r: int, c: int) -> float:
    """Sum of x log(G'h)."""
    sums, least = splat(G, 0), splat(G, _FLOOR)
    for i in range(0, c, VECTOR):
        a = b = splat(G, 0)
        for k in range(r):
            own = splat(G, h[k])
            a = a + own * load(G, k, i)
            b = b + own * load(G, k, i + TILE)
        sums = sums + load(x, 0, i) * log(maximum(a, least))
        sums = sums + load(x, 0, i + TILE) * log(maximum(b, least))
    return total(sums)
