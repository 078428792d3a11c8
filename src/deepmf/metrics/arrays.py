"""Checks and arithmetic of arrays that measures share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

BLOCK = 2**22
"""Entries of the residual that are formed at a time, so that it never needs the memory of X."""


def real(a: ArrayLike, name: str) -> Array:
    """``a`` as float64, or an error message that names it."""
    try:
        return np.asarray(a, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} is a {type(a).__name__} that does not convert to an array of real numbers; "
            "give a dense numeric array (call .toarray() on a sparse matrix)."
        ) from error


def unit(A: Array) -> Array:
    """Columns scaled to norm 1; zero columns stay zero, and no square overflows or underflows."""
    peak = np.abs(A).max(axis=0)
    A = A / np.where(peak == 0, 1, peak)
    norm = np.linalg.norm(A, axis=0)
    return A / np.where(norm == 0, 1, norm)


def squared_norm(A: Array) -> float:
    """``||A||_F^2``."""
    return float(np.linalg.norm(A) ** 2)


def blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Slices of columns that cover a matrix of this shape."""
    m, n = shape
    width = max(1, BLOCK // m)
    return (slice(start, min(start + width, n)) for start in range(0, n, width))


def ratio(errors: ArrayLike, norms2: ArrayLike) -> Array:
    """``errors / norms2`` with 0/0 = 0 and e/0 = inf, without a warning."""
    e, d = np.asarray(errors), np.asarray(norms2)
    return np.where(d > 0, e / np.where(d > 0, d, 1), np.where(e > 0, np.inf, 0.0))
