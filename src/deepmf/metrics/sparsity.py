"""Sparsity of factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deepmf.metrics.arrays import real, unit


def hoyer(M: ArrayLike) -> Any:
    """Hoyer sparsity ``(sqrt(n) - ||x||_1 / ||x||_2) / (sqrt(n) - 1)`` of each column x, in [0, 1].

    0 when all entries have the same size, 1 when one entry is not zero. The paper's figure for a
    factor is the average, ``hoyer(M).mean()``.

    Parameters
    ----------
    M : array_like
        A matrix n x r, or a vector of length n.

    Returns
    -------
    ndarray of shape (r,) or float
        One value per column, or the value of the vector. A zero column counts as 1 (it has no entry
        to spread), and so does a column of a single entry, where the formula is 0/0.
    """
    A = np.abs(real(M, "M"))
    if A.ndim not in (1, 2) or A.shape[0] == 0:
        raise ValueError(
            f"M has shape {A.shape}, but sparsity needs a vector or a matrix of columns with at "
            "least one row."
        )
    if A.ndim == 1:
        return float(hoyer(A[:, None])[0])
    root = np.sqrt(A.shape[0])
    if root == 1:
        return np.ones(A.shape[1])
    ratio = unit(A).sum(axis=0)  # ||x||_1 / ||x||_2; 0 for a zero column, which the clip makes 1
    return np.clip((root - ratio) / (root - 1), 0.0, 1.0)
