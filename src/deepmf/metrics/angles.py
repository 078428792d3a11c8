"""Angles between spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deepmf.metrics.arrays import Array, real, unit


def sad(a: ArrayLike, b: ArrayLike) -> Any:
    """Spectral angle ``arccos(<a, b> / (||a|| ||b||))`` in radians, in [0, pi].

    The angle is computed as ``2 atan2(||u - v||, ||u + v||)`` with ``u, v`` the unit vectors, which
    keeps full precision near 0 and pi where ``arccos`` loses half the digits.

    Parameters
    ----------
    a, b : array_like
        Two vectors of length m, or two matrices m x k1 and m x k2 of columns.

    Returns
    -------
    float or ndarray of shape (k1, k2)
        The angle of two vectors, or the angles of all pairs of columns. A zero vector is at pi/2
        from any other vector, and at 0 from another zero vector.
    """
    return _like_input(a, b, _angles)


def mrsa(a: ArrayLike, b: ArrayLike) -> Any:
    """Mean-removed spectral angle, in [0, 100].

    ``MRSA(a, b) = 100/pi * arccos(<a - mean a, b - mean b> / (||a - mean a|| ||b - mean b||))``

    It compares shapes: ``mrsa(a, s * a + c) == 0`` for every ``s > 0`` and every ``c``.

    Parameters
    ----------
    a, b : array_like
        Two vectors of length m, or two matrices m x k1 and m x k2 of columns.

    Returns
    -------
    float or ndarray of shape (k1, k2)
        The measure of two vectors, or of all pairs of columns. A constant vector has no shape left
        after mean removal: it is at 50 (a right angle) from any other vector, and at 0 from another
        constant vector.
    """
    return _like_input(a, b, lambda A, B: 100 / np.pi * _angles(_remove_mean(A), _remove_mean(B)))


def _like_input(a: ArrayLike, b: ArrayLike, pairs: Callable[[Array, Array], Array]) -> Any:
    """A float for two vectors, ``pairs(a, b)`` for two matrices."""
    A, B = real(a, "a"), real(b, "b")
    if A.ndim != B.ndim or A.ndim not in (1, 2):
        raise ValueError(
            f"a has shape {A.shape} and b has shape {B.shape}, but both must be vectors or both "
            "matrices of columns; turn a lone vector v into a matrix with v[:, None]."
        )
    if A.shape[0] != B.shape[0] or A.shape[0] == 0:
        raise ValueError(
            f"a has length {A.shape[0]} and b has length {B.shape[0]}, but both must have the same "
            "length, at least 1; transpose a matrix that holds its spectra as rows."
        )
    if A.ndim == 1:
        return float(pairs(A[:, None], B[:, None])[0, 0])
    return pairs(A, B)


def _angles(A: Array, B: Array) -> Array:
    U, V = unit(A), unit(B)
    angles = np.empty((U.shape[1], V.shape[1]))
    for i, u in enumerate(U.T):  # one column at a time: no m x k1 x k2 array
        minus = np.linalg.norm(u[:, None] - V, axis=0)
        plus = np.linalg.norm(u[:, None] + V, axis=0)
        # u = 0 gives atan2(1, 1), a right angle; u = v = 0 gives atan2(0, 0) = 0.
        angles[i] = 2 * np.arctan2(minus, plus)
    return angles


def _remove_mean(A: Array) -> Array:
    """``a - mean a`` per column; exactly zero where a is constant up to rounding."""
    centred = A - A.mean(axis=0)
    constant = np.ptp(A, axis=0) <= 4 * np.finfo(float).eps * np.abs(A).max(axis=0)
    centred[:, constant] = 0
    return centred
