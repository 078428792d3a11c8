"""Time of a sweep as a function of n, m, r, the number of layers and threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from threadpoolctl import threadpool_limits

from deepmf._utils.threads import limit_threads, thread_count

from .data import MATERIALS, scene
from .floor import Floor, gemm_rate, read_rate
from .measure import Result, Row, Size, Table, case, interleaved, seconds
from .sweeps import DEEP, INNER, sweep_timer

COLUMNS = ("", "sweep", "over the one before")


def _table(title: str, times: dict[str, float], note: str = "") -> Table:
    values = list(times.values())
    steps = ["", *(f"{b / a:.2f}" for a, b in pairwise(values))]
    rows = [[name, seconds(t), step] for (name, t), step in zip(times.items(), steps, strict=True)]
    return Table(title, COLUMNS, rows, note)


@case("scaling in n", limit=240)
def columns(size: Size) -> Result:
    """Double n up to four million, with 20 rows and r = (6, 4, 2)."""
    largest = size.pick(4_000_000, 64_000)
    X = scene(largest, m=20)
    counts = [largest >> k for k in (4, 3, 2, 1, 0)]
    parts = {f"n = {n}": np.ascontiguousarray(X[:, :n]) for n in counts}
    del X
    t = interleaved(
        {name: sweep_timer(part, DEEP, sweeps=3) for name, part in parts.items()},
        rounds=size.pick(5, 2),
    )
    steps = [b / a for a, b in pairwise(t.values())]
    worst = max(steps, key=lambda step: abs(step - 2))
    row = Row(
        f"time per sweep when n doubles, 20 rows, n up to {largest}",
        ratio=f"{min(steps):.2f} to {max(steps):.2f}",
        goal="2.0 +- 0.2",
        met=abs(worst - 2) <= 0.2,
        values=t,
    )
    return Result([row], [_table("Sweep time in n, 20 rows, r = (6, 4, 2)", t)])


@case("scaling in m, r, layers", limit=240)
def rows_ranks_layers(size: Size) -> Result:
    """Vary one size at a time; the titles give the others."""
    n, rounds = size.pick(20_000, 3000), size.pick(5, 1)
    X = scene(n)
    tall = {m: scene(n, m=m) for m in (20, 40, 80, 160, 320, 640)}
    ranks = size.pick((2, 4, 8, 16, 32, 64, 128), (2, 8, 32, 128))
    chains: list[Sequence[int]] = [(16,), (16, 8), (16, 8, 4), (16, 8, 4, 2)]
    tasks: dict[str, dict[str, Callable[[], float]]] = {
        f"Sweep time in m, {n} columns, r = (6, 4, 2)": {
            f"m = {m}": sweep_timer(part, DEEP, sweeps=3) for m, part in tall.items()
        },
        f"Sweep time in r, X 162 x {n}, one layer": {
            f"r = {r}": sweep_timer(X, (r,), sweeps=3) for r in ranks
        },
        f"Sweep time in the number of layers, X 162 x {n}": {
            f"r = {tuple(chain)}": sweep_timer(X, chain, sweeps=3) for chain in chains
        },
    }
    return Result(tables=[_table(title, interleaved(t, rounds)) for title, t in tasks.items()])


@case("threads", limit=180)
def threads(size: Size) -> Result:
    """Sweep and floor on 1, 2, ... threads (BLAS as well), full size, r = (6, 4, 2)."""
    X = scene(size.pick(94249, 6000))
    counts = sorted({1, 2, thread_count()})
    timer = sweep_timer(X, DEEP)

    def sweep_on(count: int) -> float:
        with limit_threads(count), threadpool_limits(count):
            return timer()

    tasks: dict[str, Callable[[], float]] = {}
    for count in counts:
        tasks[f"sweep {count}"] = lambda count=count: sweep_on(count)
        tasks[f"read {count}"] = lambda count=count: read_rate(X, count)
        tasks[f"gemm {count}"] = lambda count=count: gemm_rate(count)
    t = interleaved(tasks, rounds=size.pick(5, 2))
    lines = []
    for k in counts:
        least = Floor.of(X.shape, MATERIALS, INNER, t[f"read {k}"], t[f"gemm {k}"])
        floor, sweep, alone = least.seconds, t[f"sweep {k}"], t["sweep 1"]
        speedup = f"{alone / sweep:.2f}"
        lines.append([f"{k}", seconds(sweep), speedup, seconds(floor), f"{sweep / floor:.2f}"])
    title = f"Threads, X {X.shape[0]} x {X.shape[1]}, r = (6, 4, 2)"
    header = ("threads", "sweep", "speed-up", "floor", "sweep / floor")
    return Result(tables=[Table(title, header, lines)])
