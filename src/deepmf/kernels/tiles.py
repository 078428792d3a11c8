"""Products of thin matrices: a tile of the result stays in registers while a sum runs.

A tile is two vectors wide (or two rows high) and up to eight entries along the thin side, which
makes sixteen sums: enough to keep the arithmetic busy.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from deepmf.kernels.padding import TILE, aligned
from deepmf.kernels.simd import (
    I32,
    I64,
    count,
    emit_address,
    emit_call,
    emit_load,
    emit_prefetch,
    emit_splat,
    emit_store,
    emit_totals,
    lanes,
    register,
    suffix,
)

jit = njit(cache=True, nogil=True, error_model="numpy")
"""Decorator that compiles a kernel."""

inlined = njit(nogil=True, error_model="numpy", forceinline=True)
"""Decorator for functions called so often that passing the arguments would take time."""

zeros = jit(aligned)
"""`aligned` for kernels."""


class _Sums:
    """The sums of a tile: variables for LLVM, which keeps them in registers."""

    def __init__(self, builder: Any, kind: Any, number: int) -> None:
        self.builder = builder
        self.places = [cgutils.alloca_once(builder, kind) for _ in range(number)]
        for place in self.places:
            builder.store(ir.Constant(kind, None), place)

    def add(self, which: int, x: Any, y: Any) -> None:
        place = self.places[which]
        product = self.builder.fmul(x, y, flags=("contract",))
        total = self.builder.fadd(self.builder.load(place), product, flags=("contract",))
        self.builder.store(total, place)

    def __getitem__(self, which: int) -> Any:
        return self.builder.load(self.places[which])


def _emit_read(builder: Any, kind: Any, dtype: Any, address: Any, live: Any = None) -> Any:
    """A vector of numbers that are stored in a type of their own; the first ``live``, then zeros.

    Nothing beyond those is touched.
    """
    stored = register(dtype, kind.count)
    if live is None:
        v = emit_load(builder, stored, address)
    else:
        places = ir.Constant(ir.VectorType(I64, kind.count), [*range(kind.count)])
        within = builder.icmp_signed("<", places, emit_splat(builder, places.type, live))
        pointer = builder.bitcast(address, stored.as_pointer())
        arguments = [pointer, ir.Constant(I32, dtype.bitwidth // 8), within]
        name = f"llvm.masked.load.{suffix(stored)}.p0{suffix(stored)}"
        v = emit_call(builder, name, stored, [*arguments, ir.Constant(stored, None)])
    return v if stored.element == kind.element else builder.fpext(v, kind)


@intrinsic(prefer_literal=True)
def _outer_tile(
    typing: Any, tile: Any, live: Any, ahead: Any, G: Any, X: Any, top: Any, left: Any, B: Any,
    beside: Any, C: Any, at: Any, k: Any,
) -> Any:  # fmt: skip
    """C = B + G'X on rows k, ..., k + tile - 1 and two vectors of columns.

    These begin at ``left`` in X, at ``beside`` in B and at ``at`` in C; X's rows begin at ``top``.
    ``live``, unless None, counts the columns of X that are left. Those ``ahead`` of these will be
    read next; 0: none.
    """
    height, some = tile.literal_value, not isinstance(live, types.NoneType)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, live, ahead, g, x, top, left, b, beside, c, at, k = args
        kind, width = register(C.dtype), ir.Constant(I64, count(C.dtype))
        rows = cgutils.unpack_tuple(builder, context.make_array(G)(context, builder, g).shape)[0]
        sums = _Sums(builder, kind, 2 * height)
        parts = [live, builder.sub(live, width)] if some else [None, None]
        with cgutils.for_range(builder, rows, intp=I64) as loop:
            place = emit_address(context, builder, X, x, builder.add(top, loop.index), left)
            places = [place, builder.gep(place, [width])]
            pair = [_emit_read(builder, kind, X.dtype, p, n) for p, n in zip(places, parts)]
            for place in places:
                emit_prefetch(builder, builder.gep(place, [ahead]))
            weights = emit_address(context, builder, G, g, loop.index, k)
            for t in range(height):
                weight = builder.load(builder.gep(weights, [ir.Constant(I64, t)]))
                for v in (0, 1):
                    sums.add(2 * t + v, emit_splat(builder, kind, weight), pair[v])
        for t in range(height):
            row = builder.add(k, ir.Constant(I64, t))
            to = emit_address(context, builder, C, c, row, at)
            start = emit_address(context, builder, B, b, row, beside)
            for v in (0, 1):
                value = builder.fadd(sums[2 * t + v], emit_load(builder, kind, start))
                emit_store(builder, value, to)
                to, start = builder.gep(to, [width]), builder.gep(start, [width])
        return context.get_dummy_value()

    n = types.intp
    return types.void(tile, n if some else live, n, G, X, n, n, B, n, C, n, n), codegen


@intrinsic(prefer_literal=True)
def _inner_tile(
    typing: Any, tile: Any, ahead: Any, G: Any, k: Any, X: Any, i: Any, j: Any, left: Any,
    width: Any, out: Any, to: Any,
) -> Any:  # fmt: skip
    """out[to : to + 2, k : k + tile] += Y G[k : k + tile]', Y the rows i and j of X, from left on.

    Y has ``width`` columns, G as many and then zeros up to a whole vector. Entries ``ahead`` of the
    present ones will be read next; 0: none.
    """
    height = tile.literal_value

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, ahead, g, k, x, i, j, left, width, o, to = args
        kind, step = register(G.dtype), ir.Constant(I64, count(G.dtype))
        rows = [emit_address(context, builder, X, x, row, left) for row in (i, j)]
        thin = [builder.add(k, ir.Constant(I64, t)) for t in range(height)]
        start = ir.Constant(I64, 0)
        weights = [emit_address(context, builder, G, g, row, start) for row in thin]
        sums = _Sums(builder, kind, 2 * height)

        def add(at: Any, live: Any) -> None:
            places = [builder.gep(row, [at]) for row in rows]
            pair = [_emit_read(builder, kind, X.dtype, place, live) for place in places]
            for place in places:
                emit_prefetch(builder, builder.gep(place, [ahead]))
            for t in range(height):
                weight = emit_load(builder, kind, builder.gep(weights[t], [at]))
                for v in (0, 1):
                    sums.add(2 * t + v, weight, pair[v])

        whole = builder.sdiv(width, step)
        with cgutils.for_range(builder, whole, intp=I64) as loop:
            add(builder.mul(loop.index, step), None)
        done = builder.mul(whole, step)
        with builder.if_then(builder.icmp_signed("<", done, width)):
            add(done, builder.sub(width, done))
        nothing = [ir.Constant(kind, None)] * (TILE - height)
        for v in (0, 1):
            row = builder.add(to, ir.Constant(I64, v))
            place = emit_address(context, builder, out, o, row, k)
            more = emit_totals(builder, [sums[2 * t + v] for t in range(height)] + nothing)
            so_far = emit_load(builder, more.type, place)
            emit_store(builder, builder.fadd(so_far, more), place)
        return context.get_dummy_value()

    n = types.intp
    return types.void(tile, n, G, n, X, n, n, n, n, out, n), codegen


@inlined
def _height(rest: int) -> int:
    """Entries of the thin side in the next tile, chosen so that two are never left over."""
    return 6 if rest == 10 else min(rest, 8)


@inlined
def _outer_strip(
    ahead: int, G: Any, X: Any, top: int, left: int, B: Any, beside: int, C: Any, at: int, k: int
) -> int:
    """One tile; where the next one begins."""
    tile = _height(G.shape[1] - k)
    if tile == 8:
        _outer_tile(8, None, ahead, G, X, top, left, B, beside, C, at, k)
    elif tile == 6:
        _outer_tile(6, None, ahead, G, X, top, left, B, beside, C, at, k)
    elif tile == 4:
        _outer_tile(4, None, ahead, G, X, top, left, B, beside, C, at, k)
    else:
        _outer_tile(2, None, ahead, G, X, top, left, B, beside, C, at, k)
    return k + tile


@jit
def add_outer(G: Any, X: Any, top: int, left: int, width: int, ahead: int, C: Any) -> None:
    """C[:, :width] += G'Y with Y the rows top, ... and columns left, ..., left + width - 1 of X.

    Columns ``ahead`` of them will be read next; 0: none. C has whole vectors.
    """
    step = 2 * lanes(C)
    whole = width - width % step
    for j in range(0, whole, step):
        k = 0
        while k < G.shape[1]:
            k = _outer_strip(ahead, G, X, top, left + j, C, j, C, j, k)
    rest = width - whole
    if rest > 0:
        for k in range(0, G.shape[1], 2):
            _outer_tile(2, rest, ahead, G, X, top, left + whole, C, whole, C, whole, k)


@inlined
def plus_times(C: Any, at: int, A: Any, M: Any, left: int, out: Any) -> None:
    """out = C + A M, two vectors of columns, from ``at`` on in C, ``left`` in M; A is symmetric."""
    k = 0
    while k < len(A):
        k = _outer_strip(0, A, M, 0, left, C, at, out, 0, k)


@jit
def add_inner(
    X: Any, top: int, height: int, left: int, width: int, ahead: int, G: Any, out: Any
) -> None:
    """out += Y G' with Y the given part of X; G is thin and padded by zeros to whole vectors.

    out has a multiple of eight columns and an even number of rows. Entries ``ahead`` of Y's will be
    read next; 0: none.
    """
    for i in range(0, height, 2):
        # the last of an odd number of rows is taken twice, and the second result left behind
        row, other = top + i, top + min(i + 1, height - 1)
        k = 0
        while k < len(G):
            tile = _height(len(G) - k)
            if tile == 8:
                _inner_tile(8, ahead, G, k, X, row, other, left, width, out, i)
            elif tile == 6:
                _inner_tile(6, ahead, G, k, X, row, other, left, width, out, i)
            elif tile == 4:
                _inner_tile(4, ahead, G, k, X, row, other, left, width, out, i)
            else:
                _inner_tile(2, ahead, G, k, X, row, other, left, width, out, i)
            k += tile
