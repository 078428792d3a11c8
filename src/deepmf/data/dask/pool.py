"""A pool of Dask workers: placement of columns, calls, and recovery of lost workers.

Nothing here is imported unless X is a Dask array.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from uuid import uuid4
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.warnings import warn
from deepmf.data.dask.client import connect, disconnect, memory_used
from deepmf.data.dask.placement import Placement
from deepmf.data.dask.worker import (
    ColumnStore,
    RemoteFailure,
    WorkerOptions,
    WrongWorkerError,
    codes_here,
    merged,
    set_codes_here,
)
from deepmf.data.panels.base import Coding

_FAN = 10
"""Largest number of workers that one caller asks: beyond it, calls go through a tree of workers.
Each reply costs the caller about 1 ms."""

_PATIENCE = 2.0
"""Seconds between checks for lost workers during a call."""

_WAIT = 30.0
"""Seconds to wait for a first worker, and for the scheduler to notice one that does not answer."""

_LOSSES = 3
"""Lost workers of one block after which the block itself is held to be the cause."""


@dataclass
class WorkerRef:
    """Reference to a worker's columns: its address and its blocks."""

    name: str
    address: str
    blocks: list[int]
    future: Any
    actor: Any = None
    """The `ColumnStore` on the worker, once it is loaded."""


class LostWorkerError(Exception):
    """A worker that was asked is no longer there."""


_BROKEN = (LostWorkerError, OSError, RuntimeError, KeyError, CancelledError)
"""Exceptions that mean a lost worker; errors of its work come back as `RemoteFailure`."""


class WorkerPool:
    """X in blocks of columns over the workers of a cluster, each in one worker's `ColumnStore`.

    Parameters
    ----------
    X : Dask array, m x n
        In chunks of whole columns.
    dtype : dtype
        That of the fit.
    device : str or torch.device, optional
        Where every worker works; by default its GPU if it declares one as a resource, else its CPU.
    """

    def __init__(self, X: Any, dtype: np.dtype, device: Any = None) -> None:
        self.X, self.dtype, self.device = X, dtype, device
        self.ends = list(accumulate(X.chunks[1]))
        self._placement = Placement(X, dtype)
        self.width: int | None = None
        self.coding: Coding | None = None
        """H_1's problem: what codes blocks again that were lost."""
        self._losses: Counter[int] = Counter()
        self._linked = True
        self._members: list[WorkerRef] = []
        self.client, self._cluster = connect()
        self._end = finalize(self, disconnect, self.client, self._cluster)  # where no one closes it
        try:
            self._load(list(range(len(self.ends))))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the workers forget X and its codes; end the cluster if it was started here."""
        if self.client.status == "running":
            self.client.cancel([member.future for member in self._members])
        self._members = []
        self._end()

    # --- asking ------------------------------------------------------------------------------

    def sum(self, method: str, *args: Any) -> Any:
        """A method's results, added over all shares along a tree, in a fixed order.

        Each share asks up to 10 others and adds what they send, so that what comes in anywhere does
        not grow with the number of workers.
        """
        packed = _packed(args)
        return self._asked(lambda: [m.actor.tree(method, packed) for m in self._members[:_FAN]])

    def each(self, method: str, args: Callable[[list[int]], tuple[Any, ...] | None]) -> Any:
        """Ask each share, with arguments made from its blocks; ``None``: it is not asked.

        Results are added, or put side by side by block.
        """

        def ask() -> list[Any]:
            given = [(m.actor, args(m.blocks)) for m in self._members]
            return [a.own(method, _packed(own)) for a, own in given if own is not None]

        return self._asked(ask)

    def _asked(self, ask: Callable[[], list[Any]]) -> Any:
        while True:
            try:
                self._link()
                answers = [self._answer(call) for call in ask()]
            except _BROKEN as error:
                self._replace(error)
                continue
            total = answers[0]
            for other in answers[1:]:
                total = merged(total, other)
            if isinstance(total, RemoteFailure):
                raise total.error
            return total

    def _answer(self, call: Any) -> Any:
        while True:
            try:
                return call.result(timeout=_PATIENCE)
            except TimeoutError:
                if self._lost():
                    raise LostWorkerError from None

    def _link(self) -> None:
        """Tell every share whom to ask in turn: the i-th, those from 10 (i + 1) on."""
        if self._linked:
            return
        actors = [member.actor for member in self._members]
        firsts = range(_FAN, _FAN * (len(actors) + 1), _FAN)
        calls = [a.link(actors[first : first + _FAN]) for a, first in zip(actors, firsts)]
        for call in calls:
            self._answer(call)
        self._linked = True

    # --- placing -----------------------------------------------------------------------------

    def _load(self, blocks: list[int]) -> None:
        """Give blocks to workers, again where one is lost on the way."""
        while blocks:
            new = self._submit(blocks)
            blocks = []
            for member in new:
                try:
                    self._await([member.future], [member.address])
                    member.actor = member.future.result(timeout=_WAIT)
                    self._members.append(member)
                except (LostWorkerError, TimeoutError):
                    blocks += member.blocks
                    self._count_losses(member.blocks)
        self._members.sort(key=lambda member: member.blocks)
        self._linked = False

    def _submit(self, blocks: list[int]) -> list[WorkerRef]:
        info = self._workers()
        used = memory_used(self.client)
        place = self._placement
        shares, shared = [], 0
        for address, mine in place.plan(self.client, blocks, sorted(info)).items():
            memory = info[address]["memory_limit"]
            held, read = place.fitting(mine, address, memory, used.get(address, 0))
            where = {"workers": [address], "allow_other_workers": False}
            name = f"deepmf-share-{uuid4().hex}"
            parts = self.client.compute([place.blocks[j] for j in held], **where)
            recipes = {j: place.recipe(j) for j in read}
            shared += sum(len(graph) for graph, _ in recipes.values())
            future = self.client.submit(
                ColumnStore,
                name,
                dict(zip(held, parts)),
                {j: _packed(recipe) for j, recipe in recipes.items()},
                self._options(address, info[address]),
                self.coding,
                actor=True,
                pure=False,
                key=name,
                **where,
            )
            shares.append(WorkerRef(name, address, mine, future))
        if shared > 2 * len(place.graph):
            warn(
                "X does not fit in the workers' memory, so its chunks are computed in every sweep, "
                "and they share work that is done again for each of them. Store X first, for "
                "example with X.to_zarr(path), and fit what was stored."
            )
        return shares

    def _options(self, address: str, worker: dict[str, Any]) -> WorkerOptions:
        device = self.device
        if device is None and worker.get("resources", {}).get("GPU"):
            device = "cuda"
        return WorkerOptions(
            worker["nthreads"], not address.startswith("inproc"), device, self.width
        )

    # --- who is there ------------------------------------------------------------------------

    def _workers(self) -> dict[str, Any]:
        """The scheduler's record of each worker; waits a while for the first."""
        deadline = time.monotonic() + _WAIT
        while not (info := self._listed()):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"The Dask cluster has no workers, and none came within {_WAIT:.0f} s. Start "
                    f"some, for example with cluster.scale(2), and fit again."
                )
            time.sleep(0.1)
        return info

    def _listed(self) -> dict[str, Any]:
        if self.client.status == "running":
            try:
                info: dict[str, Any] = self.client.scheduler_info(n_workers=-1)["workers"]
                return info
            except (OSError, RuntimeError, TimeoutError):
                pass
        raise RuntimeError(
            f"The connection to the Dask cluster ended during the fit (the client is "
            f"{self.client.status}). Keep the Client open until the fit is done, and fit again."
        )

    def _lost(self) -> list[WorkerRef]:
        there = self._listed()
        bad = ("error", "lost", "cancelled")
        return [m for m in self._members if m.address not in there or m.future.status in bad]

    def _await(self, futures: Sequence[Any], addresses: Sequence[str]) -> None:
        """Wait for tasks of some workers; their errors are raised."""
        from distributed import wait
        from distributed.scheduler import KilledWorker

        working = time.monotonic()
        while True:
            try:
                with self.client.as_current():
                    wait(futures, timeout=_PATIENCE)
                break
            except TimeoutError:
                there = self._listed()
                if not set(addresses) <= set(there):
                    raise LostWorkerError from None
            except CancelledError:
                raise LostWorkerError from None
            paused = [a for a in addresses if there[a]["status"] == "paused"]
            if not paused:
                working = time.monotonic()
            elif time.monotonic() > working + _WAIT:
                worker = there[paused[0]]
                raise MemoryError(
                    f"Dask paused worker {paused[0]}, which uses "
                    f"{worker['metrics']['memory'] / 2**20:.0f} of its "
                    f"{worker['memory_limit'] / 2**20:.0f} MiB of memory, and it does not recover. "
                    f"Give workers more memory (memory_limit), or use more of them."
                )
        for future in futures:
            if future.status == "error":
                error = future.exception()
                raise LostWorkerError if isinstance(error, KilledWorker) else error
            if future.status != "finished":
                raise LostWorkerError

    def _replace(self, error: Exception) -> None:
        """Give the blocks of lost workers to others, which load and code them again."""
        deadline = time.monotonic() + _WAIT
        while not (lost := self._lost()):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"A worker of the Dask cluster did not answer ({type(error).__name__}: "
                    f"{error}), though the scheduler still lists it. Look at the workers' logs, "
                    f"restart the cluster with client.restart(), and fit again."
                ) from error
            time.sleep(0.1)
        self._members = [member for member in self._members if member not in lost]
        # or the scheduler keeps the chunks waiting for the worker that they were meant for
        self.client.cancel([member.future for member in lost])
        blocks = sorted(j for member in lost for j in member.blocks)
        self._count_losses(blocks)
        warn(
            f"The cluster lost {', '.join(m.address for m in lost)} during the fit. "
            f"{len(blocks)} of {len(self.ends)} chunks of X are loaded and coded again on other "
            f"workers, and the fit continues."
        )
        self._load(blocks)

    def _count_losses(self, blocks: list[int]) -> None:
        self._losses.update(blocks)
        if max(self._losses[j] for j in blocks) > _LOSSES:
            raise RuntimeError(
                f"Workers that held the same chunks of X were lost {_LOSSES + 1} times, most "
                f"likely for lack of memory. Give workers more of it, or X smaller chunks."
            )

    # --- columns and codes -------------------------------------------------------------------

    def columns(self, block: int) -> slice:
        """A block's columns in X."""
        return slice(self.ends[block] - self.X.chunks[1][block], self.ends[block])

    def joined(self, pieces: dict[int, NDArray]) -> NDArray:
        """Results of blocks, side by side in their order."""
        return np.concatenate([pieces[j] for j in sorted(pieces)], axis=-1)

    def codes(self, rank: int) -> Any:
        """H_1 as a Dask array whose chunks stay on their workers.

        Those of a cluster that was started here come back first, as it ends with the fit.
        """
        import dask.array as da

        chunks: dict[int, Any]
        if self._cluster is not None:
            chunks = self.each("codes", lambda _: ())
        else:
            chunks = self._tasks(codes_here, {})
        name = f"deepmf-codes-{uuid4().hex}"
        graph = {(name, 0, j): chunk for j, chunk in chunks.items()}
        return da.Array(graph, name, ((rank,), self.X.chunks[1]), dtype=self.dtype)

    def set_codes(self, H: Any) -> None:
        """Replace H_1 by an array, or by a Dask array whose chunks stay where they are."""
        if isinstance(H, np.ndarray):
            self.each("set_codes", lambda blocks: ({j: H[:, self.columns(j)] for j in blocks},))
            return
        H = H.rechunk({0: -1, 1: self.X.chunks[1]})
        parts = self.client.compute(list(H.to_delayed(optimize_graph=True).ravel()))
        self._await(parts, [])
        self._tasks(set_codes_here, dict(enumerate(parts)))

    def _tasks(self, function: Callable[..., Any], given: dict[int, Any]) -> dict[int, Any]:
        """A task for every block, on its worker: futures that live there."""
        while True:
            try:
                where = {j: m for m in self._members for j in m.blocks}
                futures = {
                    j: self.client.submit(
                        function,
                        m.name,
                        j,
                        *([given[j]] if given else []),
                        workers=[m.address],
                        allow_other_workers=True,  # where it fails: better than to wait for ever
                        pure=False,
                    )
                    for j, m in where.items()
                }
                self._await(list(futures.values()), [where[j].address for j in futures])
                return futures
            except (LostWorkerError, WrongWorkerError) as error:
                self._replace(error)


def _packed(args: tuple[Any, ...]) -> bytes:
    """Arguments as they travel: classes of the user's own script go along."""
    import cloudpickle

    packed: bytes = cloudpickle.dumps(args)
    return packed
