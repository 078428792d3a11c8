"""The least time that one sweep could take on this machine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from .data import Array
from .measure import timed


def read_rate(X: Array, threads: int) -> float:
    """Bytes a second at which so many threads read X, each a part of it: the better of two ways."""
    parts = np.array_split(X.ravel(order="K"), threads)
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        ways = [np.sum, lambda part: np.dot(part, part)]
        times = [timed(lambda way=way: list(pool.map(way, parts))) for way in ways]
    return X.nbytes / min(times)


def gemm_rate(threads: int, dtype: type = np.float64, size: int = 1536) -> float:
    """Flops a second of a square matrix product by BLAS on so many threads."""
    A = np.ones((size, size), dtype)
    with threadpool_limits(threads):
        return 2 * size**3 / timed(lambda: A @ A)


@dataclass(frozen=True)
class Floor:
    """The least seconds for one single-layer sweep in float64.

    Bytes: X read once, H_1 read and written once. Flops: G'X and X H' (2 m r each a column),
    H H' (2 r^2) and the inner iterations' products A H (2 r^2 each); nothing for steps, projections
    and momentum, so that it is a floor.
    """

    reading: float
    arithmetic: float

    @property
    def seconds(self) -> float:
        """The larger of bytes / bandwidth and flops / GEMM rate."""
        return max(self.reading, self.arithmetic)

    @classmethod
    def of(
        cls, shape: tuple[int, int], rank: int, inner: int, bytes_rate: float, flop_rate: float
    ) -> Floor:
        """From the sizes and the rates measured."""
        m, n = shape
        moved = 8.0 * n * (m + 2 * rank)
        flops = n * (4.0 * m * rank + 2 * rank**2 * (1 + inner))
        return cls(moved / bytes_rate, flops / flop_rate)
