"""Threads for code that releases the global interpreter lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

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
    """Use at most N threads inside, for work that this thread starts."""
    before = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(before)


def in_threads(work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
    """``map(work, tasks)`` on several threads, of which this is one; results in the tasks' order.

    A thread takes the next task as soon as it is free. Only threads are handed over, not tasks:
    that takes as long as a small task does. Work that is itself split runs on its own thread alone.
    """
    count = min(thread_count(), len(tasks)) if len(tasks) > 1 else 1
    if count <= 1:
        yield from map(work, tasks)
        return
    waiting = iter(range(len(tasks)))
    done: dict[int, Result] = {}
    changed = threading.Condition()

    def take(k: int) -> None:
        with limit_threads(1):
            result = work(tasks[k])
        with changed:
            done[k] = result
            changed.notify()

    def share() -> None:
        try:
            for k in waiting:
                take(k)
        finally:
            with changed:
                changed.notify()

    others = [_pool(os.getpid(), count).submit(share) for _ in range(count - 1)]
    try:
        for k in range(len(tasks)):
            while k not in done and (mine := next(waiting, None)) is not None:
                take(mine)
            with changed:
                while k not in done and not all(other.done() for other in others):
                    changed.wait(1)
            if k not in done:
                break  # a thread failed, and will say so
            yield done.pop(k)
    finally:
        for other in others:
            if not other.cancel():  # one that has not begun is not needed any more
                other.result()


def do_in_threads(work: Callable[[Task], None], tasks: Sequence[Task]) -> None:
    """`in_threads` for work that gives nothing back."""
    for _ in in_threads(work, tasks):
        pass


@contextmanager
def single_blas() -> Iterator[None]:
    """BLAS on one thread inside.

    There, what is worth it is split here already; and a thread that BLAS keeps turning, in wait for
    its next product, is in the way of all others.
    """
    with _libraries(os.getpid()).limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries(process: int) -> ThreadpoolController:
    """The BLAS libraries of this process; to look for them takes milliseconds."""
    return ThreadpoolController()


@cache
def _pool(process: int, count: int) -> ThreadPoolExecutor:
    """One pool per process (threads do not survive a fork) and size."""
    return ThreadPoolExecutor(count, thread_name_prefix="deepmf")
