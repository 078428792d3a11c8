"""Compiled passes for the Kullback-Leibler divergence: better codes, and sums for each basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import xlogy

from deepmf.constraints import Nonnegative
from deepmf.core.datafit import Datafit
from deepmf.core.divergence import BetaDivergence
from deepmf.core.majorized import Majorized
from deepmf.core.quadratic import Array
from deepmf.core.separable import Separable
from deepmf.core.state import DataSurrogates
from deepmf.core.terms import DataTerm
from deepmf.data.panels.base import Coding
from deepmf.data.panels.products import Products, Sums
from deepmf.kernels.loading import load_kernels
from deepmf.kernels.padding import TILE, VECTOR, aligned, padded, up_to

_LARGEST_RANK = 256
"""Up to here the work arrays of a column fit in cache."""


def compiled(fits: Sequence[Datafit], rank: int) -> bool:
    """Whether there are compiled passes for terms with these distances."""
    known = all(type(fit) is BetaDivergence and fit.beta == 1 for fit in fits)
    return known and rank <= _LARGEST_RANK and load_kernels() is not None


class CountProducts(Products):
    """A problem of nonnegative codes, all of whose terms are Kullback-Leibler divergences."""

    def __init__(self, panel: Callable[[slice], Any], coding: Coding, dtype: np.dtype) -> None:
        super().__init__(panel, coding, dtype)
        self.w = np.array([float(t.weight) for t in self.terms])
        self.s = np.stack([t.B.sum(axis=0) for t in self.terms]).astype(np.float64)
        self.A = np.zeros((coding.rank, coding.rank))
        if coding.coupling is not None:
            self.A += coding.coupling

    @staticmethod
    def can(coding: Coding) -> bool:
        """Whether the passes know the problem's terms and its set."""
        nonnegative = type(coding.constraint) is Nonnegative
        return nonnegative and compiled([t.fit for t in coding.terms], coding.rank)

    def shift(self, tau: float, V: Array | float) -> None:
        """See `Products.shift`: A + tau I."""
        super().shift(tau, V)
        self.A = self.A + tau * np.eye(len(self.A))

    def sums(self, P: Any, H: Array) -> Sums:
        """See `CountPass`, which forms the sums itself."""
        raise NotImplementedError("Compiled passes form their sums themselves.")

    def answer(self, total: Sums, norm2: float, penalty: float) -> DataSurrogates:
        """``sum (H 1)_k b_ik - b~_ik K_ik log b_ik`` for each term."""
        HHt, hsum, *Ks = total
        terms = [
            Majorized(Separable({0: hsum[None, :], -1: -t.B * K})) for t, K in zip(self.terms, Ks)
        ]
        return DataSurrogates(tuple(terms), False, penalty, HHt)


class CountPass:
    """One compiled pass over columns of X with these steps.

    Parameters
    ----------
    products : CountProducts
        The problem.
    newton : bool
        Whether steps are Newton's; otherwise they are multiplicative.
    steps, tol
        Most steps of a column, and the share of the first step's gain at which it ends.
    """

    def __init__(self, products: CountProducts, newton: bool, steps: int, tol: float) -> None:
        self.products, self.how = products, (newton, steps, tol**0.5)
        self.bases = [t.B for t in products.terms]

    def sparse(self, X: Sequence[Array], H: Array, first: int, last: int) -> Sums:
        """Columns first, ..., last - 1 of (data, indices, indptr)."""
        from deepmf.kernels import kullback_leibler as kernels

        p, (m, r) = self.products, self.bases[0].shape
        B = np.stack([padded(B, np.float64, 1, TILE) for B in self.bases])
        K = aligned(len(B) * m, up_to(TILE, r), np.float64).reshape(B.shape)
        hsum = np.zeros(r)
        more = (p.w, B, p.s, p.A, p.V, H, first, last, *self.how, K, hsum)
        kernels.update_sparse(*X, *more)
        return self._sums(H[:, first:last], hsum, [own[:, :r] for own in K])

    def dense(self, X: Array, V: Array, H: Array, first: int, last: int) -> Sums:
        """Columns first, ..., last - 1 of an array, and those of V."""
        from deepmf.kernels import kullback_leibler as kernels

        p, (m, r) = self.products, self.bases[0].shape
        Bt = np.stack([padded(B.T, np.float64, TILE, VECTOR) for B in self.bases])
        Kt, hsum = np.zeros(Bt.shape), np.zeros(r)
        kernels.update_dense(X, p.w, Bt, p.s, p.A, V, H, first, last, *self.how, Kt, hsum)
        return self._sums(H[:, first:last], hsum, [own[:r, :m].T for own in Kt])

    @staticmethod
    def _sums(H: Array, hsum: Array, Ks: Sequence[Array]) -> Sums:
        H64 = H.astype(np.float64, copy=False)
        return [H64 @ H64.T, hsum, *Ks]


def log_sums_sparse(
    X: Sequence[Array], terms: Sequence[DataTerm], H: Array, first: int, last: int
) -> Array:
    """Sum of ``x log(B h)`` over some columns of (data, indices, indptr), for each term."""
    from deepmf.kernels import kullback_leibler as kernels

    bases = (padded(t.B, np.float64, 1, TILE) for t in terms)
    return np.array([kernels.value_sparse(*X, B, H, first, last) for B in bases])


def log_sums_dense(X: Array, terms: Sequence[DataTerm], H: Array, first: int, last: int) -> Array:
    """Sum of ``x log(B h)`` over some columns of an array, for each term."""
    from deepmf.kernels import kullback_leibler as kernels

    bases = (padded(t.B.T, np.float64, TILE, VECTOR) for t in terms)
    return np.array([kernels.value_dense(X, B, H, first, last) for B in bases])


def own_log_sum(values: Array) -> float:
    """Sum of ``x log x - x``, which the divergence has whatever the product."""
    values = values.astype(np.float64, copy=False)
    return float(np.sum(xlogy(values, values) - values))
