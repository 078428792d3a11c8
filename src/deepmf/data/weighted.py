"""A matrix of which some entries are missing, or count less than others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deepmf.data.on_disk import Stored


class Seen(NamedTuple):
    """Some columns of X, and of their weights."""

    X: NDArray
    weights: NDArray | None
    """``None``: NaN are missing and all else counts."""
    largest: float
    """Of all weights."""

    @property
    def V(self) -> NDArray:
        """Weights in [0, 1]."""
        if self.weights is None:
            return (~np.isnan(self.X)).astype(self.X.dtype)
        return np.divide(self.weights, self.largest, dtype=self.X.dtype, casting="unsafe")

    @property
    def known(self) -> NDArray:
        """X, zero where it is missing."""
        missing = np.isnan(self.X) if self.weights is None else self.weights == 0
        return np.where(missing, self.X.dtype.type(0), self.X)

    def rest(self, B: NDArray, H: NDArray) -> tuple[NDArray, NDArray]:
        """R = X - B H, zero where X is missing, and V R."""
        by_rows = self.X.strides[0] >= self.X.strides[1]
        R = B @ H if by_rows else (H.T @ B.T).T  # in the order of X, which is faster to subtract
        np.subtract(self.X, R, out=R)
        seen = R == R if self.weights is None else self.weights > 0
        # All bits of what is seen and none of the rest, several times as fast as a selection.
        bits = R.view(f"i{R.itemsize}")
        np.bitwise_and(bits, np.negative(seen.view(np.int8), dtype=bits.dtype), out=bits)
        if self.weights is None or self.weights.dtype.kind == "b":
            return R, R
        return R, R * np.divide(self.weights, self.largest, dtype=R.dtype, casting="unsafe")


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

    def seen(self, start: int, stop: int) -> Seen:
        """Some neighbouring columns."""
        return Seen(
            _columns(self.X, start, stop), _columns(self.weights, start, stop), self.largest
        )

    def seen_some(self, index: NDArray[np.intp]) -> Seen:
        """The same for columns in any order."""
        return Seen(_some(self.X, index), _some(self.weights, index), self.largest)

    def columns(self, start: int, stop: int) -> NDArray:
        """See `Stored.columns`."""
        return self.seen(start, stop).known

    def some(self, index: NDArray[np.intp]) -> NDArray:
        """See `Stored.some`."""
        return self.seen_some(index).known.astype(np.float64)

    def _parts(self) -> Iterator[tuple[slice, Seen]]:
        for start in range(0, self.shape[1], self.width):
            cols = slice(start, min(start + self.width, self.shape[1]))
            yield cols, self.seen(cols.start, cols.stop)

    @cached_property
    def sums(self) -> tuple[NDArray, NDArray, NDArray]:
        """Sums of V over each row and over each column, and of V X over each row."""
        rows, totals = np.zeros(self.shape[0]), np.zeros(self.shape[0])
        columns = np.empty(self.shape[1])
        for cols, part in self._parts():
            V = part.V
            columns[cols] = V.sum(axis=0, dtype=np.float64)
            rows += V.sum(axis=1, dtype=np.float64)
            totals += np.einsum("ij,ij->i", V, part.known, dtype=np.float64)
        return rows, columns, totals

    @property
    def means(self) -> NDArray:
        """Each row's mean over what is observed of it; 0 where nothing is."""
        rows, _, totals = self.sums
        return np.divide(totals, rows, out=np.zeros_like(totals), where=rows > 0)

    @property
    def total_weight(self) -> float:
        """The sum of V: the number of observed entries, where all count the same."""
        return float(self.sums[0].sum())

    @cached_property
    def norm2(self) -> float:
        """The sum of V X^2."""
        parts = ((part.known, part.V) for _, part in self._parts())
        return float(sum(np.einsum("ij,ij,ij", V, P, P, dtype=np.float64) for P, V in parts))


def _columns(M: Any, start: int, stop: int) -> Any:
    if isinstance(M, Stored):
        return M.columns(start, stop)
    return None if M is None else M[:, start:stop]


def _some(M: Any, index: NDArray[np.intp]) -> Any:
    if isinstance(M, Stored):
        return M.some(index)
    return None if M is None else M[:, index]
