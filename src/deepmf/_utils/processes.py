"""Independent tasks in several processes, each limited to one thread."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[Iterable[Any], int], Iterable[Any]]
"""Wraps an iterable of known length to show its progress."""


def in_parallel(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """``[work(task) for task in tasks]`` in several processes, results in the order of the tasks.

    An interruption or a failure ends the other processes at once.

    Parameters
    ----------
    work : callable
    tasks : sequence
    jobs : int, optional
        Processes; None for one per core. One job runs in this process.
    progress : callable, optional
        ``progress(results, total)`` iterates over the results as they arrive.
    """
    show: Progress = progress or (lambda items, total: items)
    if jobs == 1 or len(tasks) <= 1:
        with _on_interrupt(_raise):  # so that no task handles Ctrl-C itself
            return list(show(map(work, tasks), len(tasks)))

    from concurrent.futures.process import BrokenProcessPool  # late: these load slowly

    from joblib import Parallel, cpu_count, delayed, parallel_config

    jobs = min(jobs or cpu_count(), len(tasks))
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        pool = Parallel(return_as="generator", batch_size=1, max_nbytes=None)
    with _on_interrupt(signal.SIG_IGN):  # inherited by the workers: this process handles Ctrl-C
        results = pool(delayed(_work)(_by_value(work), _by_value(task)) for task in tasks)
    try:
        with warnings.catch_warnings():
            # joblib replaces a process that grew by 300 MB, as the first fit makes it, and warns
            # in a thread of its own, which ends for good where warnings are errors
            warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
            return list(show(results, len(tasks)))
    except BrokenProcessPool:
        raise MemoryError(
            "A process ended before its work was done, most likely for lack of memory; try "
            "fewer processes."
        ) from None
    finally:
        results.close()


def _work(work: Callable[[Any], Any], task: Any) -> Any:
    return _by_value(work(task))


def _by_value(given: Any) -> Any:
    """Pickled as it is: joblib would map files again, and scrambles transposed memory maps."""
    from joblib import wrap_non_picklable_objects

    return wrap_non_picklable_objects(given, keep_wrapper=False)


@contextmanager
def _on_interrupt(handler: Any) -> Iterator[None]:
    """Handle Ctrl-C this way for a while, if this is the main thread, which alone may set it."""
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
