"""The tags of a MATLAB 5 file, checked before SciPy follows them: wrong ones would crash it."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from deepmf._utils.safe_archives import UnreadableError

_HEAD = 128
_FLAGS, _MATRIX, _COMPRESSED = 6, 14, 15
_VALUES = {1, 2, 3, 4, 5, _FLAGS, 7, 9, 12, 13, 16, 17, 18}
_SPARSE, _PLAIN = 5, range(4, 16)
"""Classes of matrices that hold text or numbers, and no other matrices."""


def check_tags(path: Path) -> None:
    """Refuse elements of a wrong type, and those that reach beyond what holds them.

    An element is a type (4 bytes), a length (4 bytes) and as many bytes, padded to 8; or a length
    and a type (2 bytes each) and up to 4 bytes. A matrix is an element made of elements, its flags
    first; a file is made of matrices and compressed ones, whose checksums SciPy sees to.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_HEAD)
        if size <= _HEAD or 0 in head[:4] or head[126:] not in (b"IM", b"MI"):
            return  # version 4, or none: for SciPy to say
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            at = _first_wrong(content, "<II" if head[126:] == b"IM" else ">II", size)
    if at is not None:
        raise UnreadableError(
            f"{path} is not a whole MATLAB file: its part at byte {at} is cut or damaged. Get or "
            f"write it again."
        )


def _first_wrong(content: mmap.mmap, tag: str, size: int) -> int | None:
    """Position of the first wrong element."""
    todo = [(_HEAD, size, {_MATRIX, _COMPRESSED}, 0)]
    while todo:
        start, end, allowed, missing = todo.pop()
        while start < end:
            if start + 8 > end:
                return start
            kind, length = struct.unpack_from(tag, content, start)
            small = kind >> 16
            if small:
                kind, length = kind & 0xFFFF, 0
            first = start + 8
            if kind not in allowed or small > 4 or first + length > end:
                return start
            if kind == _MATRIX and length:
                if length < 16 or struct.unpack_from(tag, content, first) != (_FLAGS, 8):
                    return first
                flags = struct.unpack_from(tag, content, first + 8)[0]
                todo.append((first, first + length, *_parts(flags)))
            start = first + length + (0 if kind == _COMPRESSED else -length % 8)
            missing -= 1
        if missing > 0:
            return end
    return None


def _parts(flags: int) -> tuple[set[int], int]:
    """Elements that a matrix may have, and the required number: flags, size, name, then values."""
    kind, is_complex = flags & 0xFF, bool(flags & 0x800)
    if kind not in _PLAIN:
        return _VALUES | {_MATRIX}, 3
    return _VALUES, (6 if kind == _SPARSE else 4) + is_complex
