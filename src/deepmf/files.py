"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_whole(target: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write to a temporary name beside the target, then rename.

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
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
