"""The one subproblem of every model: a convex quadratic in one matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dsyev

Array = NDArray[np.floating]
Side = Array | float
"""One side of a Kronecker term: a symmetric matrix, or a number standing for that multiple of I."""

Block = tuple[slice, slice]
"""Some rows and columns of a matrix."""


@dataclass(frozen=True)
class Quadratic:
    r"""f(M) = 1/2 sum_i <M, A_i M B_i> - <M, C> + const.

    ::

        grad f(M)        = sum_i A_i M B_i - C
        f(M + D) - f(M)  = <grad f(M), D> + 1/2 sum_i <D, A_i D B_i>
        Lipschitz        = sum_i lmax(A_i) lmax(B_i)      (exact for a single term)

    The losses need one term; a regulariser may bring a second that does not merge with it.

    Parameters
    ----------
    terms : tuple of (A, B)
        Symmetric positive semidefinite matrices, or numbers for multiples of the identity.
    C : array broadcastable to M, or float
        The linear part.
    """

    terms: tuple[tuple[Side, Side], ...] = ()
    C: Array | float = 0.0
    __array_ufunc__ = None  # a NumPy number on the left leaves the product to __rmul__

    @classmethod
    def of(cls, A: Side = 1.0, B: Side = 1.0, C: Array | float = 0.0) -> Quadratic:
        """Quadratic with a single Kronecker term (section 2's table)."""
        return cls(((A, B),), C)

    @property
    def column_separable(self) -> bool:
        """Whether f is a sum over the columns of M: no term mixes columns."""
        return all(isinstance(B, float) for _, B in self.terms)

    @property
    def T(self) -> Quadratic:
        """The same function of M transposed."""
        C = self.C if isinstance(self.C, float) else self.C.T
        return Quadratic(tuple((B, A) for A, B in self.terms), C)

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

    def astype(self, dtype: np.dtype) -> Quadratic:
        """The same function in another floating-point type."""
        return Quadratic(
            tuple((_cast(A, dtype), _cast(B, dtype)) for A, B in self.terms), _cast(self.C, dtype)
        )

    def __add__(self, other: Quadratic) -> Quadratic:
        terms = list(self.terms)
        for A, B in other.terms:
            for i, (A0, B0) in enumerate(terms):
                merged = _merge(A0, B0, A, B)
                if merged is not None:
                    terms[i] = merged
                    break
            else:
                terms.append((A, B))
        return Quadratic(tuple(terms), self.C + other.C)

    def __rmul__(self, weight: float) -> Quadratic:
        weight = float(weight)  # NumPy's own numbers would pass for matrices
        return Quadratic(tuple((weight * A, B) for A, B in self.terms), weight * self.C)


def largest_eigenvalue(A: Side) -> float:
    """lmax(A) of a symmetric positive semidefinite matrix or of a multiple of the identity."""
    if isinstance(A, float):
        return A
    values, _, failed = dsyev(A, compute_v=0)  # NumPy's own takes several times as long to call
    if failed:
        raise np.linalg.LinAlgError("The eigenvalues of a block's Hessian could not be computed.")
    return max(float(values[-1]), 0.0)


def _left(A: Side, M: Array) -> Array:
    return A * M if isinstance(A, float) else A @ M


def _right(M: Array, B: Side) -> Array:
    return (M if B == 1.0 else M * B) if isinstance(B, float) else M @ B


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
    """(A0, B0) + (A, B) as one Kronecker term, where the two share an identity side."""
    if isinstance(A0, float) and isinstance(A, float):
        return 1.0, _sum(A0, B0, A, B)
    if isinstance(B0, float) and isinstance(B, float):
        return _sum(B0, A0, B, A), 1.0
    return None
