"""Reports JIT compilation and excludes it from fit timings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


class _Watch:
    """Counter of the seconds of compilation, with callbacks for its start."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.tell: list[Callable[[], None]] = []
        self._depth = 0
        self._since = 0.0

    def begin(self) -> None:
        """Count a kernel that starts to compile, perhaps inside another or in another thread."""
        self._depth += 1
        if self._depth == 1:
            self._since = time.perf_counter()
            for tell in self.tell:
                tell()

    def end(self) -> None:
        """Count a kernel that is compiled."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._since


@cache
def _watch() -> _Watch:
    """The counter of this process; Numba loads cached kernels without an event."""
    from numba.core.event import Listener, register

    watch = _Watch()

    class Events(Listener):
        def on_start(self, event: Any) -> None:
            watch.begin()

        def on_end(self, event: Any) -> None:
            watch.end()

    register("numba:compile", Events())
    return watch


def clock() -> float:
    """Seconds, as `time.perf_counter` counts them, less those in which kernels were compiled."""
    return time.perf_counter() - _watch().seconds


@contextmanager
def on_compile(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` whenever kernels begin to be compiled."""
    _watch().tell.append(tell)
    try:
        yield
    finally:
        _watch().tell.remove(tell)
