"""A matrix of which some entries are missing, or count less than others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepmf.data.in_memory import Dense
from deepmf.data.matrix import Matrix, Stats
from deepmf.data.on_disk import OnDisk, block_width, slices


class WeightedBlock(NamedTuple):
    """Some columns of X, and of their weights."""

    X: NDArray
    weights: NDArray | None
    """``None``: NaN are missing and all else counts."""
    largest: float
    """The largest of all weights of the matrix."""

    @property
    def V(self) -> NDArray:
        """Weights in [0, 1]."""
        if self.weights is None:
            return (~np.isnan(self.X)).astype(self.X.dtype)
        return np.divide(self.weights, self.largest, dtype=self.X.dtype, casting="unsafe")

    @property
    def known(self) -> NDArray:
        """X with zeros for missing entries."""
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


class Sums(NamedTuple):
    """Sums of weights V in [0, 1], over rows and over columns."""

    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    totals: NDArray[np.float64]
    """Sums of V X over each row."""


class Weighted(Matrix):
    """X with a weight V in [0, 1] for each of its entries; those of weight 0 read as zeros.

    X is neither copied nor changed, and weights are looked at a few columns at a time.

    Parameters
    ----------
    X : Dense or OnDisk, m x n
    weights : None, Dense or OnDisk, m x n
        Nonnegative; only their ratios matter, as they are divided by the largest. ``None``: NaN are
        missing and all else counts.
    """

    weightable = True
    clipped = "np.maximum({}, 0)"

    def __init__(self, X: Dense | OnDisk, weights: Dense | OnDisk | None = None) -> None:
        self.X, self.weights, self.transposed = X, weights, X.transposed
        self.shape, self.dtype = X.shape, X.dtype
        self.largest = 1.0 if weights is None else weights.stats.largest

    @property
    def T(self) -> Weighted:
        """See `Matrix.T`."""
        return Weighted(self.X.T, None if self.weights is None else self.weights.T)

    @property
    def on_disk(self) -> bool:
        """See `Matrix.on_disk`: of X or its weights."""
        return self.X.on_disk or (self.weights is not None and self.weights.on_disk)

    def __getitem__(self, key: tuple[slice, Any]) -> WeightedBlock:
        V = None if self.weights is None else self.weights[key]
        return WeightedBlock(self.X[key], V, self.largest)

    @property
    def width(self) -> int:
        """Columns to hold in memory together."""
        return block_width(self)

    def _parts(self) -> Iterator[tuple[slice, WeightedBlock]]:
        for cols in slices(self.shape[1], self.width):
            yield cols, self[:, cols]

    def blocks(self) -> Iterator[tuple[int, NDArray]]:
        """See `Matrix.blocks`: zero where an entry is missing."""
        for cols, part in self._parts():
            yield cols.start, part.known

    @cached_property
    def _gathered(self) -> tuple[Stats, Sums]:
        sums = Sums(*(np.zeros(size) for size in (*self.shape, self.shape[0])))
        stats = []
        for cols, part in self._parts():
            P, V = part.known, part.V
            with np.errstate(over="ignore", invalid="ignore"):
                total, norm2 = P.sum(dtype=np.float64), np.einsum("ij,ij,ij", V, P, P, dtype=float)
                stats.append(Stats(float(P.min()), float(P.max()), float(total), float(norm2)))
                sums.columns[cols] = V.sum(axis=0, dtype=np.float64)
                sums.rows[:] += V.sum(axis=1, dtype=np.float64)
                sums.totals[:] += np.einsum("ij,ij->i", V, P, dtype=np.float64)
        return Stats.joined(stats), sums

    @cached_property
    def stats(self) -> Stats:
        """See `Matrix.stats`: of entries that are not missing; ``norm2`` is the sum of V X^2."""
        return self._gathered[0]

    @property
    def sums(self) -> Sums:
        """Sums of the weights, from the same pass as `stats`."""
        return self._gathered[1]

    @property
    def means(self) -> NDArray[np.float64]:
        """Each row's mean over its observed entries; 0 if there are none."""
        rows, _, totals = self.sums
        return np.divide(totals, rows, out=np.zeros_like(totals), where=rows > 0)

    @property
    def total_weight(self) -> float:
        """See `Matrix.total_weight`."""
        return float(self.sums.rows.sum())

    def on(self, device: Any) -> Matrix:
        """Refused: weights stay in memory."""
        raise TypeError(
            f"weights are for arrays and data on disk, but X is to be worked on by "
            f"device={str(device)!r}. Leave device out, or weights."
        )

    def panels(self, width: int | None = None) -> Any:
        """See `Matrix.panels`."""
        from deepmf.data.panels.weighted import WeightedPanels

        return WeightedPanels(self, width)
