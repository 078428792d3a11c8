"""Arrays from files that anyone may have made: no objects, and no more than a file can hold."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import SettingError

_PACKED = 250
"""Bytes that an honest file makes of one; counts and masks, mostly zeros, stay well below."""

_SURELY_FINE = 1 << 28
"""Bytes that any file may unpack to."""


class UnreadableError(SettingError):
    """A file that cannot be used; the message says why and what to do."""


class Header(NamedTuple):
    """Shape and type of a stored array, from its header."""

    shape: tuple[int, ...]
    dtype: np.dtype


def room(path: Path) -> int:
    """Bytes that a file, or a folder of files, may unpack to."""
    files = path.rglob("*") if path.is_dir() else [path]
    packed = sum(file.stat().st_size for file in files if file.is_file())
    return max(_SURELY_FINE, _PACKED * packed)


def memory() -> int:
    """Bytes of this machine's memory."""
    if not hasattr(os, "sysconf"):
        return 1 << 62
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_room(path: Path, shape: Sequence[int], dtype: Any) -> None:
    """Refuse an array too large for its file or this machine, before anything is allocated."""
    promised = math.prod(shape) * np.dtype(dtype).itemsize
    if promised <= _SURELY_FINE:
        return
    what = f"{times(shape)} values of type {np.dtype(dtype)} take {promised / 2**30:.3g} GiB"
    if promised > memory():
        raise UnreadableError(
            f"{path} does not fit in memory: {what}, and this machine has {memory() / 2**30:.3g}."
        )
    if path.exists() and promised > room(path):
        raise UnreadableError(
            f"{path} is too short: {what}, more than {_PACKED} times its own length. It may be "
            f"damaged, or made to fill the memory; if it is sound, save it without compression."
        )


def check_length(path: Path, shape: Sequence[int], dtype: Any, there: int) -> None:
    """Refuse a file with fewer bytes than its header promises, before anything is allocated."""
    if min(shape, default=1) < 1:
        raise UnreadableError(f"{path} is empty: its array is {times(shape)}.")
    promised = math.prod(shape) * np.dtype(dtype).itemsize
    if promised > there:
        raise UnreadableError(
            f"{path} is too short: {times(shape)} values of type {np.dtype(dtype)} take {promised} "
            f"bytes, but it has {there}. It may be truncated; get or write it again."
        )


def times(shape: Sequence[int]) -> str:
    """``3 x 4 x 5``."""
    return " x ".join(map(str, shape))


def read_header(path: Path, file: IO[bytes]) -> Header:
    """Shape and type of the array that begins here."""
    first = np.lib.format.read_magic(file) == (1, 0)
    header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(file)
    if dtype.hasobject:
        raise UnreadableError(
            f"{path} holds Python objects, which deepmf does not load; save numbers instead."
        )
    return Header(shape, dtype)


def check_npy(path: Path) -> None:
    """Refuse a ``.npy`` file of objects, or with less than it promises."""
    with path.open("rb") as file:
        shape, dtype = read_header(path, file)
        check_length(path, shape, dtype, path.stat().st_size - file.tell())


def load_npy(path: Path) -> NDArray:
    """The array in a ``.npy`` file."""
    check_npy(path)
    array: NDArray = np.load(path, allow_pickle=False)
    return array


def npz_headers(path: Path) -> dict[str, Header]:
    """The arrays in a ``.npz`` file by name; each is as long as it says."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{str(path)!r} is not a file.")  # a device may never end
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                shape, dtype = read_header(path, file)
                if 0 not in shape:
                    check_length(path, shape, dtype, member.file_size - file.tell())
            found[member.filename.removesuffix(".npy")] = Header(shape, dtype)
    return found


def load_npz(path: Path, names: Collection[str] | None = None) -> dict[str, NDArray]:
    """Arrays of a ``.npz`` file by name: those asked for, or all."""
    headers = npz_headers(path)
    wanted = list(headers) if names is None else list(names)
    total = sum(math.prod(headers[n].shape) * headers[n].dtype.itemsize for n in wanted)
    check_room(path, (total,), np.uint8)
    with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
        return {name: file[name] for name in wanted}
