"""Dask arrays as `Matrix`: their structure is known here, their entries to workers alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.warnings import warn
from deepmf.core.arrays import check_real
from deepmf.data.dask.panels import ClusterPanels
from deepmf.data.dask.pool import WorkerPool
from deepmf.data.matrix import Found, Matrix, Stats, working_dtype
from deepmf.data.validation import refuse_not_finite


class DaskData(Matrix):
    """A Dask array whose chunks are loaded by the workers of a cluster.

    Parameters
    ----------
    array : Dask array, m x n
        Only `numpy` loads it into this process.
    transposed : bool
        See `Matrix.transposed`.
    device : str or torch.device, optional
        Where workers work.
    """

    lazy = True

    def __init__(self, array: Any, transposed: bool = False, device: Any = None) -> None:
        self.array, self.transposed, self.device = array, transposed, device
        self.shape, self.dtype = array.shape, working_dtype(array.dtype)

    @property
    def T(self) -> DaskData:
        """See `Matrix.T`."""
        return DaskData(self.array.T, not self.transposed, self.device)

    def on(self, device: Any) -> DaskData:
        """See `Matrix.on`: for workers that work on their devices."""
        return self if device == self.device else DaskData(self.array, self.transposed, device)

    def checked(self, name: str) -> DaskData:
        """See `Matrix.checked`; entries are checked when workers load them."""
        X = self.array
        if X.ndim != 2:
            raise ValueError(
                f"{name} must be a matrix (2-D), got a Dask array of shape {X.shape}; reshape a "
                f"cube to (bands, pixels) and a single column to (m, 1)."
            )
        check_real(X.dtype, name)
        if any(math.isnan(size) for size in X.shape):
            raise ValueError(
                f"{name} is a Dask array of unknown chunk sizes, shape {X.shape}; compute them "
                f"first with {name}.compute_chunk_sizes()."
            )
        if min(X.shape) == 0:
            raise ValueError(f"{name} is empty: its shape is {X.shape}.")
        return self

    @cached_property
    def _columns(self) -> Any:
        """The array in chunks of whole columns."""
        X = self.array
        if X.numblocks[0] == 1:
            return X
        axis = 1 if self.transposed else 0
        warn(
            f"X is chunked along its features too ({X.numblocks[0]} chunks along axis "
            f"{axis}) and is rechunked to whole samples, which reads every chunk for each of "
            f"its parts. Do it once with X.rechunk({{{axis}: -1}}) and store the result."
        )
        return X.rechunk({0: -1})

    @cached_property
    def workers(self) -> WorkerPool:
        """The workers that hold X; they load it when this is first accessed."""
        return WorkerPool(self._columns, self.dtype, self.device)

    @cached_property
    def stats(self) -> Stats:
        """See `Matrix.stats`; an error message says which entries are not finite."""
        found = self.workers.each("stats", lambda _: ())
        stats = Stats.joined(found[j] for j in sorted(found))
        if not math.isfinite(stats.total):
            refuse_not_finite(self, "X")
        return stats

    def blocks(self) -> Iterator[tuple[int, NDArray]]:
        """See `Matrix.blocks`."""
        raise NotImplementedError("Blocks stay on their workers.")

    def find(self, test: Callable[[NDArray], NDArray]) -> Found | None:
        """See `Matrix.find`: workers search their own blocks."""
        found = self.workers.each("find", lambda _: (test, self.transposed))
        return self._first((self.workers.columns(j).start, found[j]) for j in sorted(found))

    def numpy(self) -> NDArray:
        """See `Matrix.numpy`; refused where it cannot fit in this process."""
        _check_room(self.array)
        values: NDArray = self.array.compute()
        return values

    def own(self, M: Any) -> Any:
        """See `Matrix.own`: small matrices stay NumPy arrays."""
        return M

    def panels(self, width: int | None = None) -> ClusterPanels:
        """See `Matrix.panels`."""
        norm2, workers = self.stats.norm2, self.workers
        if width is not None:
            workers.width = width
            workers.sum("group", width)
        return ClusterPanels(workers, norm2)

    def by_columns(self, function: Callable[[NDArray], NDArray], rows: int | None = None) -> Any:
        """See `Matrix.by_columns`."""
        X = self._columns
        height = X.chunks[0] if rows is None else (rows,)
        kind = np.empty((0, 0), self.dtype)
        return X.map_blocks(function, chunks=(height, X.chunks[1]), dtype=self.dtype, meta=kind)


def _check_room(array: Any) -> None:
    from distributed.system import MEMORY_LIMIT

    if array.nbytes > MEMORY_LIMIT:
        raise MemoryError(
            f"A Dask array of shape {array.shape} takes {array.nbytes / 2**30:.3g} GiB, and this "
            f"process can have {MEMORY_LIMIT / 2**30:.3g}. Keep it on the cluster: codes, say, go "
            f"to disk with f.H[0].to_zarr(path), and the rest with f.save(path, codes=False)."
        )
