"""Fits on a local Dask cluster: overhead of a sweep compared with memory, and communication.

python -m benchmarks.cluster             about five minutes; writes results/cluster.md
python -m benchmarks.cluster --quick     small sizes, to test the benchmarks themselves
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from distributed.comm.tcp import TCP

from deepmf import FastProjectedGradient, Nonnegative, factorize
from deepmf._utils.threads import limit_threads
from deepmf.data.dask import placement, pool
from deepmf.data.panels import Coding

from . import machine

RESULT = Path(__file__).parent / "results" / "cluster.md"
QUIET = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
PLAIN: dict[str, Any] = {"init": "random", "random_state": 0, "tol": 0}


@contextmanager
def workers(number: int, **settings: Any) -> Iterator[Client]:
    settings = {"threads_per_worker": 1, "memory_limit": "4GB", **settings}
    with LocalCluster(n_workers=number, **settings, **QUIET) as local, Client(local) as client:
        yield client


def data(m: int, n: int, dtype: type = np.float64) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.random((m, 12)) @ rng.random((12, n)) + 0.1 * rng.random((m, n))
    return X.astype(dtype)


def sweep_times(X: Any, ranks: list[int], sweeps: int) -> np.ndarray:
    """Seconds of each sweep except the first, which may compile."""
    f = factorize(X, ranks, max_iter=sweeps, **PLAIN)
    return np.diff(f.history.time)[1:]


def overhead(quick: bool) -> list[str]:
    """A sweep of small data on workers and in memory: the difference is the overhead."""
    lines = [
        "| m | n | r | in memory | 2 workers | overhead, median | smallest |",
        "|" + "---|" * 7,
    ]
    sweeps = 20 if quick else 100
    with workers(2):
        for m, n, r in ((50, 1000, 5), (200, 2000, 10), (200, 2000, 40), (1000, 1000, 20)):
            X = data(m, n)
            D = da.from_array(X, chunks=(m, n // 2))
            here, there = [], []
            for _ in range(2 if quick else 5):
                here += sweep_times(X, [r], sweeps).tolist()
                there += sweep_times(D, [r], sweeps).tolist()
            a, b = statistics.median(here), statistics.median(there)
            lines.append(
                f"| {m} | {n} | {r} | {1e3 * a:.2f} ms | {1e3 * b:.2f} ms | {1e3 * (b - a):.2f} ms "
                f"| {1e3 * (min(there) - min(here)):.2f} ms |"
            )
    return lines


def moved(quick: bool) -> list[str]:
    """Bytes written by client and scheduler per sweep; the scheduler forwards what workers send."""
    lines = [
        "| m | r | n | bytes a sweep | over m r + r r float64 of both workers |",
        "|---" * 5 + "|",
    ]
    sent: list[int] = []
    write = TCP.write

    async def counted(self: TCP, *args: Any, **kwargs: Any) -> int:
        number = await write(self, *args, **kwargs)
        sent.append(number)
        return number

    TCP.write = counted  # type: ignore[method-assign]
    try:
        with workers(2):
            for m, r, n in ((200, 10, 2_000), (200, 10, 20_000), (200, 10, 200_000)):
                X = da.random.default_rng(0).random((m, n), chunks=(m, n // 4))
                marks: list[int] = []

                def mark(progress: object, marks: list[int] = marks) -> None:
                    marks.append(sum(sent))

                factorize(X, [r], max_iter=10 if quick else 30, callbacks=mark, **PLAIN)
                size = statistics.median(np.diff(marks).tolist())
                numbers = 2 * 8 * (m * r + r * r)
                lines.append(f"| {m} | {r} | {n} | {size:.0f} | {size / numbers:.2f} |")
    finally:
        TCP.write = write  # type: ignore[method-assign]
    return lines


def speed(quick: bool) -> list[str]:
    """A large fit on the two cores of this machine: threads of one process and workers."""
    m, n, r = 200, 20_000 if quick else 400_000, 10
    X = data(m, n, np.float32)
    lines = [f"{m} x {n} float32, r = {r}, {X.nbytes / 2**20:.0f} MiB", ""]
    lines += ["| | a sweep, the fastest | over one thread in memory |", "|---|---|---|"]
    times: dict[str, float] = {}
    sweeps = 4 if quick else 20
    for threads in (1, 2):
        with limit_threads(threads):
            times[f"in memory, {threads} thread(s)"] = sweep_times(X, [r], sweeps).min()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "x.zarr")
        da.from_array(X, chunks=(m, n // 16)).to_zarr(path)
        for several in (1, 2):
            with workers(several):
                D = da.from_zarr(path)
                times[f"{several} worker(s) of 1 thread"] = sweep_times(D, [r], sweeps).min()
        held, placement._HOLD = placement._HOLD, 0.0
        try:
            with workers(2):
                name = "2 workers, X read from Zarr in every sweep"
                times[name] = sweep_times(da.from_zarr(path), [r], sweeps).min()
        finally:
            placement._HOLD = held
    first = next(iter(times.values()))
    lines += [f"| {name} | {1e3 * t:.0f} ms | {t / first:.2f} |" for name, t in times.items()]
    return lines


def asking(quick: bool) -> list[str]:
    """The call of a sweep with almost no work, for more and more workers, flat and along a tree.

    All workers share the cores of this machine, so the time of a call includes their work one after
    the other. The CPU time is that of this process, which runs the client and the scheduler: the
    part that remains on a real cluster.
    """
    m, r = 200, 10
    X = data(m, 64)
    lines = ["| workers | flat | CPU here | CPU here for each | tree of fan 4 | CPU here |"]
    lines.append("|---" * 6 + "|")
    for several in (1, 2, 4) if quick else (1, 2, 4, 8, 16):
        with workers(several, memory_limit="2GB"):
            D = da.from_array(X, chunks=(m, 64 // several))
            flat, tree = (_asked(D, fan, r, 20 if quick else 100) for fan in (64, 4))
        cells = [flat[0], flat[1], flat[1] / several, *tree]
        lines.append(" | ".join([f"| {several}", *(f"{1e3 * t:.2f} ms" for t in cells)]) + " |")
    return lines


def _asked(D: da.Array, fan: int, r: int, times: int) -> tuple[float, float]:
    """Seconds and CPU seconds of a call that sends A and G and returns X H' and H H'."""
    usual, pool._FAN = pool._FAN, fan
    try:
        asked = pool.Crew(D, np.dtype(float))
        G = np.random.default_rng(0).random((D.shape[0], r))
        coding, solver = Coding.of(G, Nonnegative()), FastProjectedGradient()
        asked.sum("begin", coding)
        number = count(1)
        return _median(lambda: asked.sum("update", next(number), coding, solver, 1, 0.0), times)
    finally:
        pool._FAN = usual


def _median(work: Callable[[], object], times: int) -> tuple[float, float]:
    work()
    seconds, used = [], []
    for _ in range(times):
        began, busy = time.perf_counter(), time.process_time()
        work()
        seconds.append(time.perf_counter() - began)
        used.append(time.process_time() - busy)
    return statistics.median(seconds), statistics.median(used)


def recovery(quick: bool) -> list[str]:
    """Time of the sweep in which a killed worker is replaced."""
    m, n, r = 200, 20_000 if quick else 200_000, 10
    X = da.random.default_rng(0).random((m, n), chunks=(m, n // 16))
    with workers(2) as client:

        def kill(progress: Any) -> None:
            if progress.sweep == 3:
                pids = client.run(os.getpid)
                os.kill(pids[max(pids)], signal.SIGKILL)

        f = factorize(X, [r], max_iter=8, callbacks=kill, **PLAIN)
    t = np.diff(f.history.time)
    return [
        f"{m} x {n} float64, r = {r}: a sweep takes {np.median(t[:2]):.2f} s, the one in which "
        f"half of X is made and coded again {t[3]:.2f} s; the objective falls in every sweep: "
        f"{bool(np.diff(f.history.objective).max() < 0)}."
    ]


def larger(quick: bool) -> list[str]:
    """A Zarr store larger than the memory of both workers together."""
    m, n, r = 200, 200_000 if quick else 4_000_000, 10
    memory, width = 1 << 30, 20_000
    made = da.random.default_rng(0).random((m, n), chunks=(m, width), dtype=np.float32)
    seen: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "x.zarr")
        with workers(2, memory_limit=memory) as client:
            made.to_zarr(path)
        with workers(2, memory_limit=memory) as client:

            def look(progress: object) -> None:
                seen.extend(client.run(_memory).values())

            began = time.perf_counter()
            f = factorize(da.from_zarr(path), [r], max_iter=4, callbacks=look, **PLAIN)
            took = time.perf_counter() - began
    return [
        f"{m} x {n} float32, {4 * m * n / 2**30:.1f} GiB, two workers of {memory / 2**30:.0f} GiB: "
        f"{took:.0f} s to load, start and sweep 4 times, "
        f"{np.median(np.diff(f.history.time)):.1f} s a sweep; a worker used at most "
        f"{max(seen) / 2**20:.0f} MiB after a sweep."
    ]


def _memory() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="measures whose titles contain a word")
    options = parser.parse_args()
    quick = options.quick
    parts: dict[str, Callable[[bool], list[str]]] = {
        "Overhead of a sweep": overhead,
        "What a sweep moves": moved,
        "Speed": speed,
        "Asking more workers": asking,
        "A lost worker": recovery,
        "Larger than memory": larger,
    }
    text = ["# On a cluster of this machine", ""]
    text += [f"- {name}: {value}" for name, value in machine.describe().items()]
    for title, measure in parts.items():
        if options.only.lower() not in title.lower():
            continue
        lines = measure(quick)
        print("\n".join([f"\n## {title}\n", *lines]), flush=True)
        text += ["", f"## {title}", "", (measure.__doc__ or "").strip(), "", *lines]
    if not quick and not options.only:
        RESULT.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
