"""A matrix of which some entries are missing, or count less than others."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deepmf.stored import Stored


class Observed(Stored):
    """X with a weight V in [0, 1] for each of its entries; those of weight 0 read as zeros.

    X is neither copied nor changed, and weights are looked at a few columns at a time.

    Parameters
    ----------
    X : array or Stored, m x n
        float32 or float64.
    weights : None, array or Stored, m x n
        Nonnegative; only their ratios matter, as they are divided by the largest. ``None``: NaN are
        missing and all else counts.
    """

    def __init__(self, X: Any, weights: Any = None) -> None:
        self.X, self.weights = X, weights
        self.shape, self.dtype = X.shape, X.dtype
        self.largest = 1.0 if weights is None else float(weights.max())

    @property
    def T(self) -> Self:
        """The transpose, of matrices in memory."""
        return type(self)(self.X.T, None if self.weights is None else self.weights.T)

    @property
    def on_disk(self) -> bool:
        """Whether X or its weights are read in blocks."""
        return isinstance(self.X, Stored) or isinstance(self.weights, Stored)

    def weighted(self, start: int, stop: int) -> tuple[NDArray, NDArray]:
        """Some neighbouring columns of X, zero where they are missing, and of V."""
        return self._pair(_columns(self.X, start, stop), _columns(self.weights, start, stop))

    def weighted_some(self, index: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
        """The same for columns in any order."""
        return self._pair(_some(self.X, index), _some(self.weights, index))

    def _pair(self, P: NDArray, weights: NDArray | None) -> tuple[NDArray, NDArray]:
        seen = ~np.isnan(P) if weights is None else weights > 0
        V = seen.astype(self.dtype)
        if weights is not None and weights.dtype != bool:
            V = np.divide(weights, self.largest, dtype=self.dtype, casting="same_kind")
        return np.where(seen, P, self.dtype.type(0)), V

    def columns(self, start: int, stop: int) -> NDArray:
        """See `Stored.columns`."""
        return self.weighted(start, stop)[0]

    def some(self, index: NDArray[np.intp]) -> NDArray:
        """See `Stored.some`."""
        return self.weighted_some(index)[0].astype(np.float64)

    @cached_property
    def sums(self) -> tuple[NDArray, NDArray, NDArray]:
        """Sums of V over each row and over each column, and of V X over each row."""
        rows, means = np.zeros(self.shape[0]), np.zeros(self.shape[0])
        columns = np.empty(self.shape[1])
        for start in range(0, self.shape[1], self.width):
            P, V = self.weighted(start, min(start + self.width, self.shape[1]))
            columns[start : start + P.shape[1]] = V.sum(axis=0, dtype=np.float64)
            rows += V.sum(axis=1, dtype=np.float64)
            means += np.einsum("ij,ij->i", V, P, dtype=np.float64)
        return rows, columns, means

    @property
    def means(self) -> NDArray:
        """Each row's mean over what is observed of it; 0 where nothing is."""
        rows, _, total = self.sums
        return np.divide(total, rows, out=np.zeros_like(total), where=rows > 0)

    def norm(self) -> float:
        """The square root of the sum of V X^2."""
        total = 0.0
        for start in range(0, self.shape[1], self.width):
            P, V = self.weighted(start, min(start + self.width, self.shape[1]))
            total += float(np.einsum("ij,ij,ij", V, P, P, dtype=np.float64))
        return total**0.5

    @property
    def total_weight(self) -> float:
        """The sum of V: the number of observed entries, where all count the same."""
        return float(self.sums[0].sum())


def _columns(M: Any, start: int, stop: int) -> Any:
    if isinstance(M, Stored):
        return M.columns(start, stop)
    return None if M is None else M[:, start:stop]


def _some(M: Any, index: NDArray[np.intp]) -> Any:
    if isinstance(M, Stored):
        return M.some(index)
    return None if M is None else M[:, index]
