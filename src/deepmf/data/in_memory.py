"""NumPy arrays and SciPy sparse matrices as `Matrix`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf._utils.threads import in_threads
from deepmf.data.matrix import Matrix, Stats

_BLOCK = 1 << 16
"""Entries looked at together, few enough to stay in a core's cache."""

_NARROWEST = 64
"""Columns looked at together at least."""


class Dense(Matrix):
    """A NumPy array, used as it is.

    Parameters
    ----------
    array : array, m x n
        float32 or float64; weights may be bool.
    transposed : bool
        See `Matrix.transposed`.
    """

    weightable = True
    clipped = "np.maximum({}, 0)"

    def __init__(self, array: NDArray, transposed: bool = False) -> None:
        self.array, self.transposed = array, transposed
        self.shape, self.dtype = (array.shape[0], array.shape[1]), array.dtype

    def __getitem__(self, key: Any) -> NDArray:
        return self.array[key]

    def blocks(self) -> Iterator[tuple[int, NDArray]]:
        """See `Matrix.blocks`."""
        width = max(_NARROWEST, _BLOCK // self.shape[0])
        for start in range(0, self.shape[1], width):
            yield start, self.array[:, start : start + width]

    @cached_property
    def stats(self) -> Stats:
        """See `Matrix.stats`; on all threads."""
        return Stats.joined(in_threads(Stats.of, [block for _, block in self.blocks()]))

    @property
    def T(self) -> Dense:
        """See `Matrix.T`."""
        return Dense(self.array.T, not self.transposed)

    def numpy(self) -> NDArray:
        """See `Matrix.numpy`."""
        return self.array

    def panels(self, width: int | None = None) -> Any:
        """See `Matrix.panels`."""
        from deepmf.data.panels.dense import DensePanels

        return DensePanels(self.array, width, self.stats)


class Sparse(Matrix):
    """A SciPy sparse array, never made dense.

    Parameters
    ----------
    array : csr_array or csc_array, m x n
        float32 or float64, each entry listed once. CSR is converted to CSC once.
    transposed : bool
        See `Matrix.transposed`.
    """

    clipped = "{}.maximum(0)"

    def __init__(self, array: Any, transposed: bool = False) -> None:
        self.array, self.transposed = array, transposed
        self.shape, self.dtype = array.shape, array.dtype

    @cached_property
    def _by_columns(self) -> Any:
        return sparse.csc_array(self.array)

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """See `Matrix.blocks`: the whole matrix, sparse."""
        yield 0, self.array

    @cached_property
    def stats(self) -> Stats:
        """See `Matrix.stats`; zeros that are not stored count too."""
        A = self._by_columns
        stored = np.diff(A.indptr)
        full = np.flatnonzero(stored)  # columns, each of which has entries
        if not len(full):
            return Stats(0.0, 0.0, 0.0, 0.0, np.zeros(A.shape[1]))
        parts, firsts = [], A.indptr[full]
        width = max(1, _BLOCK * len(full) // A.nnz)
        for k in range(0, len(full), width):
            some = firsts[k : k + width]
            end = firsts[k + width] if k + width < len(full) else A.nnz
            parts.append(_stats_of_entries(A.data[some[0] : end], some - some[0]))
        found = Stats.joined(parts)
        norms2 = np.zeros(A.shape[1])
        norms2[full] = found.norms2
        low, high = found.smallest, found.largest
        if A.nnz < A.shape[0] * A.shape[1]:
            low, high = float(np.minimum(low, 0)), float(np.maximum(high, 0))
        return Stats(low, high, found.total, float(norms2.sum()), norms2)

    @property
    def T(self) -> Sparse:
        """See `Matrix.T`."""
        return Sparse(self.array.T, not self.transposed)

    def numpy(self) -> NDArray:
        """See `Matrix.numpy`."""
        dense: NDArray = self.array.toarray()
        return dense

    def panels(self, width: int | None = None) -> Any:
        """See `Matrix.panels`."""
        from deepmf.data.panels.sparse import SparsePanels

        return SparsePanels(self._by_columns, width, self.stats)


def _stats_of_entries(values: NDArray, starts: NDArray) -> Stats:
    """Statistics of stored entries; those of a column begin at each start."""
    with np.errstate(over="ignore", invalid="ignore"):
        norms2 = np.add.reduceat(np.square(values, dtype=np.float64), starts)
        total = float(values.sum(dtype=np.float64))
        return Stats(float(values.min()), float(values.max()), total, float(norms2.sum()), norms2)
