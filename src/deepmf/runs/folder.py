"""Folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = ".deepmf"
"""A file in every folder deepmf makes: only such a folder is ever replaced."""


@contextmanager
def new_folder(path: Path, overwrite: bool = False) -> Iterator[Path]:
    """Work in a temporary folder beside the wanted one; rename it at the end.

    Nothing is left if the work fails. An existing folder is refused; with ``overwrite`` it is
    replaced as a whole, if deepmf made it.
    """
    path = Path(os.path.abspath(path))
    check_free(path, overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    try:
        temporary.chmod(0o777 & ~_umask())
        (temporary / MARK).write_text("Made by deepmf, which may replace this folder.\n")
        yield temporary
        _move(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse a file, a folder with files, or to replace a folder of someone else's."""
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{str(path)!r} is a file; give a folder.")
    if not path.is_dir() or not any(path.iterdir()):
        return
    if not overwrite:
        raise FileExistsError(
            f"The folder {str(path)!r} is not empty; choose another, or pass --overwrite."
        )
    if not (path / MARK).exists():
        raise FileExistsError(
            f"The folder {str(path)!r} was not made by deepmf and is not replaced; choose another."
        )


def _move(temporary: Path, path: Path) -> None:
    old = temporary.with_suffix(".old")
    if path.exists():
        os.replace(path, old)
    os.replace(temporary, path)
    shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
