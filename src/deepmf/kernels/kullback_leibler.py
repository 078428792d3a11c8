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

_TOGETHER = 4
"""Entries of h whose slopes are formed together."""

_BLOCK = 16
"""Columns of a dense X that are copied together."""


# --- the passes ----------------------------------------------------------------------------


@jit
def update_sparse(
    data: Any, indices: Any, indptr: Any, w: Any, B: Any, s: Any, A: Any, V: Any, H: Any,
    first: int, last: int, newton: bool, steps: int, tol: float, K: Any, hsum: Any,
) -> None:  # fmt: skip
    """Columns first, ..., last - 1 of an X in CSC form: better H, K_t += (x / B_t h) h', hsum += h.

    B and K (T x m x wide), w (T), s (T x r), A (r x r), hsum (r) are in float64. Columns take at
    most ``steps`` steps, Newton's or multiplicative ones; they end at one that gains no more than
    tol^2 times what the first did. Without steps only the sums are formed.
    """
    T, wide = len(w), B.shape[2]
    longest = _longest(indptr, first, last)
    G, x = zeros(T * wide, longest, B.dtype), zeros(1, longest, B.dtype)
    room = _room(T, longest, wide)
    for j in range(first, last):
        p, end = indptr[j], indptr[j + 1]
        c = _gather(data, indices, p, end, x)
        for t in range(T):
            _gather_rows(indices, p, end, B[t], G, t * wide)
        _improve(x, G, w, s, A, V, H, j, c, newton, steps, tol, room, hsum)
        for t in range(T):
            _add_to_rows(room[2], t, indices, p, end, room[5], K[t])


@jit
def update_dense(
    X: Any, w: Any, Bt: Any, s: Any, A: Any, V: Any, H: Any, first: int, last: int, newton: bool,
    steps: int, tol: float, Kt: Any, hsum: Any,
) -> None:  # fmt: skip
    """`update_sparse` for an array, with every B_t and K_t transposed (T x rows x wide)."""
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
            h[j] = room[6]
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


@inlined
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
def _add_to_rows(ratio: Any, t: int, indices: Any, p: int, end: int, h: Any, out: Any) -> None:
    """out[indices[i]] += ratio[t, i - p] h, p <= i < end; h is the first row of a matrix."""
    for i in range(p, end):
        row, q = indices[i], splat(out, ratio[t, i - p])
        for k in range(0, out.shape[1], TILE):
            store(load(out, row, k) + q * load(h, 0, k), out, row, k)


@inlined
def _copy_columns(X: Any, begin: int, width: int, out: Any) -> None:
    """Columns of an array as rows."""
    for i in range(len(X)):
        for j in range(width):
            out[j, i] = X[i, begin + j]


# --- one column ----------------------------------------------------------------------------


@inlined
def _room(T: int, wide: int, rows: int) -> Any:
    """Work arrays: B_t h before and after a step, x / B_t h; a few sums; and vectors of length r.

    The first of these is h, as the only row of a matrix.
    """
    y, z, ratio = zeros(T, wide, np.float64), zeros(T, wide, np.float64), zeros(T, wide, np.float64)
    sums, products = zeros(3, TILE, np.float64), zeros(1, rows, np.float64)
    codes, new, linear = zeros(1, rows, np.float64), np.zeros(rows), np.zeros(rows)
    return y, z, ratio, sums, products, codes, codes[0], new, linear, np.zeros(rows), np.zeros(rows)


@inlined
def _improve(
    x: Any, G: Any, w: Any, s: Any, A: Any, V: Any, H: Any, j: int, c: int, newton: bool,
    steps: int, tol: float, room: Any, hsum: Any,
) -> None:  # fmt: skip
    """Column j of H, whose entries x and rows G are given; x / B_t h and h are left in ``room``."""
    y, z, ratio, sums, products, _, h, new, linear, slope, middle = room
    r = len(H)
    _begin(w, s, V, H, j, h, linear)
    lifted = steps == 0
    while _product(x, G, h, r, c, y) > 0 and not lifted:
        _lift(x, G, w, s, c, y, h)
        lifted = True
    if steps > 0:
        _scale(x, w, linear, A, h, r, c, y, slope)
    least, step, careful = 0.0, 0, not newton
    while True:
        if steps == 0:
            _accept(h, r, y, c, new, z)
        elif careful:
            _multiply(x, G, w, linear, A, h, r, c, y, ratio, new, slope, products)
        else:
            _newton(x, G, w, linear, A, h, r, c, y, z, new, slope, sums)
        gain = _finish(x, G, w, linear, A, h, r, c, y, z, ratio, new, slope, middle, H, j)
        if not careful and not gain >= 0:
            careful = True
            continue
        _accept(new, r, z, c, h, y)
        least = tol * tol * abs(gain) if step == 0 else least
        step, careful = step + 1, not newton
        if step >= steps or abs(gain) <= least:
            break
    for k in range(r):
        hsum[k] += h[k]


@inlined
def _accept(new: Any, r: int, z: Any, c: int, h: Any, y: Any) -> None:
    """h = new and y = z."""
    for k in range(r):
        h[k] = new[k]
    for t in range(len(y)):
        for i in range(0, c, TILE):
            store(load(z, t, i), y, t, i)


@inlined
def _begin(w: Any, s: Any, V: Any, H: Any, j: int, h: Any, linear: Any) -> None:
    """h and sum_t w_t s_t - v of a column."""
    v = j if V.shape[1] > 1 else 0
    for k in range(len(H)):
        h[k], linear[k] = H[k, j], -V[k, v]
        for t in range(len(w)):
            linear[k] += w[t] * s[t, k]


@inlined
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


@inlined
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
                    parts += G[t * rows + k, i] > _FLOOR
                for k in range(r):
                    if G[t * rows + k, i] > _FLOOR:
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


@inlined
def _scale(x: Any, w: Any, linear: Any, A: Any, h: Any, r: int, c: int, y: Any, slope: Any) -> None:
    """Multiply h and y by the number that is best for all of h."""
    mass, sums = 0.0, splat(y, 0)
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
    if 0 <= factor < np.inf:
        for k in range(r):
            h[k] *= factor
        for t in range(len(y)):
            for i in range(0, c, TILE):
                store(maximum(splat(y, factor) * load(y, t, i), splat(y, _FLOOR)), y, t, i)


@inlined
def _slope(linear: Any, A: Any, h: Any, r: int, out: Any) -> None:
    """out = linear + A h; a row of A is zero where its diagonal entry is."""
    for k in range(r):
        out[k] = linear[k]
    for j in range(r):
        if A[j, j] > 0:
            for k in range(r):
                out[k] += h[j] * A[j, k]


@inlined
def _newton(
    x: Any, G: Any, w: Any, linear: Any, A: Any, h: Any, r: int, c: int, y: Any, z: Any, new: Any,
    slope: Any, sums: Any,
) -> None:  # fmt: skip
    """One Newton step for each entry of h in turn, into ``new``; z follows as y would.

    Slopes are those of the present z for four entries at a time, of which each takes the earlier
    ones into account by their second derivatives.
    """
    _slope(linear, A, h, r, slope)
    sums[:] = 0
    _accept(h, r, y, c, new, z)
    before = 0
    for k in range(0, r, _TOGETHER):
        sums[:2] = 0
        for t in range(len(w)):
            _derivatives(x, G, w, t, len(h), before, k, c, z, sums)
        for i in range(_TOGETHER):
            sums[2, i] = 0
            if k + i < r:
                down, bent = slope[k + i] - sums[0, i], sums[0, _TOGETHER + i] + A[k + i, k + i]
                for j in range(i):
                    down += sums[1, i * (i - 1) // 2 + j] * sums[2, j]
                if bent > 0:
                    new[k + i] = max(h[k + i] - down / bent, 0.0)
                else:
                    new[k + i] = 0.0 if down > 0 else h[k + i]
                sums[2, i] = new[k + i] - h[k + i]
                if A[k + i, k + i] > 0:
                    for j in range(r):
                        slope[j] += sums[2, i] * A[k + i, j]
        before = k


@inlined
def _derivatives(
    x: Any, G: Any, w: Any, t: int, rows: int, before: int, k: int, c: int, z: Any, sums: Any,
) -> None:  # fmt: skip
    """Add sum_i x_i e_ai, sum_i x_i e_ai^2 and sum_i x_i e_ai e_bi to the sums, times w_t.

    e_a and e_b are two of the rows k to k + 3 of G_t, divided by z_t; to z_t, the last changes are
    added first, those of the entries of h from ``before`` on.
    """
    top, last = t * rows + k, t * rows + before
    d0, d1 = splat(z, sums[2, 0]), splat(z, sums[2, 1])
    d2, d3 = splat(z, sums[2, 2]), splat(z, sums[2, 3])
    one, least = splat(z, 1), splat(z, _FLOOR)
    s0 = s1 = s2 = s3 = s00 = s11 = s22 = s33 = s01 = s02 = s12 = s03 = s13 = s23 = splat(z, 0)
    for i in range(0, c, TILE):
        now = load(z, t, i) + d0 * load(G, last, i) + d1 * load(G, last + 1, i)
        now = now + (d2 * load(G, last + 2, i) + d3 * load(G, last + 3, i))
        now = maximum(now, least)
        store(now, z, t, i)
        now = one / now
        own = load(x, 0, i)
        e0, e1 = now * load(G, top, i), now * load(G, top + 1, i)
        e2, e3 = now * load(G, top + 2, i), now * load(G, top + 3, i)
        f0, f1, f2, f3 = own * e0, own * e1, own * e2, own * e3
        s0, s1, s2, s3 = s0 + f0, s1 + f1, s2 + f2, s3 + f3
        s00, s11, s22, s33 = s00 + f0 * e0, s11 + f1 * e1, s22 + f2 * e2, s33 + f3 * e3
        s01, s02, s12 = s01 + f0 * e1, s02 + f0 * e2, s12 + f1 * e2
        s03, s13, s23 = s03 + f0 * e3, s13 + f1 * e3, s23 + f2 * e3
    weight = splat(z, w[t])
    found = weight * totals(s0, s1, s2, s3, s00, s11, s22, s33)
    store(load(sums, 0, 0) + found, sums, 0, 0)
    found = weight * totals(s01, s02, s12, s03, s13, s23, splat(z, 0), splat(z, 0))
    store(load(sums, 1, 0) + found, sums, 1, 0)


@inlined
def _multiply(
    x: Any, G: Any, w: Any, linear: Any, A: Any, h: Any, r: int, c: int, y: Any, ratio: Any,
    new: Any, slope: Any, products: Any,
) -> None:  # fmt: skip
    """One multiplicative step into ``new``; A counts as the diagonal matrix of its rows' sizes."""
    products[:] = 0
    for t in range(len(w)):
        for i in range(0, c, TILE):
            store(splat(y, w[t]) * load(x, 0, i) / load(y, t, i), ratio, t, i)
        _add_products(ratio, t, G, t * len(h), c, products, 0)
    _slope(linear, A, h, r, slope)
    for k in range(r):
        size = 0.0
        for i in range(r):
            size += abs(A[k, i])
        to = _root(size, slope[k] - size * h[k], products[0, k] * h[k])
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


@inlined
def _finish(
    x: Any, G: Any, w: Any, linear: Any, A: Any, h: Any, r: int, c: int, y: Any, z: Any,
    ratio: Any, new: Any, slope: Any, middle: Any, H: Any, j: int,
) -> float:  # fmt: skip
    """Put ``new``, in H's type, into H; z_t = G_t'new, x / z_t; a lower bound of what is gained."""
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


@inlined
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
