"""A Dask array as a matrix: what can be told of it without loading it, and then by its workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.warnings import warn
from deepmf.data.dask.panels import ClusterPanels
from deepmf.data.dask.pool import Crew
from deepmf.data.dask.worker import Facts
from deepmf.data.matrix import Foreign
from deepmf.data.validation import check_dtype, check_finite


class DaskData(Foreign):
    """Columns are samples, unless it is turned; both ways share the workers that hold X.

    Parameters
    ----------
    array : Dask array
        Never loaded as a whole into this process, but by `numpy`.
    """

    lazy = True

    def __init__(self, array: Any) -> None:
        self._source = _Source(array)
        self._turned = False

    @property
    def array(self) -> Any:
        """The array, as it is turned."""
        return self._source.array.T if self._turned else self._source.array

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows and columns, as it is turned."""
        shape: tuple[int, int] = self.array.shape
        return shape

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """That of the fit."""
        return self._source.dtype

    @property
    def T(self) -> Self:
        """See `Foreign.T`."""
        other = type(self)(None)
        other._source, other._turned = self._source, not self._turned
        return other

    def on(self, device: Any) -> Self:
        """The same matrix for workers that are to work on their devices."""
        if device == self._source.device:
            return self
        other = type(self)(self._source.array)
        other._source.device, other._turned = device, self._turned
        return other

    def checked(self, name: str) -> Self:
        """See `Foreign.checked`; entries are looked at when workers load them."""
        self._source.check(name, self._turned)
        return self

    def min(self) -> float:
        """See `Foreign.min`."""
        return min(facts.smallest for facts in self._facts)

    def max(self) -> float:
        """See `Foreign.max`."""
        return max(facts.largest for facts in self._facts)

    def sum(self) -> float:
        """See `Foreign.sum`."""
        return float(sum(facts.total for facts in self._source.facts))

    def norm(self) -> float:
        """See `Foreign.norm`."""
        return self._norm2**0.5

    @property
    def _norm2(self) -> float:
        return math.fsum(facts.norm2 for facts in self._facts)

    @cached_property
    def _facts(self) -> list[Facts]:
        """Those of every block, once all entries are known to be finite."""
        check_finite(self, self._source.name)
        return self._source.facts

    def blocks(self) -> Iterator[tuple[int, NDArray]]:
        """See `Foreign.blocks`."""
        raise NotImplementedError("Workers look through their own blocks, see search.")

    def search(self, look: Callable[[Any], Any]) -> Iterator[tuple[int, int, Any]]:
        """See `Foreign.search`: workers look through their own blocks."""
        crew = self._source.crew
        found = crew.each("search", lambda _: (look, self._turned))
        for j in sorted(found):
            start = crew.columns(j).start
            yield (start, 0, found[j]) if self._turned else (0, start, found[j])

    def numpy(self) -> NDArray:
        """See `Foreign.numpy`; refused where it cannot fit in this process."""
        _check_room(self.array)
        values: NDArray = self.array.compute()
        return values

    def own(self, M: Any) -> Any:
        """See `Foreign.own`: small matrices stay NumPy's."""
        return M

    def panels(self, width: int | None) -> ClusterPanels:
        """See `Foreign.panels`."""
        norm2, crew = self._norm2, self._source.crew
        if width is not None:
            crew.width = width
            crew.sum("group", width)
        return ClusterPanels(crew, norm2)

    def by_columns(self, function: Callable[[NDArray], NDArray], rows: int | None = None) -> Any:
        """See `Foreign.by_columns`."""
        X = self._source.array
        height = X.chunks[0] if rows is None else (rows,)
        kind = np.empty((0, 0), self.dtype)
        return X.map_blocks(function, chunks=(height, X.chunks[1]), dtype=self.dtype, meta=kind)


class _Source:
    """The array in whole columns, and the workers that hold it once something asks for entries."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.device: Any = None
        self.name = "X"

    @property
    def dtype(self) -> np.dtype:
        return check_dtype(self.array.dtype, self.name)

    def check(self, name: str, turned: bool) -> None:
        """Refuse what cannot be a matrix; make chunks of whole columns."""
        self.name = name
        X = self.array
        if X.ndim != 2:
            shape = X.shape[::-1] if turned else X.shape
            raise ValueError(
                f"{name} must be a matrix (2-D), got a Dask array of shape {shape}; reshape a "
                f"cube to (bands, pixels) and a single column to (m, 1)."
            )
        check_dtype(X.dtype, name)
        if any(math.isnan(size) for size in X.shape):
            raise ValueError(
                f"{name} is a Dask array of unknown chunk sizes, shape {X.shape}; compute them "
                f"first with {name}.compute_chunk_sizes()."
            )
        if min(X.shape) == 0:
            raise ValueError(f"{name} is empty: its shape is {X.shape}.")
        if X.numblocks[0] > 1:
            axis = 1 if turned else 0
            warn(
                f"{name} is chunked along its features too ({X.numblocks[0]} chunks along axis "
                f"{axis}) and is rechunked to whole samples, which reads every chunk for each of "
                f"its parts. Do it once with {name}.rechunk({{{axis}: -1}}) and store the result."
            )
            self.array = X.rechunk({0: -1})

    @cached_property
    def crew(self) -> Crew:
        """Those who hold X; they load it now."""
        return Crew(self.array, self.dtype, self.device)

    @cached_property
    def facts(self) -> list[Facts]:
        """Of every block; they are kept when the crew is gone."""
        found = self.crew.each("facts", lambda _: ())
        return [found[j] for j in sorted(found)]


def _check_room(array: Any) -> None:
    from distributed.system import MEMORY_LIMIT

    if array.nbytes > MEMORY_LIMIT:
        raise MemoryError(
            f"A Dask array of shape {array.shape} takes {array.nbytes / 2**30:.3g} GiB, and this "
            f"process can have {MEMORY_LIMIT / 2**30:.3g}. Keep it on the cluster: codes, say, go "
            f"to disk with f.H[0].to_zarr(path), and the rest with f.save(path, codes=False)."
        )
