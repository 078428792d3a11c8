"""Errors of abundances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf.metrics.arrays import Array, real
from deepmf.metrics.matching import match


class AbundanceErrors(NamedTuple):
    """Errors of estimated abundances.

    Attributes
    ----------
    order : ndarray of int, shape (k,)
        ``A_estimated[order[i]]`` is the row compared with ``A_true[i]``.
    components : ndarray, shape (k,)
        RMSE of each true component.
    overall : float
        RMSE of all k n entries.
    """

    order: NDArray[np.intp]
    components: Array
    overall: float


def abundance_rmse(
    A_true: ArrayLike, A_estimated: ArrayLike, order: ArrayLike | None = None
) -> AbundanceErrors:
    """Root mean square errors of abundances, as fractions that sum to one in every pixel.

    ::

        F(k, j) = A(k, j) / sum_i A(i, j),                    likewise F^ from the estimate
        e_k = sqrt(sum_j (F(k, j) - F^(p(k), j))^2 / n),      overall sqrt(sum_k e_k^2 / k)

    Both matrices become fractions before they are compared; a pixel without abundances stays
    zero. Fractions of a `deepmf.Factorization` are ``f.view(layer).fractions.values``, which take
    the brightness of the spectra into account.

    Parameters
    ----------
    A_true : array_like, k x n
        True abundances, one column a pixel.
    A_estimated : array_like, r x n with r >= k
        Estimated abundances. Their fractions count all r components.
    order : array_like of k int, optional
        p, as in ``match(spectra, W).order``. By default the rows are paired at the least total
        squared error.

    Returns
    -------
    AbundanceErrors
    """
    T, E = _fractions(A_true, "A_true"), _fractions(A_estimated, "A_estimated")
    if T.shape[1] != E.shape[1] or not 0 < T.shape[0] <= E.shape[0]:
        raise ValueError(
            f"A_true has shape {T.shape} and A_estimated has shape {E.shape}, but both must have "
            "one column for each pixel, and the estimate as many rows as the truth or more."
        )
    paired = match(T.T, E.T, _squared_distances).order if order is None else _checked(order, T, E)
    squares = np.mean((T - E[paired]) ** 2, axis=1)
    return AbundanceErrors(paired, np.sqrt(squares), float(np.sqrt(squares.mean())))


def _fractions(A: ArrayLike, name: str) -> Array:
    F = real(A, name)
    if F.ndim != 2 or F.size == 0 or not np.isfinite(F).all() or (F < 0).any():
        raise ValueError(
            f"{name} has shape {F.shape}, but it must be a matrix of components x pixels with "
            "finite nonnegative entries: signed codes are no abundances."
        )
    total = F.sum(axis=0)
    return F / np.where(total > 0, total, 1)


def _checked(order: ArrayLike, T: Array, E: Array) -> NDArray[np.intp]:
    """An order that gives every true row an estimated row of its own."""
    given = np.asarray(order)
    rows = np.arange(len(E))
    if given.shape != T.shape[:1] or len(np.intersect1d(given, rows)) != len(T):
        raise ValueError(
            f"order is {given.tolist()}, but it must name a row of A_estimated, from 0 to "
            f"{len(E) - 1}, for each of the {len(T)} rows of A_true, none of them twice."
        )
    return given.astype(np.intp)


def _squared_distances(T: Array, E: Array) -> Array:
    squares = (T**2).sum(axis=0)[:, None] + (E**2).sum(axis=0)
    return np.asarray(squares - 2 * T.T @ E)
