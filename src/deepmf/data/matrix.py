"""X as a `Matrix`: one interface for every kind of matrix, with statistics gathered in one pass.

No library is imported unless an array comes from it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_ADAPTERS = {
    "torch": ("deepmf.data.gpu.tensor", "TensorData"),
    "dask": ("deepmf.data.dask.array", "DaskData"),
}
"""Adapters for arrays of other libraries, by library; each is called with such an array."""


class Stats(NamedTuple):
    """Statistics of a matrix, gathered in one pass."""

    smallest: float
    largest: float
    total: float
    """Sum of all entries; not finite if one of them is not."""
    norm2: float
    """``||X||^2``"""
    norms2: NDArray[np.float64] | None = None
    """``||x_j||^2`` for each column; None if nobody has collected them."""

    @classmethod
    def of(cls, block: NDArray) -> Stats:
        """Statistics of an array."""
        with np.errstate(over="ignore", invalid="ignore"):
            norms2 = np.einsum("ij,ij->j", block, block, dtype=np.float64)
            total = float(block.sum(dtype=np.float64))
            return cls(float(block.min()), float(block.max()), total, float(norms2.sum()), norms2)

    @classmethod
    def joined(cls, parts: Iterable[Stats]) -> Stats:
        """Statistics of neighboring columns as one; NaN wins."""
        low, high, totals, squares, columns = zip(*parts)
        with np.errstate(over="ignore", invalid="ignore"):
            ends = float(np.min(low)), float(np.max(high)), float(np.sum(totals))
            if any(part is None for part in columns):
                return cls(*ends, float(np.sum(squares)))
            norms2 = np.concatenate(columns)
            return cls(*ends, float(norms2.sum()), norms2)


class Found(NamedTuple):
    """Entries that pass a test: their number, and the first along the rows of the user's matrix."""

    number: int
    row: int
    column: int
    value: Any


class Matrix(ABC):
    """A matrix of float32 or float64 whose columns are samples, of any kind.

    A subclass sets ``shape`` and ``dtype`` and has `blocks` and `panels`; all else follows from
    these, and may be overridden where a kind knows a better way. Everything that depends on the
    number of columns stays of that kind: the codes H_1 in the result as much as the data.
    `deepmf.data.validation.as_matrix` finds the adapter of a user's object; an instance of a
    subclass of your own is given to `factorize` itself.
    """

    ndim = 2
    lazy: ClassVar[bool] = False
    """Whether entries are computed, and then checked, only when panels load them."""
    weightable: ClassVar[bool] = False
    """Whether entries may be missing or have weights."""
    clipped: ClassVar[str] = "{}.clip(0)"
    """Expression of the matrix without its negative entries, for messages."""
    array: Any = None
    """The array of another library."""
    transposed: bool = False
    """Whether the user's matrix is the transpose; messages name its rows and columns."""
    shape: tuple[int, int]
    dtype: np.dtype

    @abstractmethod
    def blocks(self) -> Iterator[tuple[int, Any]]:
        """First column and content of each block of neighboring columns."""

    @abstractmethod
    def panels(self, width: int | None = None) -> Any:
        """The `Panels` that fit this matrix, with ``width`` columns each if it is given."""

    @cached_property
    def stats(self) -> Stats:
        """Statistics of all entries, from one pass over the matrix."""
        return Stats.joined(Stats.of(block) for _, block in self.blocks())

    @property
    def T(self) -> Matrix:
        """The transpose, which still names places in the user's matrix."""
        raise TypeError(
            f"{type(self).__name__} has no transpose, which DeepMF needs; give it to factorize, "
            f"whose columns are the samples."
        )

    @property
    def on_disk(self) -> bool:
        """Whether blocks are read from a file."""
        return False

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all entries: their number, if all count the same."""
        return float(math.prod(self.shape))

    @property
    def description(self) -> str:
        """The library and the class of the array, for messages."""
        held = type(self if self.array is None else self.array)
        return f"{held.__module__.partition('.')[0]}'s {held.__name__}"

    def checked(self, name: str) -> Matrix:
        """The matrix in float32 or float64, or an error message about ``name``."""
        return self

    def find(self, test: Callable[[NDArray], NDArray]) -> Found | None:
        """Entries for which a test holds, which must fail for zero."""
        parts = ((start, find_in(block, test, self.transposed)) for start, block in self.blocks())
        return self._first(parts)

    def _first(self, parts: Iterable[tuple[int, Found | None]]) -> Found | None:
        """The findings in blocks, each with its first column, as one."""
        count, first = 0, None
        for start, found in parts:
            if found is not None:
                count += found.number
                top, left = (start, 0) if self.transposed else (0, start)
                here = (top + found.row, left + found.column, found.value)
                first = here if first is None else min(first, here, key=lambda place: place[:2])
        return None if first is None else Found(count, *first)

    def by_columns(self, function: Callable[[Any], Any], rows: int | None = None) -> Any:
        """Apply a function to each block of columns of a lazy matrix, lazily.

        The result has ``rows`` rows, by default those of X.
        """
        raise NotImplementedError(f"{type(self).__name__} is not lazy.")

    def on(self, device: Any) -> Matrix:
        """The matrix on a PyTorch device; results come back in the kind that it is of now."""
        sent: Matrix = _adapter("torch").sent(self, device)
        return sent

    def numpy(self) -> NDArray:
        """All entries as a NumPy array."""
        return np.hstack([block for _, block in self.blocks()])

    def own(self, M: Any) -> Any:
        """A NumPy array, or codes as the panels have them, as results hold it."""
        return M.astype(self.dtype, copy=False)


def working_dtype(dtype: np.dtype) -> np.dtype:
    """The type that numbers are fitted in: float32 stays float32, others become float64."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize == 4 else np.float64)


def find_in(
    block: Any, test: Callable[[NDArray], NDArray], transposed: bool = False
) -> Found | None:
    """Entries of an array or a sparse matrix, or of its transpose, for which a test holds."""
    block = block.T if transposed else block
    if sparse.issparse(block):
        block = block.tocoo()
        hits = test(block.data)
        rows, cols, values = block.row[hits], block.col[hits], block.data[hits]
    else:
        rows, cols = np.nonzero(test(block))
        values = block[rows, cols]
    if not len(rows):
        return None
    k = np.lexsort((cols, rows))[0]
    return Found(len(rows), int(rows[k]), int(cols[k]), values[k])


def adapted(X: Any) -> Matrix | None:
    """X itself if it is a `Matrix`, the adapter of a PyTorch or Dask array, or None."""
    if isinstance(X, Matrix):
        return X
    for base in type(X).__mro__:
        library = base.__module__.partition(".")[0]
        if library == "xarray" and type(X).__name__ == "DataArray" and X.chunks:
            return adapted(X.data)
        if library in _ADAPTERS:
            matrix: Matrix = _adapter(library)(X)
            return matrix
    return None


def as_numpy(M: Any) -> Any:
    """M as a NumPy array if it is a `Matrix` or of another library, else M itself."""
    matrix = adapted(M)
    return M if matrix is None else matrix.numpy()


def _adapter(library: str) -> Any:
    module, name = _ADAPTERS[library]
    return getattr(import_module(module), name)
