"""Columns of X on a device: all of them there, or sent from host memory block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from deepmf.data.gpu.tensor import as_array
from deepmf.data.on_disk import OnDisk

_BYTES = 1 << 28
"""Size of a block that is sent: long enough to be sent at full speed."""

_AHEAD = 3
"""Blocks on the device at a time: one is worked on while others arrive."""


class Blocks(Protocol):
    """The columns of X, some neighbors at a time, as tensors on a device."""

    shape: tuple[int, int]
    device: torch.device
    most: int
    """Columns that are there together."""

    def each(self, width: int) -> Iterator[tuple[slice, torch.Tensor]]:
        """Blocks of N columns in turn; each tensor is valid until the next one is asked for."""

    def some(self, index: NDArray[np.intp]) -> NDArray:
        """Some columns, on the CPU."""

    def close(self) -> None:
        """Let go of the memory held."""


def blocks_of(X: Any, device: torch.device, dtype: torch.dtype) -> Blocks:
    """The columns of a tensor on its device, or of anything else sent to the given one."""
    return Resident(X) if isinstance(X, torch.Tensor) else Streamed(X, device, dtype)


class Resident:
    """Columns of a tensor on its own device."""

    def __init__(self, X: torch.Tensor) -> None:
        self.X = X if 1 in X.stride() else X.contiguous()
        self.shape = (X.shape[0], X.shape[1])
        self.device, self.most = X.device, X.shape[1]

    def each(self, width: int) -> Iterator[tuple[slice, torch.Tensor]]:
        """See `Blocks.each`."""
        for cols in _slices(self.most, width):
            yield cols, self.X[:, cols]

    def some(self, index: NDArray[np.intp]) -> NDArray:
        """See `Blocks.some`."""
        return as_array(self.X[:, torch.as_tensor(index, device=self.device)])

    def close(self) -> None:
        """See `Blocks.close`; X is the caller's."""


class Streamed:
    """Columns of an array, in memory or on disk, sent while those before are worked on.

    The array's pages are locked in memory, where the system allows it, so that copies run beside
    everything else; otherwise, and for data on disk, they take turns with the CPU.
    """

    def __init__(self, X: Any, device: torch.device, dtype: torch.dtype) -> None:
        from deepmf.data.gpu import driver

        self.driver = driver
        ordered = isinstance(X, OnDisk) or X.flags.c_contiguous or X.flags.f_contiguous
        self.X = X if ordered else np.ascontiguousarray(X)
        self.shape, self.device, self.dtype = (X.shape[0], X.shape[1]), device, dtype
        wanted = _BYTES // (X.shape[0] * X.dtype.itemsize)
        self.most = min(max(64, wanted // 64 * 64), X.shape[1])
        self.copies = torch.cuda.Stream(device)
        self._unlock = None if isinstance(X, OnDisk) else driver.lock(self.X, device)

    def each(self, width: int) -> Iterator[tuple[slice, torch.Tensor]]:
        """See `Blocks.each`."""
        m, work = self.shape[0], torch.cuda.current_stream(self.device)
        width = min(width, self.shape[1])
        pitch = -(-width // 4) * 4  # rows of a block begin at multiples of 16 bytes
        room = [torch.empty(m * pitch, dtype=self.dtype, device=self.device) for _ in range(_AHEAD)]
        free = [work.record_event() for _ in room]
        todo = [(cols, k % _AHEAD) for k, cols in enumerate(_slices(self.shape[1], width))]

        def send(cols: slice, k: int) -> tuple[torch.Tensor, torch.cuda.Event]:
            X = self.X
            part = X[:, cols]
            by_row = not X.flags.f_contiguous if isinstance(X, np.ndarray) else True
            to = room[k].view(m, pitch) if by_row else room[k][: m * width].view(width, m)
            to = to[:, : part.shape[1]] if by_row else to[: part.shape[1]].T
            self.copies.wait_event(free[k])
            with torch.cuda.device(self.device):
                self.driver.copy(part, to, self.copies)
            return to, self.copies.record_event()

        try:
            arriving = send(*todo[0])
            for (cols, k), following in zip(todo, [*todo[1:], None]):
                block, ready = arriving
                if following is not None:
                    arriving = send(*following)
                work.wait_event(ready)
                yield cols, block
                free[k] = work.record_event()
        finally:  # no one else gets the room before all is done
            self.copies.synchronize()
            work.synchronize()

    def some(self, index: NDArray[np.intp]) -> NDArray:
        """See `Blocks.some`."""
        some: NDArray = self.X[:, index]
        return some

    def close(self) -> None:
        """See `Blocks.close`."""
        if self._unlock is not None:
            self._unlock()
            self._unlock = None


def _slices(n: int, width: int) -> list[slice]:
    return [slice(start, min(start + width, n)) for start in range(0, n, width)]
