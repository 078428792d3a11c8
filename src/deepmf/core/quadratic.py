"""Convex quadratics of one matrix: the subproblem of every block, and the surrogate of squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dsyev

Array = NDArray[np.floating]
Side = Array | float
"""One side of a Kronecker term: a symmetric matrix, or a number standing for that multiple of I."""

_SMALLEST = 1e-12
"""Diagonal entries are taken as at least this part of the largest one."""

Block = tuple[slice, slice]
"""Some rows and columns of a matrix."""


@dataclass(frozen=True)
class Quadratic:
    r"""f(M) = 1/2 sum_i <M, A_i M B_i> - <M, C> + const.

    ::

        grad f(M)        = sum_i A_i M B_i - C
        f(M + D) - f(M)  = <grad f(M), D> + 1/2 sum_i <D, A_i D B_i>
        Lipschitz        = sum_i lmax(A_i) lmax(B_i)      (exact for a single term)
        through(L, R)    : M -> f(L M R)

    Sums merge Kronecker terms that share a side, so a model's block is a single term; a
    regularizer may bring a second one.

    Parameters
    ----------
    terms : tuple of (A, B)
        Symmetric positive semidefinite matrices, or numbers for multiples of the identity.
    C : array broadcastable to M, or float
        The linear part.
    const : float
        The constant part, which only `value` needs.
    """

    terms: tuple[tuple[Side, Side], ...] = ()
    C: Array | float = 0.0
    const: float = 0.0
    __array_ufunc__ = None  # a NumPy number on the left leaves the product to __rmul__

    @classmethod
    def of(cls, A: Side = 1.0, B: Side = 1.0, C: Array | float = 0.0) -> Quadratic:
        """Quadratic with a single Kronecker term."""
        return cls(((A, B),), C)

    @property
    def column_separable(self) -> bool:
        """Whether f is a sum over the columns of M: no term mixes columns."""
        return all(isinstance(B, float) for _, B in self.terms)

    @property
    def T(self) -> Quadratic:
        """The function f as one of M'."""
        C = self.C if isinstance(self.C, float) else self.C.T
        return Quadratic(tuple((B, A) for A, B in self.terms), C, self.const)

    @property
    def shift(self) -> tuple[float, Array | float] | None:
        """(tau, V) of ``tau/2 ||M||^2 - <V, M> + const``; None where a side is a matrix."""
        tau = 0.0
        for A, B in self.terms:
            if not (isinstance(A, float) and isinstance(B, float)):
                return None
            tau += A * B
        return tau, self.C

    def through(self, L: Array | None, R: Array | None, M: Array | None = None) -> Quadratic:
        """M -> f(L M R); None stands for the identity. Exact, so it holds for every M.

        ::

            A_i -> L' A_i L,   B_i -> R B_i R',   C -> L' C R'
        """
        if L is None and R is None:
            return self
        terms = tuple(
            (_between(L, A), _between(None if R is None else R.T, B)) for A, B in self.terms
        )
        C = self.C
        if not isinstance(C, float):
            C = C if L is None else L.T @ C
            C = C if R is None else C @ R.T
        return Quadratic(terms, C, self.const)

    def value(self, M: Array) -> float:
        """f(M), which loses digits to cancellation where it is small beside ``const``."""
        half = 0.5 * self.hessian(M) - self.C
        return self.const + float(np.sum(M * half, dtype=np.float64))

    def hessian(self, M: Array) -> Array:
        """sum_i A_i M B_i."""
        out = np.zeros_like(M)
        for A, B in self.terms:
            out += _right(_left(A, M), B)
        return out

    def gradient(self, M: Array) -> Array:
        """sum_i A_i M B_i - C."""
        return self.hessian(M) - self.C

    def change(self, M: Array, D: Array) -> float:
        """f(M + D) - f(M), free of the cancellation of two values."""
        return float(np.sum(self.gradient(M) * D, dtype=np.float64)) + 0.5 * float(
            np.sum(D * self.hessian(D), dtype=np.float64)
        )

    def restricted(self, M: Array, block: Block) -> Quadratic:
        """f as a function of a block of M alone, all else in M as it is.

        ::

            A_i -> A_i[rows, rows],   B_i -> B_i[columns, columns],
            C -> C[block] - sum_i (A_i M_0 B_i)[block],   M_0 = M with zeros in the block
        """
        rest = M.copy()
        rest[block] = 0
        rows, columns = block
        terms = tuple((_part(A, rows), _part(B, columns)) for A, B in self.terms)
        return Quadratic(terms, -self.gradient(rest)[block])

    def lipschitz(self) -> float:
        """sum_i lmax(A_i) lmax(B_i): bounds the gradient's Lipschitz constant."""
        return sum(largest_eigenvalue(A) * largest_eigenvalue(B) for A, B in self.terms)

    def curvatures(self) -> Array:
        """tau such that ``1/2 sum tau_ik d_ik^2`` lies above ``1/2 sum_i <D, A_i D B_i>``.

        The sum over i of ``lmax(A~) A_ii lmax(B~) B_kk`` with ``A~_ij = A_ij / sqrt(A_ii A_jj)``.
        """
        with np.errstate(over="ignore"):
            bounds = [_bound(A)[:, None] * _bound(B) for A, B in self.terms]
        return np.asarray(sum(bounds)) if bounds else np.zeros((1, 1))

    def astype(self, dtype: np.dtype) -> Quadratic:
        """The function f in another floating-point type."""
        terms = tuple((_cast(A, dtype), _cast(B, dtype)) for A, B in self.terms)
        return Quadratic(terms, _cast(self.C, dtype), self.const)

    def __add__(self, other: Quadratic) -> Quadratic:
        if not isinstance(other, Quadratic):
            return NotImplemented  # another surrogate, which knows how to add a quadratic
        terms = list(self.terms)
        for A, B in other.terms:
            for i, (A0, B0) in enumerate(terms):
                merged = _merge(A0, B0, A, B)
                if merged is not None:
                    terms[i] = merged
                    break
            else:
                terms.append((A, B))
        return Quadratic(tuple(terms), self.C + other.C, self.const + other.const)

    def __rmul__(self, weight: float) -> Quadratic:
        weight = float(weight)  # a NumPy number would pass for a matrix
        terms = tuple((weight * A, B) for A, B in self.terms)
        return Quadratic(terms, weight * self.C, weight * self.const)


def largest_eigenvalue(A: Side) -> float:
    """lmax(A) of a symmetric positive semidefinite matrix or of a multiple of the identity."""
    if isinstance(A, float):
        return A
    values, _, failed = dsyev(A, compute_v=0)  # eigvalsh takes several times as long to call
    if failed:
        raise np.linalg.LinAlgError("The eigenvalues of a block's Hessian could not be computed.")
    return max(float(values[-1]), 0.0)


def _bound(A: Side) -> Array:
    """d such that diag(d) - A is positive semidefinite, in proportion to A's own diagonal."""
    if isinstance(A, float):
        return np.array([A])
    d = A.diagonal().astype(np.float64, copy=False)
    if not 0 < (top := d.max()) < np.inf:
        return np.zeros(len(d)) if top == 0 else np.full(len(d), np.inf)
    d = np.maximum(d, _SMALLEST * top)
    root = np.sqrt(d)
    return largest_eigenvalue(A / root / root[:, None]) * d


def _left(A: Side, M: Array) -> Array:
    return A * M if isinstance(A, float) else A @ M


def _right(M: Array, B: Side) -> Array:
    return (M if B == 1.0 else M * B) if isinstance(B, float) else M @ B


def _between(L: Array | None, A: Side) -> Side:
    """L' A L."""
    if L is None:
        return A
    if isinstance(A, float):
        return L.T @ L if A == 1.0 else A * (L.T @ L)
    return L.T @ A @ L


def _part(A: Side, index: slice) -> Side:
    return A if isinstance(A, float) else np.ascontiguousarray(A[index, index])


def _cast(A: Side, dtype: np.dtype) -> Side:
    return A if isinstance(A, float) else A.astype(dtype, copy=False)


def _sum(a: float, A: Side, b: float, B: Side) -> Side:
    """a A + b B, where a number stands for that multiple of the identity."""
    if isinstance(A, float) and isinstance(B, float):
        return a * A + b * B
    size = len(A) if isinstance(B, float) else len(B)  # type: ignore[arg-type]
    eye = np.eye(size)
    return a * (A * eye if isinstance(A, float) else A) + b * (
        B * eye if isinstance(B, float) else B
    )


def _merge(A0: Side, B0: Side, A: Side, B: Side) -> tuple[Side, Side] | None:
    """(A0, B0) + (A, B) as one Kronecker term, where the two share a side."""
    if isinstance(A0, float) and isinstance(A, float):
        return 1.0, _sum(A0, B0, A, B)
    if isinstance(B0, float) and isinstance(B, float):
        return _sum(B0, A0, B, A), 1.0
    if _equal(B0, B):
        return _sum(1.0, A0, 1.0, A), B
    return None


def _equal(A: Side, B: Side) -> bool:
    """Whether two sides are the same matrix."""
    if isinstance(A, float) or isinstance(B, float):
        return False
    return A is B or np.array_equal(A, B)
