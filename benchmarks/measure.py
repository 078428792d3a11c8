"""What every family of measures shares: cases, rows, tables, timing that is fair to both sides."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True)
class Size:
    """How large the measures are: in full, or small enough to try the suite itself."""

    quick: bool = False

    def pick(self, full: T, quick: T) -> T:
        return quick if self.quick else full


@dataclass(frozen=True)
class Row:
    """A line of the main table; ``values`` keeps the raw numbers for bench.json."""

    measure: str
    deepmf: str = ""
    other: str = ""
    ratio: str = ""
    goal: str = ""
    met: bool | None = None
    note: str = ""
    headline: str = ""
    """The same measure in words for the README; empty where it stays out of it."""
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table of its own: scaling, peers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass
class Result:
    """What a case leaves."""

    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """A group of measures that share data and noise: one process, one time limit."""

    name: str
    work: Callable[[Size], Result]
    limit: float


CASES: dict[str, Case] = {}


def case(name: str, limit: float = 180) -> Callable[[Callable[[Size], Result]], Callable]:
    """Register a function as a case that may take so many seconds."""

    def register(work: Callable[[Size], Result]) -> Callable[[Size], Result]:
        CASES[name] = Case(name, work, limit)
        return work

    return register


def ratio_row(
    measure: str, ours: float, theirs: float, limit: float | None = None, **more: object
) -> Row:
    """Two times in seconds and their ratio, against the largest one wanted.

    Times that are differences of others may come out negative where noise is larger than they are.
    """
    if min(ours, theirs) <= 0:
        return Row(measure, "not available: timings too noisy", goal=f"<= {limit or math.inf:g}")
    ratio = ours / theirs
    return Row(
        measure,
        deepmf=seconds(ours),
        other=seconds(theirs),
        ratio=f"{ratio:.2f}",
        goal="" if limit is None else f"<= {limit:g}",
        met=None if limit is None else ratio <= limit,
        values={"deepmf": ours, "other": theirs, "ratio": ratio},
        **more,  # type: ignore[arg-type]
    )


def seconds(t: float) -> str:
    return f"{t:.2f} s" if t >= 1 else f"{1e3 * t:.1f} ms" if t >= 1e-2 else f"{1e3 * t:.2f} ms"


def megabytes(size: float) -> str:
    return f"{size / 1e6:.0f} MB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def interleaved(tasks: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Medians of values that each task gives once a round, so that noise meets all alike.

    Every other round goes backwards: no task always follows the same one. One round more, at first,
    warms caches and compiled code and does not count.
    """
    values: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(rounds + 1):
        for name in list(tasks)[:: 1 if number % 2 else -1]:
            value = tasks[name]()
            if number:
                values[name].append(value)
        progress(f"round {number} of {rounds}")
    return {name: float(np.median(found)) for name, found in values.items()}


def timed(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings that a fit was stopped before it converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def progress(text: str) -> None:
    print(f"    {text}", flush=True)
