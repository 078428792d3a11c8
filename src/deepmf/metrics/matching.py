"""Pairs of true and estimated components."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf.metrics.angles import mrsa
from deepmf.metrics.arrays import Array, real


class Matching(NamedTuple):
    """Estimated columns paired with the true ones.

    Attributes
    ----------
    order : ndarray of int, shape (k,)
        ``estimate[:, order[i]]`` is the column paired with ``truth[:, i]``.
    distances : ndarray, shape (k,)
        The distance of each pair.
    mean : float
        Their mean, the number the paper reports.
    """

    order: NDArray[np.intp]
    distances: Array
    mean: float


def match(
    truth: ArrayLike,
    estimate: ArrayLike,
    distance: Callable[[Array, Array], ArrayLike] = mrsa,
) -> Matching:
    """Pair columns at the least total distance: ``argmin_p sum_i d(truth_i, estimate_p(i))``.

    ``p`` runs over the one-to-one maps (Hungarian method). Estimated columns beyond the number of
    true ones stay unpaired.

    Parameters
    ----------
    truth : array_like, m x k
    estimate : array_like, m x r with r >= k
    distance : callable, default mrsa
        Gives the k x r matrix of distances of all pairs of columns.

    Returns
    -------
    Matching
    """
    from scipy.optimize import linear_sum_assignment

    T, E = real(truth, "truth"), real(estimate, "estimate")
    if T.ndim != 2 or E.ndim != 2 or T.shape[0] != E.shape[0]:
        raise ValueError(
            f"truth has shape {T.shape} and estimate has shape {E.shape}, but both must be "
            "matrices with columns of the same length; transpose one that holds spectra as rows."
        )
    if not 0 < T.shape[1] <= E.shape[1]:
        raise ValueError(
            f"estimate has {E.shape[1]} columns for {T.shape[1]} true ones, but every true column "
            "needs its own; factorize with a larger rank or compare fewer true columns."
        )
    distances = np.asarray(distance(T, E), dtype=np.float64)
    if not np.isfinite(distances).all():
        raise ValueError(
            "some distances are not finite, so columns cannot be matched; "
            "remove the NaN or infinite entries of truth and estimate."
        )
    rows, order = linear_sum_assignment(distances)
    paired = distances[rows, order]
    return Matching(np.asarray(order, dtype=np.intp), paired, float(paired.mean()))
