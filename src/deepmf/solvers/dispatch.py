"""Choice between the compiled kernels and NumPy for a block."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.threads import do_in_threads
from deepmf.constraints import (
    Box,
    CappedSimplex,
    Constraint,
    GroupedSparse,
    Nonnegative,
    Simplex,
    Unconstrained,
)
from deepmf.core.quadratic import Array, Quadratic
from deepmf.kernels.loading import load_kernels

if TYPE_CHECKING:
    from deepmf.kernels.descent import Descent

FIRST_ALPHA = 0.05
"""alpha_1 of Algorithm 4; a small value starts with strong extrapolation."""

_LARGEST_RANK = 256
"""Up to here the kernel's loops beat BLAS with NumPy around it (and its work fits in cache)."""

_TASK = 4e6
"""Flops in a thread's task, against the tens of microseconds it takes to hand one over."""

_LARGEST_BLOCK = 100_000
"""Entries up to which overhead, not arithmetic, decides the time of a block updated as a whole."""


def _kind(kernels: ModuleType, constraint: Constraint) -> tuple[int, float, float] | None:
    """The kernel's name for a set. Exact types only: a subclass may project elsewhere."""
    if type(constraint) is Box:
        return kernels.ENTRIES, float(constraint.lower), float(constraint.upper)
    if type(constraint) is GroupedSparse:
        return kernels.GROUPED, float(constraint.sparsity), float(constraint.nonnegative)
    kinds = {
        Unconstrained: (kernels.ENTRIES, -np.inf, np.inf),
        Nonnegative: (kernels.ENTRIES, 0.0, np.inf),
        Simplex: (kernels.SIMPLEX, -np.inf, np.inf),
        CappedSimplex: (kernels.CAPPED, -np.inf, np.inf),
    }
    return kinds.get(type(constraint))


def column_settings(
    constraint: Constraint,
    rank: int,
    dtype: np.dtype,
    size: Array,
    max_iter: int,
    tol: float,
    accelerated: bool,
) -> Descent | None:
    """Settings of the kernels that take each column on its own; None where none applies."""
    kernels = load_kernels()
    kind = None if kernels is None else _kind(kernels, constraint)
    if kernels is None or kind is None or rank > _LARGEST_RANK:
        return None
    number = dtype.type
    return kernels.Descent(
        _full((rank, 1), size, dtype).ravel(), kind[0], number(kind[1]), number(kind[2]),
        max_iter, number(tol * tol), number(FIRST_ALPHA), accelerated,
    )  # fmt: skip


def compiled_solve(
    q: Quadratic,
    constraint: Constraint,
    M: Array,
    size: Array,
    max_iter: int,
    tol: float,
    accelerated: bool,
) -> Array | None:
    """The block solved by a kernel, or ``None`` where none applies."""
    kernels = load_kernels()
    if kernels is None or len(q.terms) != 1:
        return None
    by_column = q.column_separable and constraint.separable is not None
    settings = (
        column_settings(constraint, len(M), M.dtype, size, max_iter, tol, accelerated)
        if by_column
        else column_settings(constraint, 1, M.dtype, size[:1, :1], max_iter, tol, accelerated)
    )
    if settings is None:
        return None
    A, B = q.terms[0]
    dtype = M.dtype.type
    C = frozen(_full(M.shape, q.C, M.dtype))
    M = frozen(np.ascontiguousarray(M))
    if by_column:
        if isinstance(A, float):
            return None
        out = np.empty(M.shape, M.dtype)
        H = _matrix(A if B == 1.0 else float(B) * A, dtype)
        r, n = M.shape
        width = max(128, int(_TASK / (2 * r * (r + 8) * max_iter + 1)))
        tasks = [(k, min(k + width, n)) for k in range(0, n, width)]
        do_in_threads(lambda task: kernels.columns(H, C, M, out, *task, settings), tasks)
        return out
    if M.size > _LARGEST_BLOCK:
        return None
    left, right = not isinstance(A, float), not isinstance(B, float)
    scale = (1.0 if left else float(A)) * (1.0 if right else float(B))
    none = np.empty((0, 0), dtype)
    return kernels.block(
        _matrix(A, dtype) if left else none,
        _matrix(B, dtype) if right else none,
        left,
        right,
        dtype(scale),
        C,
        M,
        frozen(_full(M.shape, size, M.dtype)),
        settings,
    )


def step_ahead(M: Array, before: Array, beta: float, constraint: Constraint) -> None:
    """before <- P(M + beta (M - before)), in place."""
    kernels = load_kernels()
    kind = None if kernels is None else _kind(kernels, constraint)
    if kernels is None or kind is None or constraint.separable is None:
        before[...] = constraint.project(M + M.dtype.type(beta) * (M - before))
    else:
        number = M.dtype.type
        kernels.ahead(M, before, number(beta), kind[0], number(kind[1]), number(kind[2]))


def frozen(M: NDArray) -> NDArray:
    """A read-only view, so that one compiled version serves all."""
    view = M.view()
    view.flags.writeable = False
    return view


def _full(shape: tuple[int, ...], value: Array | float, dtype: np.dtype) -> Array:
    """A new array with the value everywhere; broadcasting takes several times as long to call."""
    out = np.empty(shape, dtype)
    out[...] = value
    return out


def _matrix(A: object, dtype: type[np.floating]) -> Array:
    return np.ascontiguousarray(A, dtype=dtype)
