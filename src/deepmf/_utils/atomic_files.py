"""Atomic file writes."""

from __future__ import annotations

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

UNREADABLE = (
    LookupError,
    ValueError,
    TypeError,
    EOFError,
    AttributeError,
    RuntimeError,
    MemoryError,
    OverflowError,
    OSError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
    SyntaxError,
)
"""Exceptions that readers raise on files that are cut, damaged or of another kind."""


def write_whole(target: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write to a temporary name beside the target, then rename, and see that both reach the disk.

    Parameters
    ----------
    target : Path
        The file to make or replace.
    write : callable
        Called with the open temporary file.
    """
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {str(target.parent)!r} does not exist; make it before writing to it."
        )
    if target.is_dir():
        raise IsADirectoryError(f"{str(target)!r} is a folder; give the name of a file.")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _keep_names(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _keep_names(folder: Path) -> None:
    """Make a rename last through a loss of power, where the system lets folders be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:  # a file system that does not know of it
        pass
    finally:
        os.close(handle)
