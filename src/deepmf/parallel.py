"""Independent tasks on all cores, each core working alone."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from deepmf.threads import limit_threads

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[Iterable[Any], int], Iterable[Any]]
"""Wraps an iterable of known length to show how far it is."""


def in_parallel(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """``[work(task) for task in tasks]`` on several processes, results in the tasks' order."""
    jobs = min(jobs or os.cpu_count() or 1, len(tasks))
    show: Progress = progress or (lambda items, total: items)
    if jobs <= 1:
        return list(show(map(work, tasks), len(tasks)))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_one_thread) as pool:
        return list(show(pool.map(work, tasks, chunksize=1), len(tasks)))


def _one_thread() -> None:
    threadpool_limits(1)
    limit_threads(1).__enter__()  # for as long as the process lives
