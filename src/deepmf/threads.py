"""Threads for compiled code that lets go of Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_limit: ContextVar[int | None] = ContextVar("_limit", default=None)


def thread_count() -> int:
    """Threads to use: the limit set here, else OMP_NUM_THREADS, else the cores this process has."""
    limit = _limit.get()
    if limit is not None:
        return limit
    asked = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, int(asked)) if asked.isdecimal() else cores or 1


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Use at most so many threads inside, for work that this thread hands out."""
    before = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(before)


def in_threads(work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
    """``map(work, tasks)`` on several threads, results in the tasks' order."""
    count = min(thread_count(), len(tasks))
    return map(work, tasks) if count <= 1 else _pool(os.getpid(), count).map(work, tasks)


@cache
def _pool(process: int, count: int) -> ThreadPoolExecutor:
    """One pool per process (threads do not survive a fork) and size."""
    return ThreadPoolExecutor(count, thread_name_prefix="deepmf")
