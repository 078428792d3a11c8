"""SIMD vectors as a Numba type: v + w, v * w, load, store, choose.

A vector is 64 bytes wide whatever the machine: where registers are narrower the compiler takes
several for one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

BYTES = 64

I32, I64 = ir.IntType(32), ir.IntType(64)


class Vector(types.Type):
    """As many numbers of one type as fit in 64 bytes."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, register(kind.dtype))


def element(dtype: Any) -> Any:
    """LLVM's name for float32 or float64."""
    return ir.FloatType() if dtype == types.float32 else ir.DoubleType()


def count(dtype: Any) -> int:
    """Numbers of a type in a vector."""
    return BYTES * 8 // dtype.bitwidth


def register(dtype: Any, width: int | None = None) -> Any:
    """LLVM vector of a type, with 64 bytes unless its number of entries is given."""
    return ir.VectorType(element(dtype), width or count(dtype))


# --- what goes into LLVM's code ------------------------------------------------------------


def emit_splat(builder: Any, kind: Any, x: Any) -> Any:
    """x in every entry."""
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, x, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(I32, kind.count), None))


def emit_address(context: Any, builder: Any, kind: Any, array: Any, i: Any, j: Any) -> Any:
    """Address of entry (i, j) of a C-contiguous matrix."""
    if kind.ndim != 2 or kind.layout != "C":
        raise TypeError(f"Vectors are read from and written to C-contiguous matrices, not {kind}.")
    view = context.make_array(kind)(context, builder, array)
    row = builder.mul(i, cgutils.unpack_tuple(builder, view.shape)[1])
    return builder.gep(view.data, [builder.add(row, j)])


def emit_load(builder: Any, kind: Any, address: Any) -> Any:
    """A vector from entries in a row, which need not begin at a multiple of 64 bytes."""
    loaded = builder.load(builder.bitcast(address, kind.as_pointer()))
    loaded.align = 8 if isinstance(kind.element, ir.DoubleType) else 4
    return loaded


def emit_store(builder: Any, v: Any, address: Any) -> None:
    """A vector into entries in a row."""
    stored = builder.store(v, builder.bitcast(address, v.type.as_pointer()))
    stored.align = 8 if isinstance(v.type.element, ir.DoubleType) else 4


def emit_call(builder: Any, name: str, result: Any, arguments: list[Any], **flags: Any) -> Any:
    """One of LLVM's own functions."""
    kind = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(
        cgutils.get_or_insert_function(builder.module, kind, name), arguments, **flags
    )


def emit_prefetch(builder: Any, address: Any) -> None:
    """Ask for a cache line that will soon be read; addresses beyond the data do no harm."""
    pointer = ir.IntType(8).as_pointer()
    to_level_two, of_data = ir.Constant(I32, 2), ir.Constant(I32, 1)
    arguments = [builder.bitcast(address, pointer), ir.Constant(I32, 0), to_level_two, of_data]
    emit_call(builder, "llvm.prefetch.p0i8", ir.VoidType(), arguments)


def suffix(kind: Any) -> str:
    """Suffix for the vector type in the names of LLVM intrinsics."""
    return f"v{kind.count}f{64 if isinstance(kind.element, ir.DoubleType) else 32}"


# --- what kernels are written in -----------------------------------------------------------


def _arithmetic(sign: Callable[..., Any], instruction: str) -> None:
    @infer_global(sign)
    class _OfTwoVectors(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            alike = len(args) == 2 and isinstance(args[0], Vector) and args[0] == args[1]
            return signature(args[0], *args) if alike else None

    @lower_builtin(sign, Vector, Vector)
    def _lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args, flags=("contract",))


for _sign, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _arithmetic(_sign, _instruction)


@intrinsic
def lanes(typing: Any, M: Any) -> Any:
    """Entries of M in a vector, as a constant."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return ir.Constant(I64, count(M.dtype))

    return types.intp(M), codegen


@intrinsic
def splat(typing: Any, M: Any, x: Any) -> Any:
    """x, x, ..., x, in M's type."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return emit_splat(builder, register(M.dtype), args[1])

    return Vector(M.dtype)(M, M.dtype), codegen


@intrinsic
def load(typing: Any, M: Any, i: Any, j: Any) -> Any:
    """M[i, j], M[i, j + 1], ... of a C-contiguous matrix."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        address = emit_address(context, builder, sig.args[0], *args)
        return emit_load(builder, register(M.dtype), address)

    return Vector(M.dtype)(M, types.intp, types.intp), codegen


@intrinsic
def store(typing: Any, v: Any, M: Any, i: Any, j: Any) -> Any:
    """v into M[i, j], M[i, j + 1], ...."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        address = emit_address(context, builder, sig.args[1], *args[1:])
        emit_store(builder, args[0], address)
        return context.get_dummy_value()

    return types.void(v, M, types.intp, types.intp), codegen


@intrinsic
def prefetch(typing: Any, M: Any, i: Any, j: Any) -> Any:
    """Ask for M[i, j], which will soon be read."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        emit_prefetch(builder, emit_address(context, builder, sig.args[0], *args))
        return context.get_dummy_value()

    return types.void(M, types.intp, types.intp), codegen


@intrinsic
def where_at_most(typing: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """x where a <= b, y elsewhere, and where a or b is NaN."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<=", args[0], args[1]), args[2], args[3])

    return x(a, b, x, y), codegen


@intrinsic
def maximum(typing: Any, a: Any, b: Any) -> Any:
    """The larger of a and b; a where one of them is NaN."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[1], args[0])

    return a(a, b), codegen


@intrinsic
def minimum(typing: Any, a: Any, b: Any) -> Any:
    """The smaller of a and b; a where one of them is NaN."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[1], args[0])

    return a(a, b), codegen


@intrinsic
def sqrt(typing: Any, v: Any) -> Any:
    """The square root of each entry."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = args[0].type
        return emit_call(builder, f"llvm.sqrt.{suffix(kind)}", kind, [args[0]])

    return v(v), codegen


@intrinsic
def total(typing: Any, v: Any) -> Any:
    """The sum of the entries."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return emit_total(builder, args[0])

    return v.dtype(v), codegen


@intrinsic
def totals(typing: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    """The sums of the entries of each of eight vectors of float64, side by side in one."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return emit_totals(builder, list(args))

    return a(a, a, a, a, a, a, a, a), codegen


def emit_total(builder: Any, v: Any) -> Any:
    """The sum of a vector's entries, in whatever order is quickest."""
    kind = v.type
    name, nothing = f"llvm.vector.reduce.fadd.{suffix(kind)}", ir.Constant(kind.element, -0.0)
    return emit_call(builder, name, kind.element, [nothing, v], fastmath=("reassoc",))


def emit_totals(builder: Any, vectors: list[Any]) -> Any:
    """The sums of the entries of each of some vectors (a power of two of them), side by side.

    Neighbors are folded into one vector, half of the entries of each onto the other half, until
    one is left: fewer instructions than one sum after the other.
    """
    chunk = vectors[0].type.count  # entries that belong to one sum and stand side by side
    while chunk > 1:
        half = chunk // 2
        alone = len(vectors) == 1
        pairs = [(v, v) for v in vectors] if alone else list(zip(vectors[::2], vectors[1::2]))
        count = vectors[0].type.count * (1 if alone else 2)
        first = [k for k in range(count) if k % chunk < half]
        parts = [[ir.Constant(I32, k + shift) for k in first] for shift in (0, half)]
        masks = [ir.Constant(ir.VectorType(I32, len(part)), part) for part in parts]
        vectors = [
            builder.fadd(*(builder.shuffle_vector(*pair, m) for m in masks)) for pair in pairs
        ]
        chunk = half
    return vectors[0]


@intrinsic
def transpose_rows(
    typing: Any, B: Any, rows: Any, p: Any, last: Any, k: Any, G: Any, top: Any, left: Any
) -> Any:
    """G[top + s, left + t] = B[rows[min(p + t, last)], k + s] for s, t < 8, all in float64.

    Columns are interleaved by halves, three times: eight loads, 24 shuffles, eight stores.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        b, given, p, last, k, g, top, left = args
        kind, eight = register(B.dtype), range(8)
        view = context.make_array(rows)(context, builder, given)
        vectors = []
        for t in eight:
            at = builder.add(p, ir.Constant(I64, t))
            at = builder.select(builder.icmp_signed("<", at, last), at, last)
            row = builder.load(builder.gep(view.data, [at]))
            row = row if row.type == I64 else builder.sext(row, I64)
            vectors.append(emit_load(builder, kind, emit_address(context, builder, B, b, row, k)))
        for half in (1, 2, 4):
            low = [k + (k & half) // half * (8 - half) for k in eight]
            masks = [ir.Constant(ir.VectorType(I32, 8), [j + s for j in low]) for s in (0, half)]
            for t in eight:
                if not t & half:
                    pair = vectors[t], vectors[t + half]
                    both = [builder.shuffle_vector(*pair, mask) for mask in masks]
                    vectors[t], vectors[t + half] = both
        for s in eight:
            row = builder.add(top, ir.Constant(I64, s))
            emit_store(builder, vectors[s], emit_address(context, builder, G, g, row, left))
        return context.get_dummy_value()

    n = types.intp
    return types.void(B, rows, n, n, n, G, n, n), codegen


_LOG = (0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784,
        0.1818357216161805, 0.15313837699209373, 0.14798198605116586)  # fmt: skip
_LN2 = 0.6931471803691238, 1.9082149292705877e-10
"""log 2, of which the first part has few enough digits for products by exponents to be exact."""


@intrinsic
def log(typing: Any, v: Any) -> Any:
    """The natural logarithm of each entry of a vector of positive, normal float64.

    As in fdlibm: v = 2^e (1 + f) with f around 0, and log(1 + f) from a polynomial in f / (2 + f).
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = args[0].type
        whole = ir.VectorType(I64, kind.count)

        def number(x: float) -> Any:
            return ir.Constant(kind, [x] * kind.count)

        def integer(x: int) -> Any:
            return ir.Constant(whole, [x] * kind.count)

        bits = builder.bitcast(args[0], whole)
        # from sqrt(1/2) on, mantissas belong to the next exponent
        shifted = builder.add(bits, integer(0x3FF0000000000000 - 0x3FE6A09E667F3BCD))
        e = builder.sitofp(builder.sub(builder.lshr(shifted, integer(52)), integer(1023)), kind)
        mantissa = builder.and_(shifted, integer(0x000FFFFFFFFFFFFF))
        mantissa = builder.add(mantissa, integer(0x3FE6A09E667F3BCD))
        f = builder.fsub(builder.bitcast(mantissa, kind), number(1))
        s = builder.fdiv(f, builder.fadd(f, number(2)))
        z = builder.fmul(s, s)
        poly = number(0)
        for coefficient in reversed(_LOG):
            poly = builder.fadd(
                builder.fmul(poly, z, flags=("contract",)), number(coefficient), flags=("contract",)
            )
        poly = builder.fmul(poly, z)
        half = builder.fmul(builder.fmul(f, f), number(0.5))
        low = builder.fadd(
            builder.fmul(s, builder.fadd(half, poly)), builder.fmul(e, number(_LN2[1]))
        )
        near = builder.fsub(f, builder.fsub(half, low))
        return builder.fadd(builder.fmul(e, number(_LN2[0])), near)

    return v(v), codegen
