"""A matrix that stays on disk and is read in blocks of columns."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from deepmf.data.in_memory import Dense
from deepmf.data.matrix import Matrix, working_dtype

_LARGE = 1 << 28
"""Bytes from which a memory map is read in blocks; below it is used as an array."""

_BLOCK = 1 << 25
"""Bytes read together."""


class OnDisk(Matrix):
    """A NumPy memory map, or an HDF5 or Zarr array: anything with ``shape``, ``dtype`` and slices.

    Parameters
    ----------
    source : m x n
        Read with ``source[:, a:b]`` or ``source[:, numbers]``.
    dtype : dtype, optional
        Type of the numbers once read. Default: float32 stays float32, others become float64.
    """

    weightable = True
    clipped = "np.maximum({}, 0)"

    def __init__(self, source: Any, dtype: DTypeLike | None = None) -> None:
        self.array = source
        self.shape = (int(source.shape[0]), int(source.shape[1]))
        self.dtype = working_dtype(source.dtype) if dtype is None else np.dtype(dtype)

    @property
    def on_disk(self) -> bool:
        """See `Matrix.on_disk`."""
        return True

    @property
    def width(self) -> int:
        """Columns to read together."""
        return block_width(self)

    def __getitem__(self, key: tuple[slice, Any]) -> NDArray:
        _, columns = key
        if isinstance(columns, slice):
            block = np.array(self.array[:, columns], dtype=self.dtype)
        else:  # HDF5 wants each column once and in order
            wanted, place = np.unique(columns, return_inverse=True)
            block = np.array(self.array[:, wanted], dtype=self.dtype)[:, place]
        forget(self.array)
        return block

    def blocks(self) -> Iterator[tuple[int, NDArray]]:
        """See `Matrix.blocks`."""
        for cols in slices(self.shape[1], self.width):
            yield cols.start, self[:, cols]

    @property
    def T(self) -> Dense:
        """See `Matrix.T`; in memory."""
        return Dense(self.numpy().T, not self.transposed)

    def numpy(self) -> NDArray:
        """See `Matrix.numpy`."""
        return self[:, 0 : self.shape[1]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """All entries, in memory."""
        return self.numpy().astype(dtype or self.dtype, copy=False)

    def panels(self, width: int | None = None) -> Any:
        """See `Matrix.panels`."""
        from deepmf.data.panels.on_disk import OnDiskPanels

        return OnDiskPanels(self, width)


def as_on_disk(X: Any) -> Any:
    """X as `OnDisk` if it is on disk and large, else X itself."""
    if isinstance(X, np.memmap):
        return OnDisk(X) if X.ndim == 2 and is_large(X) and X.dtype.kind in "buif" else X
    library = type(X).__module__.split(".")[0]
    return OnDisk(X) if library in ("h5py", "zarr") and _is_matrix(X) else X


def is_large(X: Any) -> bool:
    """Whether a matrix is mapped from a file and too large to be taken into memory unasked."""
    count = math.prod(X.shape)
    return getattr(X, "_mmap", None) is not None and count * X.dtype.itemsize >= _LARGE


def _is_matrix(X: Any) -> bool:
    numeric = getattr(getattr(X, "dtype", None), "kind", "") in ("b", "u", "i", "f")
    return numeric and len(getattr(X, "shape", ())) == 2 and min(X.shape) > 0


def block_width(X: Matrix) -> int:
    """Columns of a matrix to hold in memory together."""
    return max(256, _BLOCK // (X.shape[0] * X.dtype.itemsize))


def slices(n: int, width: int) -> Iterator[slice]:
    """Neighboring columns, ``width`` at a time."""
    for start in range(0, n, width):
        yield slice(start, min(start + width, n))


def forget(source: Any) -> None:
    """Let go of the pages of a memory map, which would otherwise count as this process's memory."""
    mapped = getattr(source, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
