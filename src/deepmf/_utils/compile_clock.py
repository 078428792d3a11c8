"""Numba's compilation, once per machine: seen while it lasts, and no part of a fit's time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


class _Watch:
    """Counts the seconds in which something is compiled, and says when that begins."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.tell: list[Callable[[], None]] = []
        self._depth = 0
        self._since = 0.0

    def begin(self) -> None:
        """One kernel more, which may be part of another, or of another thread."""
        self._depth += 1
        if self._depth == 1:
            self._since = time.perf_counter()
            for tell in self.tell:
                tell()

    def end(self) -> None:
        """One kernel less."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._since


@cache
def _watch() -> _Watch:
    """The one of this process; what Numba's cache has is loaded without an event."""
    from numba.core.event import Listener, register

    watch = _Watch()

    class Ears(Listener):
        def on_start(self, event: Any) -> None:
            watch.begin()

        def on_end(self, event: Any) -> None:
            watch.end()

    register("numba:compile", Ears())
    return watch


def clock() -> float:
    """Seconds, as `time.perf_counter` counts them, less those in which kernels were compiled."""
    return time.perf_counter() - _watch().seconds


@contextmanager
def told(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` whenever kernels begin to be compiled."""
    _watch().tell.append(tell)
    try:
        yield
    finally:
        _watch().tell.remove(tell)
