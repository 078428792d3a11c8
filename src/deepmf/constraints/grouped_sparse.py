"""Grouped sparse projection: a whole factor reaches one average sparsity."""

from __future__ import annotations

import math

import numpy as np

from deepmf.constraints.base import Constraint
from deepmf.core.parameters import check_number
from deepmf.core.quadratic import Array
from deepmf.kernels.limits import MAX_STEPS, NOTHING
from deepmf.kernels.loading import load_kernels


class GroupedSparse(Constraint):
    """{M : average Hoyer sparsity of the columns >= sparsity} (and M >= 0).

    Hoyer sparsity of x in R^n is ``(sqrt(n) - ||x||_1/||x||_2) / (sqrt(n) - 1)``: 0 for a constant
    column, 1 for a single nonzero. One number for the whole factor lets some columns be dense and
    others sparse. The set is not convex; solvers accept a step only where f does not increase.

    Parameters
    ----------
    sparsity : float in [0, 1]
        Average sparsity to reach.
    nonnegative : bool
        Whether the entries must be nonnegative too.

    References
    ----------
    Ohib, Gillis, Dalmasso, Shah, Potluru, Plis, "Grouped sparse projection", arXiv 1912.03896.
    """

    name = "grouped-sparse"
    convex = False

    def __init__(self, sparsity: float = 0.5, nonnegative: bool = True) -> None:
        check_number("GroupedSparse's sparsity", sparsity, 0, 1)
        self.sparsity = sparsity
        self.nonnegative = nonnegative

    def project(self, M: Array) -> Array:
        """``sign(x_i) <|x_i|, x_i(t)> x_i(t)``, with ``x_i(t) = (|x_i| - t)_+`` normalized.

        All columns share the threshold t, chosen so that the average sparsity is met.
        """
        kernels = load_kernels()
        project = _project if kernels is None else kernels.grouped_sparse
        M = np.ascontiguousarray(M)
        projected: Array = project(M, self.sparsity, self.nonnegative, MAX_STEPS, NOTHING)
        return projected

    def violation(self, M: Array) -> float:
        """Shortfall of the average sparsity, or the most negative entry if that is larger."""
        short = self.sparsity - float(np.mean(_column_sparsity(np.abs(M))))
        largest = float(np.max(np.abs(M), initial=0.0)) or 1.0
        negative = -float(np.min(M, initial=0.0)) / largest if self.nonnegative else 0.0
        return max(short, negative, 0.0)

    def objection(self, shape: tuple[int, int]) -> str | None:
        """A single row has no sparsity to speak of."""
        return "sparsity is not defined for columns of length 1" if shape[0] < 2 else None


def _project(M: Array, sparsity: float, nonnegative: bool, max_steps: int, nothing: float) -> Array:
    """`GroupedSparse.project` in NumPy."""
    if nonnegative:
        M = np.maximum(M, 0)
    size = np.abs(M)
    largest = float(size.max(initial=0.0))
    if largest == 0:
        return M
    size = size / largest
    if np.mean(_column_sparsity(size)) >= sparsity:
        return M
    n, r = M.shape
    budget = r * (math.sqrt(n) - sparsity * (math.sqrt(n) - 1))  # of sum ||x_i(t)||_1
    t = float(_threshold(size, budget, max_steps, nothing))  # a NumPy number would promote float32
    unit = _unit_columns(size, t, nothing)
    return np.sign(M) * (largest * np.sum(size * unit, axis=0) * unit)


def _column_sparsity(size: Array) -> Array:
    root = np.sqrt(len(size))
    top = size.max(axis=0)
    size = size / np.where(top > 0, top, 1)  # squares of tiny columns would vanish
    l1, l2 = size.sum(axis=0), np.sqrt(np.sum(size * size, axis=0))
    ratio = np.divide(l1, l2, out=np.ones_like(l1), where=l2 > 0)  # a zero column counts as sparse
    return (root - ratio) / (root - 1)


def _unit_columns(size: Array, t: float, nothing: float) -> Array:
    """(x_i - t)_+ normalized; the unit vector at the largest entry where nothing is left."""
    left = np.maximum(size - t, 0)
    norms2 = np.sum(left * left, axis=0)
    gone = np.flatnonzero(norms2 <= nothing)
    norms = np.sqrt(norms2)
    norms[gone] = 1
    left[:, gone] = 0
    left /= norms
    left[np.argmax(size[:, gone], axis=0), gone] = 1
    return left


def _ratio_sum(size: Array, t: float, nothing: float) -> tuple[float, float]:
    """g(t) = sum_i ||x_i(t)||_1, which decreases in t, and its derivative."""
    left = np.maximum(size - t, 0)
    l1, l2sq, count = left.sum(axis=0), np.sum(left * left, axis=0), np.count_nonzero(left, axis=0)
    alive = l2sq > nothing
    l1, l2sq, count = l1[alive], l2sq[alive], count[alive]
    l2 = np.sqrt(l2sq)
    value = float(np.sum(l1 / l2)) + (size.shape[1] - len(l1))
    return value, float(np.sum((l1 * l1 - count * l2sq) / (l2sq * l2)))


def _threshold(size: Array, budget: float, max_steps: int, nothing: float) -> float:
    """Smallest t (to rounding) with g(t) <= budget: Newton inside a shrinking bracket.

    g can jump down where two largest entries of a column tie; the bracket then closes on the jump
    and its upper, sparser end is returned.
    """
    value, slope = _ratio_sum(size, 0.0, nothing)
    if value <= budget:
        return 0.0
    low, high, t = 0.0, 1.0, 0.0
    for _ in range(max_steps):
        step = (budget - value) / slope if slope < 0 else np.inf
        t = t + step
        if not low < t < high:
            t = (low + high) / 2
        value, slope = _ratio_sum(size, t, nothing)
        if value > budget:
            low = t
        else:
            high = t
        if abs(value - budget) <= 1e-13 * budget:
            return t
        if high - low <= 1e-15:
            break
    return high
