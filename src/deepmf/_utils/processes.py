"""Independent tasks on all cores, each core working alone."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from threadpoolctl import threadpool_limits

from deepmf._utils.threads import limit_threads

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
    """``[work(task) for task in tasks]`` on several processes, results in the tasks' order.

    An interruption or a failure ends the other processes at once.
    """
    jobs = min(jobs or os.cpu_count() or 1, len(tasks))
    show: Progress = progress or (lambda items, total: items)
    if jobs <= 1:
        with _on_interrupt(_raise):  # which no task may take for its own
            return list(show(map(work, tasks), len(tasks)))

    import multiprocessing  # late: these load slowly
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

    spawn = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_one_thread) as pool:
        try:
            with _on_interrupt(signal.SIG_IGN):  # workers inherit it: this process handles it
                futures = [pool.submit(work, task) for task in tasks]
            return list(show((future.result() for future in futures), len(tasks)))
        except BrokenProcessPool:
            raise MemoryError(
                "A process ended before its work was done, most likely for lack of memory; try "
                "fewer processes."
            ) from None
        except BaseException:
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.terminate()
            raise


@contextmanager
def _on_interrupt(handler: Any) -> Iterator[None]:
    """Handle Ctrl-C this way for a while, where this thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _raise(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _one_thread() -> None:
    threadpool_limits(1)
    limit_threads(1).__enter__()  # for as long as the process lives
