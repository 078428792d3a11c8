"""Random halves of the samples, and errors on features hidden from the other half's codes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf._utils.messages import counted
from deepmf.core.quadratic import Array
from deepmf.core.terms import DataTerm
from deepmf.data.in_memory import Sparse
from deepmf.data.validation import adapt, as_matrix, check_finite, masked_to_nan
from deepmf.factorization import Factorization

PARTS = 5
"""Parts of the features; each is predicted from the others."""

LARGEST = 10_000
"""Samples that a scan uses at most."""

FEWEST = 4
"""Samples with an entry other than zero that a scan needs."""


class Half(NamedTuple):
    """One half of the samples to fit, and the other one to predict."""

    seen: Any
    other: Any
    parts: NDArray[np.intp]
    """The part of each feature, from 0."""
    weights: str | None
    """The argument ``weights`` of `factorize`."""

    def errors(self, f: Factorization) -> Array:
        """``completion_errors`` on the samples that the fit has not seen."""
        return completion_errors(f, self.other, self.parts, self.weights)


@dataclass(frozen=True, eq=False)
class Halves:
    """Samples with an entry other than zero, and ways to split them in two.

    Attributes
    ----------
    X : array or csc_array, m x n
        NaN where an entry of an array is missing.
    """

    X: Any

    @cached_property
    def weights(self) -> str | None:
        """The argument ``weights`` of fits to these samples."""
        return None if sparse.issparse(self.X) or not np.isnan(self.X).any() else "observed"

    def half(self, k: int, seed: int) -> Half:
        """Half k of the samples: 0 and 1 of the first split, 2 and 3 of the second, ...

        Features without an observed entry in one of the halves are in neither.
        """
        rng = np.random.default_rng([seed, k // 2])
        m, n = self.X.shape
        dealt = rng.permutation(n) % 2
        parts = rng.permutation(m) % min(PARTS, m)
        seen, other = (self.X[:, dealt == side] for side in (k % 2, 1 - k % 2))
        if self.weights is None:
            return Half(seen, other, parts, None)
        both = ~(np.isnan(seen).all(axis=1) | np.isnan(other).all(axis=1))
        return Half(seen[both], other[both], parts[both], self.weights)


def completion_errors(
    f: Factorization, X: Any, parts: NDArray[np.intp], weights: str | None = None
) -> Array:
    """Relative errors of a fit's layers on features of new samples that did not code them.

    ::

        sum over parts P of the rows of ||X_P - B_P H||^2,   B the layer's basis,
        H its codes, under the fit's constraints, of the other rows of X

    as a root, and relative to ||X||; with another ``beta_loss`` the deviance takes the place of the
    squared error. The cost is that of X's nonzeros.

    Parameters
    ----------
    f : Factorization
        With NumPy arrays.
    X : array or csc_array, m x k
        Samples that the fit has not seen.
    parts : array of m ints
        The part, from 0, that each row belongs to.
    weights : None or "observed"
        As in `factorize`.
    """
    if not all(np.isfinite(M).all() for M in (*f.W, *f.H[1:])):  # the fit diverged
        return np.full(f.depth, np.inf)
    layers = range(1, f.depth + 1)
    missed, total = np.zeros(f.depth), np.zeros(f.depth)
    for part in np.unique(parts):
        hidden = parts == part
        known, told = X[~hidden], X[hidden]
        if weights is not None:
            both = ~(np.isnan(known).all(axis=0) | np.isnan(told).all(axis=0))
            known, told = known[:, both], told[:, both]
        others = f.of_rows(~hidden)
        target = as_matrix(told, weights=weights)
        for layer in layers:
            fit = f.problem.fit(layer - 1)
            codes = others.encode(known, layer, weights=weights)
            with target.panels() as panels:
                total[layer - 1] += panels.size(fit)
                panels.codes.set(codes)
                term = DataTerm(1.0, f.basis(layer)[hidden], fit)
                missed[layer - 1] += 2 * panels.values([term])[0]
    return np.sqrt(missed / total)


def halves(X: Any, seed: int = 0) -> Halves:
    """Samples of a scan, in memory: those with an entry other than zero, at most `LARGEST`."""
    data = adapt(masked_to_nan(X))
    if isinstance(data, Sparse):
        check_finite(data, "X")
        A: Any = sparse.csc_array(data.array)
        filled = A.count_nonzero(axis=0) > 0
    else:
        A = data.numpy()
        if np.isinf(A).any():
            raise ValueError("X has infinite entries; give NaN for those that are missing.")
        filled = ((A != 0) & ~np.isnan(A)).any(axis=0)
    samples = np.flatnonzero(filled)
    if len(samples) < FEWEST:
        some = counted(len(samples), "sample that is", "samples that are")
        raise ValueError(
            f"X has only {some} not all zeros, too few to compare halves of them; give at least "
            f"{FEWEST}."
        )
    if A.shape[0] < 2:
        raise ValueError(
            "X has only one feature, which cannot be predicted from others; give at least two."
        )
    if len(samples) > LARGEST:
        samples = np.sort(np.random.default_rng(seed).choice(samples, LARGEST, replace=False))
    return Halves(A if len(samples) == A.shape[1] else A[:, samples])
