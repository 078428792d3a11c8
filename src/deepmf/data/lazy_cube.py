"""Pixels of a scene that stay where they are: matrices that are read a few columns at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf.data.matrix import adapted, working_dtype
from deepmf.data.on_disk import OnDisk, forget, is_large

_BLOCK = 1 << 22
"""Entries looked at together."""


class Flat:
    """A cube of rows x cols x bands as bands x pixels, where no view of it is that.

    Parameters
    ----------
    cube : array, 3-D
        May be mapped or masked; read with ``flat[:, a:b]`` or ``flat[:, numbers]``.
    """

    ndim = 2

    def __init__(self, cube: Any) -> None:
        self.cube = cube
        rows, cols, m = cube.shape
        self.shape = (m, rows * cols)
        self.dtype: np.dtype = cube.dtype

    @property
    def _mmap(self) -> Any:
        return getattr(self.cube, "_mmap", None)

    def __getitem__(self, key: tuple[slice, Any]) -> Any:
        _, columns = key
        cols = self.cube.shape[1]
        if not isinstance(columns, slice):
            return self.cube[columns // cols, columns % cols].T
        start, stop, _ = columns.indices(self.shape[1])
        first = start // cols
        lines = self.cube[first : -(-stop // cols)]
        whole = lines.reshape(-1, lines.shape[2])
        return whole[start - first * cols : stop - first * cols].T


class Pixels:
    """Some bands and pixels of a matrix, over a factor, NaN where an entry is missing.

    Parameters
    ----------
    source : m x n
        An array, possibly mapped or masked, or a `Flat`.
    bands : array of m bools
        Which to keep.
    pixels : array of n bools, optional
        Which to keep; all by default.
    factor : float
        What values are divided by.
    missing : float, optional
        The value of entries that are missing; masked ones are too.
    """

    ndim = 2

    def __init__(
        self,
        source: Any,
        bands: NDArray[np.bool_],
        pixels: NDArray[np.bool_] | None = None,
        factor: float = 1.0,
        missing: float | None = None,
    ) -> None:
        self.source, self.factor, self.missing = source, factor, missing
        self._bands = None if bands.all() else bands
        self._numbers = None if pixels is None else np.flatnonzero(pixels)
        n = source.shape[1] if self._numbers is None else len(self._numbers)
        self.shape = (int(bands.sum()), n)
        self._changed = factor != 1 or missing is not None or is_masked(source)
        read = dtype_read(source.dtype)
        self.dtype: np.dtype = working_dtype(read) if self._changed else read

    @property
    def _mmap(self) -> Any:
        return getattr(self.source, "_mmap", None)

    def __getitem__(self, key: tuple[slice, Any]) -> NDArray:
        _, columns = key
        raw = self._columns(columns)
        raw = raw if self._bands is None else raw[self._bands]
        values = np.array(raw, dtype=self.dtype)
        if not self._changed:
            return values
        lost = np.ma.getmaskarray(raw)
        if self.missing is not None:
            lost = lost | (np.asarray(raw) == self.missing)
        values /= values.dtype.type(self.factor)
        values[lost] = np.nan
        return values

    def _columns(self, columns: Any) -> Any:
        """Columns of the source, with all bands."""
        if self._numbers is None:
            return self.source[:, columns]
        numbers = self._numbers[columns]
        if not isinstance(columns, slice) or not len(numbers):
            return self.source[:, numbers]
        first, last = int(numbers[0]), int(numbers[-1])
        return self.source[:, first : last + 1][:, numbers - first]

    def matrix(self) -> Any:
        """An array, the source itself where that is all; what is large stays on disk."""
        large = is_large(self.source)
        whole = self._bands is None and self._numbers is None and not self._changed
        if whole and self.dtype == self.source.dtype and isinstance(self.source, np.ndarray):
            return self.source
        return OnDisk(self) if large else self[:, :]


def dtype_read(dtype: np.dtype) -> np.dtype:
    """The type of numbers read from a file: float32 for integers of 16 bits, which it holds."""
    return np.dtype(np.float32) if dtype.kind in "bui" and dtype.itemsize <= 2 else dtype


def blocks(source: Any) -> Iterator[tuple[slice, Any]]:
    """Neighboring columns and what they hold, a part at a time."""
    m, n = source.shape
    step = max(1, _BLOCK // m)
    for start in range(0, n, step):
        columns = slice(start, min(start + step, n))
        yield columns, source[:, columns]
        forget(source)


def is_lazy(A: Any) -> bool:
    """Whether an array is a Dask array, whose values are not computed here."""
    matrix = adapted(A)
    return matrix is not None and matrix.lazy


def is_masked(source: Any) -> bool:
    """Whether a matrix has a mask."""
    return np.ma.isMaskedArray(source.cube if isinstance(source, Flat) else source)


def unmasked(source: Any) -> Any:
    """The values of a matrix, masked ones too."""
    if not is_masked(source):
        return source
    return Flat(source.cube.data) if isinstance(source, Flat) else source.data
