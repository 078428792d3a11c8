"""Kullback-Leibler divergence of sparse counts: compiled passes against scikit-learn and a floor.

    python -m benchmarks.kullback_leibler            counts of cells and of words, several minutes
    python -m benchmarks.kullback_leibler --quick    small sizes, to test the case itself

A sweep is one pass over X (new codes H, and the sums K and h of them) and the multiplicative step
W <- W o K / h. The goal is the objective that scikit-learn's multiplicative updates reach in 200
iterations from the same start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF

from deepmf._utils.threads import do_in_threads, in_threads, thread_count
from deepmf.kernels import kullback_leibler as kernels
from deepmf.kernels.padding import TILE, aligned, padded, up_to
from deepmf.kernels.simd import load, splat, store
from deepmf.solvers.dispatch import frozen

from .data import Array, documents
from .measure import Result, Row, Size, Table, case, interleaved, quiet, ratio_row, seconds, timed

ITERATIONS, MOST = 200, 400
TASKS = 8
WAYS = {
    "1 Newton step": (True, 1),
    "2 Newton steps": (True, 2),
    "1 multiplicative step": (False, 1),
    "2 multiplicative steps": (False, 2),
    "3 multiplicative steps": (False, 3),
}
REAL = {
    "cells": "pbmc_facs_counts.npz",
    "words": "20news_counts.npz",
}


class Loop:
    """Alternating fit of X ~ W H, with buffers that are kept from sweep to sweep."""

    def __init__(self, X: Any, W: Array, H: Array) -> None:
        self.X, self.W, self.H = X, W.copy(), H.copy()
        self.parts = [frozen(part) for part in (X.data, X.indices, X.indptr)]
        n, width = X.shape[1], up_to(32, -(-X.shape[1] // TASKS))
        self.tasks = [(start, min(start + width, n)) for start in range(0, n, width)]

    @cached_property
    def _buffers(self) -> list[Array]:
        m, r = self.W.shape
        return [aligned(m, up_to(TILE, r), np.float64)[None] for _ in self.tasks]

    def sweep(self, newton: bool, steps: int) -> None:
        m, r = self.W.shape
        B, s = padded(self.W, np.float64, 1, TILE)[None], self.W.sum(axis=0)[None]
        w, A, V = np.ones(1), np.zeros((r, r)), np.zeros((r, 1))

        def task(k: int) -> Array:
            hsum, K = np.zeros(r), self._buffers[k]
            K[:] = 0
            more = (w, B, s, A, V, self.H, *self.tasks[k], newton, steps, 0.0, K, hsum)
            kernels.update_sparse(*self.parts, *more)
            return hsum

        hsum = sum(in_threads(task, range(len(self.tasks))))

        def improve(rows: slice) -> None:
            K = sum(K[0, rows, :r] for K in self._buffers)
            self.W[rows] *= K / np.maximum(hsum, 1e-300)

        do_in_threads(improve, [slice(k, k + 1024) for k in range(0, m, 1024)])

    def value(self) -> float:
        """The divergence, less the terms that X alone decides."""
        B = padded(self.W, np.float64, 1, TILE)

        def task(ends: tuple[int, int]) -> float:
            return kernels.value_sparse(*self.parts, B, self.H, *ends)

        return float(self.W.sum(axis=0) @ self.H.sum(axis=1) - sum(in_threads(task, self.tasks)))

    def floor(self) -> None:
        """One read of the nonzeros with a multiply-add for each of them and each component."""
        B = padded(self.W, np.float64, 1, TILE)

        def task(ends: tuple[int, int]) -> None:
            _read(*self.parts, B, *ends, aligned(1, B.shape[1], np.float64))

        do_in_threads(task, self.tasks)


@numba.njit(nogil=True, error_model="numpy")
def _read(data: Any, indices: Any, indptr: Any, B: Any, first: int, last: int, out: Any) -> None:
    """B'x of each column x."""
    for j in range(first, last):
        for k in range(0, B.shape[1], TILE):
            sums = splat(B, 0)
            for i in range(indptr[j], indptr[j + 1]):
                sums = sums + splat(B, data[i]) * load(B, indices[i], k)
            store(sums, out, 0, k)


@case("kullback-leibler", limit=1200)
def kullback_leibler(size: Size) -> Result:
    """Race to scikit-learn's objective, and the parts of a sweep, on each kind of counts."""
    rows: list[Row] = []
    lines: list[list[str]] = []
    for name, X, r in _counts(size):
        W, H = _start(X, r)
        theirs, goal = _scikit_learn(X, W, H, size.pick(ITERATIONS, 5))
        for way, how in WAYS.items():
            ours, sweeps = _race(X, W, H, goal, *how)
            lines.append([name, way, str(sweeps), seconds(ours), f"{ours / theirs:.3f}"])
            if how == (True, 1):
                what = f"{name}: time to the objective of {ITERATIONS} of scikit-learn's iterations"
                rows.append(ratio_row(what, ours, theirs, 0.05, note=f"{sweeps} sweeps"))
        rows += _sweeps(name, Loop(X, W, H), size.pick(9, 2))
    columns = ["counts", "codes", "sweeps", "time", "over scikit-learn"]
    return Result(rows, [Table("Kullback-Leibler divergence", columns, lines)])


def _counts(size: Size) -> Iterator[tuple[str, Any, int]]:
    """Names, counts in CSC form, and ranks."""
    for name, r in (("cells", 6), ("cells", 20), ("words", 20)):
        folder = os.environ.get("DEEPMF_DATA")
        path = next(iter(Path(folder).rglob(REAL[name])), None) if folder else None
        if size.quick or path is None:
            X = documents(*size.pick((8000, 4000), (300, 200)), size.pick(0.02, 0.1))
        else:
            X = sparse.csc_array(sparse.load_npz(path))
        m, n = X.shape
        yield f"{name} {m} x {n}, r = {r}", X.astype(np.float64), r


def _start(X: Any, r: int) -> tuple[Array, Array]:
    """Positive random factors of the right size, as scikit-learn draws them."""
    rng = np.random.default_rng(0)
    size = np.sqrt(X.mean() / r)
    m, n = X.shape
    W, H = rng.standard_normal((m, r)), rng.standard_normal((r, n))
    return size * np.abs(W) + 1e-6, size * np.abs(H) + 1e-6


def _scikit_learn(X: Any, W: Array, H: Array, iterations: int) -> tuple[float, float]:
    """Time of scikit-learn's iterations, less the setup, and the objective they reach."""
    Xt = sparse.csr_array(X.T)

    def run(count: int) -> tuple[NMF, Array]:
        settings = {"solver": "mu", "beta_loss": "kullback-leibler", "tol": 0, "init": "custom"}
        model = NMF(W.shape[1], max_iter=count, **settings)
        codes, basis = np.array(H.T, order="C"), np.array(W.T, order="C")
        return model, model.fit_transform(Xt, W=codes, H=basis)

    with quiet():
        setup = timed(lambda: run(1))
        fits: list[tuple[NMF, Array]] = []
        whole = timed(lambda: fits.append(run(iterations)))
    model, codes = fits[0]
    goal = Loop(X, model.components_.T, codes.T).value()
    return (whole - setup) * iterations / (iterations - 1), goal


def _race(X: Any, W: Array, H: Array, goal: float, newton: bool, steps: int) -> tuple[float, int]:
    """Time and sweeps to the goal, with the objective after every sweep."""
    warm = Loop(X, W, H)
    warm.sweep(newton, steps)
    warm.value()
    loop, spent = Loop(X, W, H), 0.0

    def once() -> None:
        nonlocal value
        loop.sweep(newton, steps)
        value = loop.value()

    value, sweeps = np.inf, 0
    while value > goal and sweeps < MOST:
        spent += timed(once)
        sweeps += 1
    return (spent if value <= goal else np.inf), sweeps  # never reached: no time is enough


def _sweeps(name: str, loop: Loop, rounds: int) -> list[Row]:
    """Times of a sweep and of an objective over the floor's."""
    for _ in range(5):
        loop.sweep(True, 1)
    W, H = loop.W.copy(), loop.H.copy()

    def sweep(how: tuple[bool, int]) -> Callable[[], float]:
        def work() -> float:
            loop.W[:], loop.H[:] = W, H
            return timed(lambda: loop.sweep(*how))

        return work

    tasks = {way: sweep(how) for way, how in WAYS.items()}
    tasks |= {"value": lambda: timed(loop.value), "floor": lambda: timed(loop.floor)}
    t = interleaved(tasks, rounds)
    where = f"{thread_count()} threads"
    return [
        ratio_row(f"{name}: {what} over one read", t[what], t["floor"], goal, note=where)
        for what, goal in (
            ("1 Newton step", 3),
            ("2 Newton steps", None),
            ("1 multiplicative step", 3),
            ("value", None),
        )
    ]


def main() -> None:
    result = kullback_leibler(Size("--quick" in sys.argv))
    for row in result.rows:
        print(f"{row.measure}: {row.ratio} ({row.deepmf} against {row.other}) {row.note}")
    for table in result.tables:
        for line in (table.columns, *table.rows):
            print("  ".join(line))


if __name__ == "__main__":
    main()
