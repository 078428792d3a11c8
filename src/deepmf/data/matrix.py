"""Arrays of other libraries, on a device or on a cluster: what the rest must know of such a kind.

No library is imported unless an array comes from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

_KINDS = {
    "torch": ("deepmf.data.gpu.tensor", "TensorData"),
    "dask": ("deepmf.data.dask.array", "DaskData"),
}
"""Where the `Foreign` of a library's arrays is; it is called with such an array."""


class Foreign(ABC):
    """A matrix of another kind, with NumPy's names for what every kind can tell of itself.

    A subclass says its ``shape`` and ``dtype`` (float32 or float64) and has `blocks` and `panels`;
    all else follows from these, and may be overridden where a kind knows a better way. Everything
    that depends on the number of columns stays of that kind: the codes H_1 in the result as much
    as the data. Kinds of other libraries' arrays are found by ``_KINDS``; an instance of any other
    subclass is given to `factorize` itself.
    """

    ndim = 2
    lazy: ClassVar[bool] = False
    """Whether entries are not there yet: they are then looked at when panels load them."""
    array: Any
    """The other library's array."""
    shape: tuple[int, int]
    dtype: np.dtype

    @abstractmethod
    def blocks(self) -> Iterator[tuple[int, NDArray]]:
        """First column and content of each block of columns, to look for bad entries in."""

    @abstractmethod
    def panels(self, width: int | None) -> Any:
        """The `Panels` that work on it, each so many columns wide if a width is given."""

    @property
    def T(self) -> Self:
        """The transpose, of the same kind; `DeepMF`, whose rows are samples, asks for it."""
        raise TypeError(
            f"{type(self).__name__} has no transpose, which DeepMF needs; give it to factorize, "
            f"whose columns are the samples."
        )

    def checked(self, name: str) -> Self:
        """A matrix of float32 or float64, or a sentence that says what is wrong with ``name``."""
        return self

    def min(self) -> float:
        """The smallest entry."""
        return min(float(block.min()) for _, block in self.blocks())

    def max(self) -> float:
        """The largest entry."""
        return max(float(block.max()) for _, block in self.blocks())

    def sum(self) -> float:
        """The sum of all entries, not finite where one of them is not."""
        return sum(float(block.sum(dtype=np.float64)) for _, block in self.blocks())

    def norm(self) -> float:
        """||X||."""
        squares = (np.sum(np.square(block), dtype=np.float64) for _, block in self.blocks())
        return float(sum(squares)) ** 0.5

    def search(self, look: Callable[[NDArray], Any]) -> Iterator[tuple[int, int, Any]]:
        """First row and column of each block, and what a function finds in it."""
        for start, block in self.blocks():
            yield 0, start, look(block)

    def by_columns(self, function: Callable[[NDArray], NDArray], rows: int | None = None) -> Any:
        """A lazy kind's array of what a function gives for each block of columns.

        It has so many rows, by default those of X.
        """
        raise NotImplementedError(f"{type(self).__name__} is not lazy.")

    def numpy(self) -> NDArray:
        """All of it as a NumPy array."""
        return np.hstack([block for _, block in self.blocks()])

    def own(self, M: Any) -> Any:
        """A NumPy array, or codes as the panels have them, as results hold it."""
        return M.astype(self.dtype, copy=False)


def as_foreign(X: Any) -> Any:
    """X behind its kind's `Foreign`, or X itself where it is NumPy's, SciPy's or of no library."""
    if isinstance(X, Foreign):
        return X
    for base in type(X).__mro__:
        library = base.__module__.partition(".")[0]
        if library == "xarray" and type(X).__name__ == "DataArray" and X.chunks:
            return as_foreign(X.data)
        if library in _KINDS:
            return _kind(library)(X)
    return X


def as_numpy(M: Any) -> Any:
    """M as a NumPy array if it is of another library, else M itself."""
    M = as_foreign(M)
    return M.numpy() if isinstance(M, Foreign) else M


def times(X: Any, M: NDArray) -> Any:
    """X M, of the kind of X."""
    return X.array @ X.own(M) if isinstance(X, Foreign) else X @ M


def on_device(X: Any, device: Any) -> Foreign:
    """A matrix sent to a device of PyTorch's; results come back in the kind it is of now."""
    lazy = isinstance(X, Foreign) and X.lazy
    sent: Foreign = X.on(device) if lazy else _kind("torch").sent(X, device)
    return sent


def _kind(library: str) -> Any:
    module, name = _KINDS[library]
    return getattr(import_module(module), name)
