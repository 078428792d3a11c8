"""Grouped sparse projection compiled by Numba, step by step as `grouped_sparse` has it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_jit = njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")


@_jit
def grouped_sparse(
    M: Any, sparsity: float, nonnegative: bool, max_steps: int, nothing: float
) -> Any:
    """sign(x_i) <|x_i|, x_i(t)> x_i(t), with x_i(t) = (|x_i| - t)_+ normalized, as a new matrix."""
    n, r = M.shape
    size, out, sums = np.empty_like(M), np.empty_like(M), np.empty((3, r), M.dtype)
    top = np.zeros(r, M.dtype)
    for i in range(n):
        x, s, kept = M[i], size[i], out[i]
        for k in range(r):
            kept[k] = max(x[k], 0) if nonnegative else x[k]
        for k in range(r):
            s[k] = abs(kept[k])
        for k in range(r):
            top[k] = max(top[k], s[k])
    largest = top.max()
    if largest == 0:
        return out
    for i in range(n):
        s = size[i]
        for k in range(r):
            s[k] /= largest
    root = np.sqrt(n)
    budget = r * (root - sparsity * (root - 1))  # of sum ||x_i(t)||_1
    if _ratios(size, top / largest, sums) <= budget:
        return out
    t = _threshold(size, budget, sums, max_steps, nothing)
    _above(size, t, sums)
    for k in range(r):
        gone = sums[1, k] <= nothing
        if gone:  # the unit vector at the largest entry
            best = np.argmax(size[:, k])
            for i in range(n):
                out[i, k] = out[i, k] if i == best else 0
        # <|x|, (|x| - t)_+> = ||(|x| - t)_+||_2^2 + t ||(|x| - t)_+||_1
        sums[2, k] = 0 if gone else largest * (sums[1, k] + t * sums[0, k]) / sums[1, k]
        top[k] = 1 if gone else 0
    factor = sums[2]
    for i in range(n):
        s, kept = size[i], out[i]
        for k in range(r):
            left = max(s[k] - t, 0) * factor[k] + top[k] * abs(kept[k])
            kept[k] = left if kept[k] > 0 else -left
    return out


@_jit
def _ratios(size: Any, top: Any, sums: Any) -> float:
    """sum_i ||x_i||_1 / ||x_i||_2, where a zero column counts as 1.

    Columns are divided by their largest entry: squares of tiny ones would vanish.
    """
    n, r = size.shape
    sums[:] = 0
    l1, l2, scale = sums[0], sums[1], sums[2]
    for k in range(r):
        scale[k] = 1 / top[k] if top[k] > 0 else 1
    for i in range(n):
        x = size[i]
        for k in range(r):
            l1[k] += x[k] * scale[k]
        for k in range(r):
            l2[k] += (x[k] * scale[k]) * (x[k] * scale[k])
    total = 0.0
    for k in range(r):
        total += l1[k] / np.sqrt(l2[k]) if l2[k] > 0 else 1
    return total


@_jit
def _above(size: Any, t: Any, sums: Any) -> None:
    """||(x - t)_+||_1, ||(x - t)_+||_2^2 and the number of entries above t, of each column x."""
    n, r = size.shape
    sums[:] = 0
    l1, l2, count = sums[0], sums[1], sums[2]
    for i in range(n):
        x = size[i]
        for k in range(r):
            l1[k] += max(x[k] - t, 0)
        for k in range(r):
            left = max(x[k] - t, 0)
            l2[k] += left * left
        for k in range(r):
            count[k] += 1 if x[k] > t else 0


@_jit
def _ratio_sum(size: Any, t: Any, sums: Any, nothing: float) -> Any:
    """g(t) = sum_i ||x_i(t)||_1, which decreases in t, and its derivative."""
    _above(size, t, sums)
    value = slope = 0.0
    for k in range(size.shape[1]):
        l1, l2sq, count = sums[0, k], sums[1, k], sums[2, k]
        if l2sq > nothing:
            l2 = np.sqrt(l2sq)
            value += l1 / l2
            slope += (l1 * l1 - count * l2sq) / (l2sq * l2)
        else:
            value += 1
    return value, slope


@_jit
def _threshold(size: Any, budget: Any, sums: Any, max_steps: int, nothing: float) -> Any:
    """Smallest t (to rounding) with g(t) <= budget: Newton inside a shrinking bracket."""
    low, high, t = 0.0, 1.0, 0.0
    value, slope = _ratio_sum(size, t, sums, nothing)
    if value <= budget:
        return t
    for _ in range(max_steps):
        t += (budget - value) / slope if slope < 0 else np.inf
        if not low < t < high:
            t = (low + high) / 2
        value, slope = _ratio_sum(size, t, sums, nothing)
        if value > budget:
            low = t
        else:
            high = t
        if abs(value - budget) <= 1e-13 * budget:
            return t
        if high - low <= 1e-15:
            break
    return high
