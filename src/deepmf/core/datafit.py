"""Data fits: how far a product is from its target, and the surrogates of that distance."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from deepmf.core.parameters import Parametrized
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.surrogate import Surrogate


class Datafit(Parametrized):
    """A distance d(T, P) between a target T and a product P, summed over entries.

    This is the only code that knows a divergence. Every surrogate lies above the distance for all
    feasible values of its argument and touches it at the current ones, so whatever decreases the
    surrogate decreases the distance.

    ``T`` may be a sparse matrix in `value`, `codes` and `basis`, where it is a panel of X.
    """

    nonnegative: ClassVar[bool] = False
    """Whether targets and products must be nonnegative, and surrogates keep zeros of factors."""

    needs_zeros: bool = False
    """Whether zeros of a sparse target have to be looked at one by one."""

    weightable: ClassVar[bool] = False
    """Whether `value`, `codes` and `basis` take weights of the entries as a further argument."""

    def value(self, T: Any, B: Array, H: Array) -> float:
        """d(T, B H)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method value(T, B, H).")

    def size(self, T: Array) -> float:
        """Twice the distance from the model that knows nothing but the sums of rows and columns.

        A fit's share of it is what the fit leaves unexplained.
        """
        rows, columns = T.sum(axis=1, keepdims=True), T.sum(axis=0, keepdims=True)
        return 2 * self.value(T, rows / (rows.sum() or 1.0), columns)

    def residual(self, T: Array, P: Array) -> Array:
        """T - P, scaled so that its squares say how the distance is spread over entries."""
        return T - P

    def codes(self, T: Any, B: Array, H: Array) -> Surrogate:
        """Surrogate of ``H -> d(T, B H)``, separable over columns."""
        raise NotImplementedError(f"{type(self).__name__} needs a method codes(T, B, H).")

    def basis(self, T: Any, B: Array, H: Array) -> Surrogate:
        """Surrogate of ``B -> d(T, B H)``; surrogates of panels of columns add up."""
        raise NotImplementedError(f"{type(self).__name__} needs a method basis(T, B, H).")

    def product(self, T: Array) -> Surrogate:
        """``P -> d(T, P)`` itself, up to a constant: a product that explains a factor T."""
        raise NotImplementedError(f"{type(self).__name__} needs a method product(T).")

    def target(self, P: Array) -> Surrogate:
        """``T -> d(T, P)`` itself, up to a constant: a factor that a product P explains."""
        raise NotImplementedError(f"{type(self).__name__} needs a method target(P).")


class SquaredError(Datafit):
    """d(T, P) = 1/2 ||T - P||^2, which is its own surrogate.

    ========  ==============================================
    codes     1/2 <H, B'B H> - <B'T, H> + 1/2 ||T||^2
    basis     1/2 <B, B H H'> - <B, T H'> + 1/2 ||T||^2
    product   1/2 ||P||^2 - <P, T>    (up to a constant)
    target    1/2 ||T||^2 - <T, P>    (up to a constant)
    ========  ==============================================
    """

    name = "frobenius"

    def size(self, T: Array) -> float:
        """||T||^2: the model that knows nothing is zero."""
        return float(np.sum(np.square(T), dtype=np.float64))

    def value(self, T: Any, B: Array, H: Array) -> float:
        """1/2 ||T - B H||^2."""
        return 0.5 * float(np.sum(np.square(T - B @ H), dtype=np.float64))

    def codes(self, T: Any, B: Array, H: Array) -> Quadratic:
        """A = B'B, C = B'T."""
        return Quadratic.of(A=B.T @ B, C=np.asarray(B.T @ T))

    def basis(self, T: Any, B: Array, H: Array) -> Quadratic:
        """B = H H', C = T H'."""
        H = H.astype(np.float64, copy=False)
        T = T.astype(np.float64, copy=False)
        return Quadratic(((1.0, H @ H.T),), np.asarray(T @ H.T), 0.5 * float((T * T).sum()))

    def product(self, T: Array) -> Quadratic:
        """C = T."""
        return Quadratic.of(C=T)

    def target(self, P: Array) -> Quadratic:
        """C = P."""
        return Quadratic.of(C=P)


SQUARED = SquaredError()
"""The squared error, which every model of the paper is made of."""
