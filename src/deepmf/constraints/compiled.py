"""Sums over the columns of a matrix, compiled by Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def above(size: Any, t: Any) -> Any:
    """||(x - t)_+||_1, ||(x - t)_+||_2^2 and the number of entries above t, of each column x."""
    n, r = size.shape
    out = np.zeros((3, r), size.dtype)
    l1, l2, count = out[0], out[1], out[2]
    for i in range(n):
        x = size[i]
        for k in range(r):
            l1[k] += max(x[k] - t, 0)
        for k in range(r):
            left = max(x[k] - t, 0)
            l2[k] += left * left
        for k in range(r):
            count[k] += 1 if x[k] > t else 0
    return out
