"""Atomic creation of folders."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deepmf._utils.messages import Message, setting

MARK = ".deepmf"
"""A file in every folder deepmf makes: only such a folder is ever replaced."""

_FULL = 1 << 16
"""Bytes left at which a disk is full."""


@contextmanager
def new_folder(path: Path, overwrite: bool = False) -> Iterator[Path]:
    """Work in a temporary folder beside the wanted one; rename it at the end.

    Nothing is left if the work fails. An existing folder is refused; with ``overwrite`` it is
    replaced as a whole, if deepmf made it.
    """
    check_free(path, overwrite)
    path = Path(os.path.realpath(path))  # a link stays, what it points to is replaced
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    try:
        temporary.chmod(0o777 & ~_umask())
        (temporary / MARK).write_text("Made by deepmf, which may replace this folder.\n")
        yield temporary
        check_free(path, overwrite)  # another run may have been quicker
        _move(temporary, path, overwrite)
    except (OSError, RuntimeError) as error:
        if shutil.disk_usage(path.parent).free < _FULL:  # which not all libraries say
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_free(path: Path, overwrite: bool, inputs: Iterable[str | Path] = ()) -> None:
    """Refuse a place where no folder can be made, or where one must not be replaced.

    Parameters
    ----------
    path : Path
        The folder to make.
    overwrite : bool
        Whether a folder that deepmf made may be replaced.
    inputs : iterable of paths
        What the work reads, and must therefore not replace.
    """
    real = Path(os.path.realpath(path))
    above = next(place for place in (real, *real.parents) if place.exists())
    if not above.is_dir():
        raise NotADirectoryError(f"{str(above)!r} is a file; give a folder.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(f"Nothing can be written in {str(above)!r}; choose another folder.")
    if not real.is_dir():
        return
    if Path.cwd().is_relative_to(real):
        raise FileExistsError(
            f"The folder {str(path)!r} is the one you are in and is not replaced; choose another."
        )
    if not any(real.iterdir()):
        return
    if not overwrite:
        raise FileExistsError(
            Message(
                f"The folder {str(path)!r} is not empty; choose another, or pass "
                f"{setting(overwrite=True)}."
            )
        )
    if not (real / MARK).exists():
        raise FileExistsError(
            f"The folder {str(path)!r} was not made by deepmf and is not replaced; choose another."
        )
    for given in inputs:
        if Path(os.path.realpath(given)).is_relative_to(real):
            raise FileExistsError(
                f"The folder {str(path)!r} holds {str(given)!r}, which is read here, and is not "
                f"replaced; choose another."
            )


def _move(temporary: Path, path: Path, overwrite: bool) -> None:
    """Put the new folder in its place, or the old one back."""
    old = temporary.with_suffix(".old")
    try:
        if overwrite and path.exists():
            os.replace(path, old)
        os.replace(temporary, path)  # fails where another run has come between
    except BaseException:
        if old.exists() and not path.exists():
            os.replace(old, path)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
