"""Assignment of a Dask array's chunks to workers, and to their memory."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

_HOLD = 0.5
"""Part of a worker's memory that may be in use with the blocks of X that stay; Dask pauses a worker
at 0.8 and ends it at 0.95."""

_CODES = 0.125
"""Room left for the codes, as a part of what all of a worker's blocks take."""

_ROOM = 0.5
"""Part of a worker's memory that a single block may take."""


class Placement:
    """The chunks of X, by their numbers.

    Parameters
    ----------
    X : Dask array, m x n
        In chunks of whole columns.
    dtype : dtype
        That of the fit.
    """

    def __init__(self, X: Any, dtype: np.dtype) -> None:
        self.X, self.dtype = X, dtype
        self.blocks = X.to_delayed(optimize_graph=True).ravel()

    def plan(self, client: Any, blocks: list[int], workers: list[str]) -> dict[str, list[int]]:
        """Neighboring blocks to the same worker, of about as many columns for each.

        Where the blocks are already on the workers they stay.
        """
        plan: dict[str, list[int]] = {}
        there = {j: own for j, own in self._whereabouts(client, blocks).items() if own in workers}
        total, before = sum(self.X.chunks[1][j] for j in blocks), 0
        for j in blocks:
            middle = before + self.X.chunks[1][j] / 2
            before += self.X.chunks[1][j]
            own = there.get(j) or workers[int(len(workers) * middle / total)]
            plan.setdefault(own, []).append(j)
        return plan

    def _whereabouts(self, client: Any, blocks: list[int]) -> dict[int, str]:
        from distributed import futures_of

        if not futures_of(self.X):
            return {}
        keys = {j: self.blocks[j].key for j in blocks}
        who = client.who_has()
        return {j: min(who[key]) for j, key in keys.items() if who.get(key)}

    def fitting(
        self, blocks: list[int], address: str, memory: int | None, used: int
    ) -> tuple[list[int], list[int]]:
        """Blocks that fit in a worker's memory, and those that are computed for every pass."""
        from distributed import futures_of

        if not memory or futures_of(self.X) or not isinstance(self.X._meta, np.ndarray):
            return blocks, []  # no limit, or already in memory, or sparse
        largest = max(map(self._bytes, blocks))
        if largest > _ROOM * memory:
            columns = max(1, int(_ROOM * memory / 4 / (self.X.shape[0] * self.dtype.itemsize)))
            raise ValueError(
                f"A chunk of X takes {largest / 2**20:.0f} MiB as {self.dtype}, and worker "
                f"{address} has {memory / 2**20:.0f} MiB of memory: too little to work on it. "
                f"Make chunks of at most {columns} samples with X.rechunk, or give workers more."
            )
        totals = list(accumulate(map(self._bytes, blocks)))
        room = _HOLD * memory - used - _CODES * totals[-1]
        count = sum(total <= room for total in totals)
        return blocks[:count], blocks[count:]

    def _bytes(self, block: int) -> int:
        return int(self.X.shape[0] * self.X.chunks[1][block] * self.dtype.itemsize)

    @cached_property
    def graph(self) -> dict[Any, Any]:
        """All of X's."""
        return dict(self.blocks[0].__dask_graph__())

    def recipe(self, block: int) -> tuple[dict[Any, Any], Any]:
        """A block's own part of the task graph, and its key."""
        from dask.optimization import cull

        key = self.blocks[block].key
        graph, _ = cull(self.graph, [key])
        return graph, key
