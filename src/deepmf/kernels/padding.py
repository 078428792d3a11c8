"""Zeros around a matrix, so that compiled code meets whole tiles only."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepmf.core.quadratic import Array

EVEN = 2
"""A side along which tiles of 2, 4, 6 and 8 are taken: components of a layer."""

TILE = 8
"""A side along which results are stored by eight."""

VECTOR = 16
"""A side along which entries go into vectors: sixteen of float32, or two by eight of float64."""


def up_to(whole: int, size: int) -> int:
    """The least multiple that is not below a size."""
    return -(-size // whole) * whole


def aligned(rows: int, columns: int, dtype: Any) -> Array:
    """Zeros that begin at a cache line, so that no vector lies across two (if rows are whole)."""
    size = rows * columns
    room = np.zeros(size + VECTOR, dtype)
    skip = (-room.ctypes.data % 64) // room.itemsize
    return room[skip : skip + size].reshape((rows, columns))


def padded(M: Array, dtype: Any, rows: int, columns: int) -> Array:
    """M in a type, with zeros up to the given multiples of rows and columns."""
    m, n = M.shape
    out = aligned(up_to(rows, m), up_to(columns, n), dtype)
    out[:m, :n] = M
    return out
