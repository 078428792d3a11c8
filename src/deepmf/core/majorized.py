"""Surrogates of divergences: sums of functions of products, decreased by separable majorizers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.separable import Separable, above, product


class Convex(Protocol):
    """A function of a product that knows separable functions above it."""

    def value(self, B: Array) -> float:
        """f(B)."""

    def pulled(self, L: Array | None, R: Array | None, M: Array) -> Separable:
        """A separable function above ``M -> f(L M R)`` that touches it at M."""

    def __rmul__(self, weight: float) -> Any:
        """A positive multiple."""


class Part(NamedTuple):
    """``M -> f(L M R)``; None stands for the identity."""

    f: Convex
    L: Array | None = None
    R: Array | None = None


@dataclass(frozen=True, eq=False)
class Majorized:
    """A function of one matrix that is decreased by majorizing it, again and again.

    Parameters
    ----------
    separable : Separable
        What is separable by itself.
    parts : tuple of Part
        Functions of products.
    quadratic : Quadratic
        From squared errors, minimum volume, ridges and shifts.
    """

    separable: Separable = field(default_factory=Separable)
    parts: tuple[Part, ...] = ()
    quadratic: Quadratic = field(default_factory=Quadratic)
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Majorized:
        if isinstance(other, Quadratic):
            return replace(self, quadratic=self.quadratic + other)
        if not isinstance(other, Majorized):
            return NotImplemented
        return Majorized(
            self.separable + other.separable,
            self.parts + other.parts,
            self.quadratic + other.quadratic,
        )

    __radd__ = __add__

    def __rmul__(self, weight: float) -> Majorized:
        parts = tuple(Part(weight * f, L, R) for f, L, R in self.parts)
        return Majorized(weight * self.separable, parts, weight * self.quadratic)

    def through(self, L: Array | None, R: Array | None, M: Array | None = None) -> Majorized:
        """``M -> s(L M R)``, see `Surrogate.through`."""
        if L is None and R is None:
            return self
        parts = [Part(f, _times(own, L), _times(R, right)) for f, own, right in self.parts]
        if self.separable.terms:
            parts.append(Part(self.separable, L, R))
        return Majorized(parts=tuple(parts), quadratic=self.quadratic.through(L, R))

    def value(self, M: Array) -> float:
        """s(M)."""
        parts = sum(f.value(product(L, M, R)) for f, L, R in self.parts)
        return self.separable.value(M) + parts + self.quadratic.value(M)

    def change(self, M: Array, D: Array) -> float:
        """s(M + D) - s(M)."""
        return self.value(M + D) - self.value(M)

    def touching(self, M: Array) -> Separable:
        """A separable function that lies above s and touches it at M."""
        total = self.separable
        for f, L, R in self.parts:
            total = total + f.pulled(L, R, M)
        q = self.quadratic
        linear = isinstance(q.C, float) and q.C == 0.0
        return total if linear and not q.terms else total + above(q, M)

    def descend(self, constraint: Any, M: Array, max_iter: int, tol: float) -> Array:
        """Minimize the function that touches at M over the set, and again from there.

        A column that has converged stays, so that each is independent of the others where they are
        problems of their own.
        """
        exact = constraint.minimize(self, M)
        if exact is not None:
            return np.asarray(exact)
        block = constraint.free(M.shape)
        block = (slice(None), slice(None)) if block is None else block
        if not M[block].size:
            return M
        moving, first = np.ones(M.shape[1], bool), np.full(M.shape[1], -1.0)
        for _ in range(max_iter):
            before, M = M, M.copy()
            s = self.touching(before).part(M.shape, block)
            M[block] = constraint.inner.minimize(s, before[block])
            M = np.where(moving, M, before)
            step = np.sum(np.square(M - before), axis=0)
            first = np.where(first < 0, step, first)
            moving &= step > tol * tol * first
            if self._is_separable or not moving.any():
                break
        return M

    @property
    def _is_separable(self) -> bool:
        """Whether `touching` is s itself, so that one step finds the minimum."""
        return not self.parts and self.quadratic.shift is not None


def _times(A: Array | None, B: Array | None) -> Array | None:
    return B if A is None else A if B is None else A @ B
