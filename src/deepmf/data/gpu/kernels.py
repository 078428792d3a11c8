"""Updates of the codes on a CUDA device: the kernels of ``pass.cu``, their sizes and launches.

Up to 64 bytes of codes a column, X is read once: a tile of columns stays on chip from ``G'X``
through the descent to ``X H'``. Beyond, cuBLAS computes G'X, several threads share a column of
the descent, and X is read a second time for ``X H'``. Sums over columns are in double precision.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from deepmf.core.quadratic import Array
from deepmf.data.gpu import driver
from deepmf.data.gpu.driver import NoPassError
from deepmf.data.gpu.streaming import Blocks, Resident
from deepmf.data.panels.codes import Step

if TYPE_CHECKING:
    from deepmf.kernels.descent import Descent

_THREADS, _WARPS = 128, 4
_TILE = 256
"""Bytes of a row of a tile."""

_FUSED_BYTES = 64
"""Codes of a column up to which one thread holds its descent in registers."""

_SUMS = 14
"""16 x 8 sums in double precision that a warp can hold in registers beside its work."""

_RECORDED = 8
"""Calls that are remembered: codes alternate between two buffers, or three with a start."""

_LIMITS = 8
"""Numbers sent beside A, the steps and G, as in the kernels."""

_COLUMNS, _RESIDENT = 4, 2
"""Columns of a thread in a shared descent; blocks that must find registers on a multiprocessor."""


class Pass:
    """H -> its update for (A, G), with X H' and H H', in one pass over X.

    Parameters
    ----------
    blocks : Blocks
        The columns of X.
    dtype : torch.dtype
        Of X and H.
    width : int
        Columns of G'X that are formed together, where they are.
    m, r : int
        Rows of X and of H.
    kind, fast : int, bool
        The set, and whether steps are accelerated, as in `kernels.descent.Descent`.
    """

    def __init__(
        self, blocks: Blocks, dtype: torch.dtype, width: int, m: int, r: int, kind: int, fast: bool
    ) -> None:
        self.blocks, self.width, self.m, self.r = blocks, width, m, r
        self.recordable = isinstance(blocks, Resident)
        with torch.cuda.device(blocks.device):
            X = next(iter(blocks.each(blocks.most)))[1]
            self.plan = Plan(X, m, r, kind, fast)
            like: dict[str, Any] = {"dtype": dtype, "device": blocks.device}
            self.sent = torch.zeros(self.plan.sent, **like)
            self.host_sent = torch.zeros(self.plan.sent, dtype=dtype, pin_memory=True)
            self.host_sums = torch.empty((m + r) * r, dtype=torch.float64, pin_memory=True)
            self.sums = self.host_sums.to(blocks.device)
            self.parts = self.sums.repeat(self.plan.blocks)
            self.C = torch.empty((r, 0 if self.plan.fused else min(width, blocks.most)), **like)
        self.small = self.plan.places(self.host_sent.numpy())
        self.G = self.plan.places(self.sent)[3]
        self.beta = torch.empty(0, **like)
        self.recorded: dict[Any, torch.cuda.CUDAGraph | None] = {}

    def __call__(
        self, A: Array, G: Array, shift: float, step: Step, descent: Descent
    ) -> tuple[Array, Array]:
        """Improve P(H + beta (H - to)), into ``to``, for A and G'X + shift; X H' and H H'.

        The second call of a kind is recorded, and from then on a call is one launch.
        """
        H, to, max_iter, alpha = step.H, step.to, descent.max_iter, descent.alpha1
        small = self.small
        small[0][:], small[1][:], small[3][:] = A, descent.step, G
        small[2][:] = (descent.lower, descent.upper, descent.tol2, step.beta, shift)
        with torch.cuda.device(self.blocks.device):
            if len(self.beta) != max_iter + 1:
                self.beta = torch.as_tensor(extrapolations(max_iter, alpha)).to(H.device)
            key = (H.data_ptr(), to.data_ptr(), max_iter)
            graph = self.recorded.get(key)
            if graph is None and key in self.recorded and self.recordable:
                graph = self.recorded[key] = torch.cuda.CUDAGraph()
                with _no_collection(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    self._run(H, to, max_iter)
            if graph is None:
                self.recorded = {**dict(list(self.recorded.items())[-_RECORDED:]), key: None}
                self._run(H, to, max_iter)
            else:
                graph.replay()
            torch.cuda.current_stream().synchronize()
        both = self.host_sums.numpy().reshape(self.m + self.r, self.r).copy()
        return both[: self.m], both[self.m :]

    def _run(self, H: torch.Tensor, to: torch.Tensor, max_iter: int) -> None:
        """Queue it all."""
        self.sent.copy_(self.host_sent, non_blocking=True)
        for cols, X in self.blocks.each(self.blocks.most):
            again, codes = int(cols.start > 0), (H[:, cols], to[:, cols])
            if self.plan.fused:
                self.plan.sweep(X, *codes, self.sent, self.beta, self.parts, max_iter, again)
            else:
                self._descend(X, *codes, max_iter)
                self.plan.add(X, codes[1], self.parts, again)
        self.plan.reduce(self.parts, self.sums)
        self.host_sums.copy_(self.sums, non_blocking=True)

    def _descend(self, X: torch.Tensor, H: torch.Tensor, to: torch.Tensor, max_iter: int) -> None:
        for start in range(0, X.shape[1], self.width):
            cols = slice(start, min(start + self.width, X.shape[1]))
            C = self.C[:, : cols.stop - start]
            torch.matmul(self.G.T, X[:, cols], out=C)
            self.plan.descend(C, H[:, cols], to[:, cols], self.sent, self.beta, max_iter)


class Plan:
    """The kernels for one size, and how they are launched.

    Parameters
    ----------
    X : tensor
        The first columns of X: their order and type, and how many there are at most together.
    m, r, kind, fast
        See `Pass`.
    """

    def __init__(self, X: torch.Tensor, m: int, r: int, kind: int, fast: bool) -> None:
        self.m, self.r, self.size = m, r, X.element_size()
        self.vec, self.tile = 16 // self.size, _TILE // self.size
        self.by_column = X.stride(1) != 1
        self.ldx = X.stride(1) if self.by_column else X.stride(0)
        chip = torch.cuda.get_device_properties(X.device)
        if chip.major < 8:
            raise NoPassError(f"{chip.name} is older than the kernels know (sm_80)")
        room = driver.shared_memory()
        self.fused = r * self.size <= _FUSED_BYTES and self._fuse(room)
        if not self.fused and not self._split(room):
            raise NoPassError(f"{m} rows at rank {r} are too large for the device's kernels")
        place = X.data_ptr() | self.ldx * self.size
        constants = {
            "M": m, "R": r, "KIND": kind, "FAST": int(fast), "BY_COLUMN": int(self.by_column),
            "WIDE": next(w for w in (16, 8, 4) if place % w == 0), "TN": self.tile, "TY": self.ty,
            "RT": self.rt, "CT": self.ct, "MT": self.mt, "RESIDENT": self.resident,
        }  # fmt: skip
        lines = [f"constexpr int {name} = {value};" for name, value in constants.items()]
        lines += [f"typedef {'float' if self.size == 4 else 'double'} T;"]
        lines += ["#define FUSED"] if self.fused else []
        self.kernels = driver.kernels(
            "\n".join([*lines, _source()]),
            {
                **{name: ((_THREADS, 1), n) for name, n in self.shared.items()},
                "reduce": ((32, 8), 0),
            },
        )
        self.processors = chip.multi_processor_count
        adds = self.kernels["sweep" if self.fused else "sums"]
        tiles = -(-X.shape[1] // self.tile)
        self.blocks = max(1, min(tiles, adds.resident * self.processors // self.across))

    def _fuse(self, room: int) -> bool:
        """Sizes for all in one kernel; false where they exceed what there is."""
        m, r, vec = self.m, self.r, self.vec
        part = -(-m // (_WARPS * vec)) * vec
        self.pitch, self.sent_rows = -(-r // vec) * vec, _WARPS * part
        bands = -(-m // 8) + -(-r // 8)
        self.ty, self.rt, self.ct, self.mt, self.across = 1, r, 1, -(-bands // (2 * _WARPS)), 1
        entries = self._tile(8 * bands, self.by_column)
        entries += self.sent + (_WARPS - 1) * r * self.tile
        self.shared = {"sweep": entries * self.size}
        self.resident = _RESIDENT
        return self.shared["sweep"] <= room and self.mt * -(-r // 8) <= _SUMS

    def _split(self, room: int) -> bool:
        """Sizes for the descent and the sums apart."""
        r, bands = self.r, -(-self.r // 8)
        self.rt, self.ct, self.sent_rows = 8, _COLUMNS, self.m
        self.ty = max(2, 1 << (bands - 1).bit_length())
        self.pitch, self.resident = self.ty * self.rt, _RESIDENT
        self.mt = max(1, min(_SUMS // bands, 2))
        rows = 16 * _WARPS * self.mt
        self.across = -(-self.m // rows) + -(-r // rows)
        self.columns = _WARPS * (32 // self.ty) * self.ct
        alone = r * self.pitch + self.pitch + _LIMITS + r * self.columns
        both = self._tile(rows, self.by_column) + self._tile(8 * bands, False)
        self.shared = {"descend": alone * self.size, "sums": both * self.size}
        return max(self.shared.values()) <= room and self.ty <= 32 and bands <= _SUMS

    def _tile(self, rows: int, by_column: bool) -> int:
        """Entries of a tile, see `Tile` in the kernels."""
        vec = self.vec
        return self.tile * (-(-rows // vec) | 1) * vec if by_column else rows * (self.tile + vec)

    @property
    def sent(self) -> int:
        """Entries that the small side sends: A, the steps, the limits and G."""
        return (self.r + 1 + self.sent_rows) * self.pitch + _LIMITS

    def places(self, sent: Any) -> tuple[Any, Any, Any, Any]:
        """A, the steps, the limits and G in what is sent, an array or a tensor."""
        r, p = self.r, self.pitch
        A, G = sent[: r * p].reshape(r, p), sent[(r + 1) * p + _LIMITS :].reshape(-1, p)
        return (
            A[:, :r],
            sent[r * p : r * p + r],
            sent[(r + 1) * p : (r + 1) * p + 5],
            G[: self.m, :r],
        )

    def sweep(self, X: Any, H: Any, to: Any, *rest: Any) -> None:
        """All of a pass."""
        self.kernels["sweep"](
            (self.blocks, 1, 1), X, self.ldx, H, to, to.stride(0), to.shape[1], *rest
        )

    def descend(self, C: Any, H: Any, to: Any, *rest: Any) -> None:
        """The descent from C = G'X."""
        kernel = self.kernels["descend"]
        blocks = min(-(-H.shape[1] // self.columns), kernel.resident * self.processors)
        kernel((blocks, 1, 1), C, C.stride(0), H, to, to.stride(0), to.shape[1], *rest)

    def add(self, X: Any, H: Any, parts: Any, again: int) -> None:
        """[X; H] H' of each block of threads."""
        self.kernels["sums"](
            (self.blocks, self.across, 1),
            X, self.ldx, H, H.stride(0), H.shape[1], parts, again,
        )  # fmt: skip

    def reduce(self, parts: Any, sums: Any) -> None:
        """The sums of all blocks."""
        self.kernels["reduce"]((-(-len(sums) // 32), 1, 1), parts, self.blocks, sums)


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection inside: a graph that it found there would end the process."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def extrapolations(count: int, alpha: Any) -> NDArray:
    """b_k of Algorithm 4 for k = 0, ..., count steps after a restart, in the type of alpha_1."""
    out, a = np.empty(count + 1, dtype=type(alpha)), float(alpha)
    for k in range(count + 1):
        following = (math.sqrt(a**4 + 4 * a**2) - a**2) / 2
        out[k] = a * (1 - a) / (a**2 + following)
        a = following
    return out


@cache
def _source() -> str:
    return (files("deepmf.data.gpu") / "pass.cu").read_text(encoding="utf-8")
