"""Shared by all benchmarks: cases, rows, tables and interleaved timing."""

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
    """Size of the benchmarks: full, or small enough to test the suite itself."""

    quick: bool = False

    def pick(self, full: T, quick: T) -> T:
        return quick if self.quick else full


@dataclass(frozen=True)
class Row:
    """Line of the main table; ``values`` has the raw numbers for bench.json."""

    measure: str
    deepmf: str = ""
    other: str = ""
    ratio: str = ""
    goal: str = ""
    met: bool | None = None
    note: str = ""
    headline: str = ""
    """Description for the README; empty if the row is not listed there."""
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Additional table, for example of scaling or of other libraries."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass
class Result:
    """Rows and tables of a case."""

    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """Group of measurements on shared data, in one process with one time limit."""

    name: str
    work: Callable[[Size], Result]
    limit: float


CASES: dict[str, Case] = {}


def case(name: str, limit: float = 180) -> Callable[[Callable[[Size], Result]], Callable]:
    """Register a function as a case with a time limit in seconds."""

    def register(work: Callable[[Size], Result]) -> Callable[[Size], Result]:
        CASES[name] = Case(name, work, limit)
        return work

    return register


def ratio_row(
    measure: str, ours: float, theirs: float, limit: float | None = None, **more: object
) -> Row:
    """Row with two times in seconds, their ratio, and the largest acceptable ratio.

    Times that are differences of other times may be negative because of noise.
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
    """Medians of values that each task returns once per round, so that noise affects all alike.

    Every second round runs in reverse order, so that no task always follows the same one. An extra
    first round warms caches and compiled code and does not count.
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
    """Suppress warnings about fits that did not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def progress(text: str) -> None:
    print(f"    {text}", flush=True)
