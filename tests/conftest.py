"""What holds for all tests."""

from __future__ import annotations

import signal


def pytest_configure():
    """Obey Ctrl-C, as do the processes that tests start, though a shell ignore it for its jobs."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
