"""Deferred Ctrl-C: the current sweep is finished first."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class InterruptedWarning(UserWarning):
    """The fit was interrupted, and its factors are those of the last whole sweep."""


class Interruption:
    """Inside, the first Ctrl-C is only noted, for work that ends by itself; the second is obeyed.

    So no factor is ever left half-updated. Only Python's own way to handle Ctrl-C is replaced, and
    only in the main thread; a program's own handlers stay. A Ctrl-C that nobody asked about is
    raised at the end.
    """

    def __init__(self) -> None:
        self._noted = self._answered = self._ours = False

    def asked(self) -> bool:
        """Whether there was one; who asks is expected to end."""
        self._answered = self._noted
        return self._noted

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        self._ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._ours:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if kind is None and self._noted and not self._answered:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._noted:
            raise KeyboardInterrupt
        self._noted = True
