"""The command line, ``deepmf``."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn


def main() -> None:
    """Run the command line, or say what it needs."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores one of them
            signal.signal(number, end)
    try:
        from deepmf.cli.app import app
    except ImportError as error:
        sys.exit(f"deepmf's command line needs {error.name}: pip install 'deepmf[cli]'.")
    app()


def end(number: int, frame: object) -> NoReturn:
    """Exit through every ``finally``, so that no partial file remains."""
    sys.exit(128 + number)
