"""A matrix that stays on disk and is read in blocks of columns."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_LARGE = 1 << 28
"""Bytes from which a memory map is read in blocks; below it is used as an array."""

_BLOCK = 1 << 25
"""Bytes read together."""


class Extremes(NamedTuple):
    """What one pass over the matrix tells."""

    smallest: float
    largest: float
    total: float


class Stored:
    """A NumPy memory map, or anything of HDF5's or Zarr's kind: ``shape``, ``dtype`` and slices.

    Parameters
    ----------
    source : m x n
        Read with ``source[:, a:b]``; numbers become float32 (from at most 16 bits and float32) or
        float64 as they are read.
    """

    ndim = 2

    def __init__(self, source: Any) -> None:
        self.source = source
        self.shape: tuple[int, int] = (int(source.shape[0]), int(source.shape[1]))
        kind, size = source.dtype.kind, source.dtype.itemsize
        small = size <= 2 or (kind == "f" and size <= 4)
        self.dtype = np.dtype(np.float32 if small else np.float64)

    @property
    def width(self) -> int:
        """Columns to read together."""
        return max(256, _BLOCK // (self.shape[0] * self.dtype.itemsize))

    def columns(self, start: int, stop: int) -> NDArray:
        """Some neighbouring columns, in memory."""
        block = np.array(self.source[:, start:stop], dtype=self.dtype)
        forget(self.source)
        return block

    def some(self, index: NDArray[np.intp]) -> NDArray:
        """Some columns in any order; HDF5 wants each once and in order."""
        wanted, place = np.unique(index, return_inverse=True)
        block = np.array(self.source[:, wanted], dtype=np.float64)[:, place]
        forget(self.source)
        return block

    def blocks(self) -> Iterator[tuple[int, NDArray]]:
        """First column and content of each block."""
        for start in range(0, self.shape[1], self.width):
            yield start, self.columns(start, min(start + self.width, self.shape[1]))

    @cached_property
    def extremes(self) -> Extremes:
        """Smallest and largest entry, and the sum, which is not finite where an entry is not."""
        with np.errstate(over="ignore", invalid="ignore"):
            seen = [(B.min(), B.max(), B.sum(dtype=np.float64)) for _, B in self.blocks()]
        low, high, total = (np.array(values, dtype=np.float64) for values in zip(*seen))
        return Extremes(float(low.min()), float(high.max()), float(total.sum()))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """All of it, in memory."""
        return self.columns(0, self.shape[1]).astype(dtype or self.dtype, copy=False)

    def min(self) -> float:
        """The smallest entry."""
        return self.extremes.smallest

    def max(self) -> float:
        """The largest entry."""
        return self.extremes.largest

    def sum(self) -> float:
        """The sum of all entries."""
        return self.extremes.total


def as_stored(X: Any) -> Any:
    """X behind `Stored` if it is on disk and large, else X itself."""
    if isinstance(X, Stored):
        return X
    if isinstance(X, np.memmap):
        return Stored(X) if X.ndim == 2 and is_large(X) and X.dtype.kind in "buif" else X
    library = type(X).__module__.split(".")[0]
    return Stored(X) if library in ("h5py", "zarr") and _is_matrix(X) else X


def is_large(X: Any) -> bool:
    """Whether a matrix is mapped from a file and too large to be taken into memory unasked."""
    count = math.prod(X.shape)
    return getattr(X, "_mmap", None) is not None and count * X.dtype.itemsize >= _LARGE


def _is_matrix(X: Any) -> bool:
    numeric = getattr(getattr(X, "dtype", None), "kind", "") in ("b", "u", "i", "f")
    return numeric and len(getattr(X, "shape", ())) == 2 and min(X.shape) > 0


def forget(source: Any) -> None:
    """Let go of the pages of a memory map, which would otherwise count as this process's memory."""
    mapped = getattr(source, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
