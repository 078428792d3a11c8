"""Links between the components of two layers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deepmf.metrics.arrays import Array, real


def links(H: ArrayLike) -> Array:
    """Shares ``|H(i, j)| / sum_i |H(i, j)|``: how much of lower component j each upper one i takes.

    Parameters
    ----------
    H : array_like, r_l x r_{l-1}

    Returns
    -------
    ndarray of the shape of H
        Columns sum to 1, except that a zero column stays zero.
    """
    A = np.abs(real(H, "H"))
    if A.ndim != 2:
        raise ValueError(f"H has shape {A.shape}, but links need a matrix r_l x r_(l-1).")
    total = A.sum(axis=0)
    return A / np.where(total == 0, 1, total)
