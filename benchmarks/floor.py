"""Lower bound of the time of a sweep on this machine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from .data import Array
from .measure import timed


def read_rate(X: Array, threads: int) -> float:
    """Bytes per second at which threads read X, each a part of it: the faster of two methods."""
    parts = np.array_split(X.ravel(order="K"), threads)
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        ways = [np.sum, lambda part: np.dot(part, part)]
        times = [timed(lambda way=way: list(pool.map(way, parts))) for way in ways]
    return X.nbytes / min(times)


def gemm_rate(threads: int, dtype: type = np.float64, size: int = 1536) -> float:
    """Flops per second of a square BLAS matrix product on the given number of threads."""
    A = np.ones((size, size), dtype)
    with threadpool_limits(threads):
        return 2 * size**3 / timed(lambda: A @ A)


@dataclass(frozen=True)
class Floor:
    """Lower bound of the time of a single-layer sweep in float64, in seconds.

    Bytes: X read once, H_1 read and written once. Flops: G'X and X H' (2 m r each per column),
    H H' (2 r^2) and the products A H of the inner iterations (2 r^2 each); steps, projections and
    extrapolation count nothing, so that it is a lower bound.
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
        """Compute the bound from sizes and measured rates."""
        m, n = shape
        moved = 8.0 * n * (m + 2 * rank)
        flops = n * (4.0 * m * rank + 2 * rank**2 * (1 + inner))
        return cls(moved / bytes_rate, flops / flop_rate)
