"""Threads for compiled code that lets go of Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar, cast

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


def in_threads(work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """``[work(task) for task in tasks]`` on several threads, of which this is one.

    A thread takes the next task as soon as it is free; only the threads, not the tasks, are handed
    over, which takes as long as a small task does.
    """
    count = min(thread_count(), len(tasks)) if len(tasks) > 1 else 1
    if count <= 1:
        return [work(task) for task in tasks]
    results: list[Result | None] = [None] * len(tasks)
    waiting = iter(range(len(tasks)))

    def share() -> None:
        for k in waiting:
            results[k] = work(tasks[k])

    others = [_pool(os.getpid(), count).submit(share) for _ in range(count - 1)]
    share()
    for other in others:
        if not other.cancel():  # one that has not begun is not needed any more
            other.result()
    return cast("list[Result]", results)


@cache
def _pool(process: int, count: int) -> ThreadPoolExecutor:
    """One pool per process (threads do not survive a fork) and size."""
    return ThreadPoolExecutor(count, thread_name_prefix="deepmf")
