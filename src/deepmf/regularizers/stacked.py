"""A sum of penalties, one on the rows of each layer's codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deepmf.core.quadratic import Array, Quadratic
from deepmf.regularizers.base import Regularizer


class Part(NamedTuple):
    """A penalty on some rows, times its strength."""

    rows: slice
    strength: float
    penalty: Regularizer


class Stacked(Regularizer):
    """sum_l strength_l penalty_l(rows of layer l), for penalties that are sums over columns.

    Parameters
    ----------
    parts : sequence of Part
        The penalties.
    size : int
        The number of rows of all codes.
    """

    separable = True

    def __init__(self, parts: Sequence[Part], size: int) -> None:
        super().__init__(1.0, relative=False)
        self.parts, self.size = tuple(parts), size

    def value(self, M: Array) -> float:
        """The sum of the parts' values."""
        return float(sum(p.strength * p.penalty.value(M[p.rows]) for p in self.parts))

    def majorize(self, M: Array) -> Quadratic:
        """Block-diagonal A, and the parts' C one below the other."""
        A, C = np.zeros((self.size, self.size)), np.zeros((self.size, 1))
        for rows, strength, penalty in self.parts:
            q = strength * penalty.majorize(M[rows])
            for left, right in q.terms:
                block = left * np.eye(rows.stop - rows.start) if isinstance(left, float) else left
                A[rows, rows] += block * right
            if np.ndim(q.C) == 2 and q.C.shape[1] > C.shape[1]:  # type: ignore[union-attr]
                C = np.repeat(C, q.C.shape[1], axis=1)  # type: ignore[union-attr]
            C[rows] += q.C
        return Quadratic(((A, 1.0),) if A.any() else (), C)
