"""Norm penalties: ridge and l1."""

from __future__ import annotations

import numpy as np

from deepmf.constraints.base import Constraint
from deepmf.core.quadratic import Array, Quadratic
from deepmf.regularizers.base import Regularizer


class Ridge(Regularizer):
    """1/2 ||M||^2: its own quadratic."""

    name = "ridge"
    separable = True

    def value(self, M: Array) -> float:
        """1/2 ||M||^2."""
        return 0.5 * float(np.sum(M * M, dtype=np.float64))

    def majorize(self, M: Array) -> Quadratic:
        """Quadratic with A = B = I."""
        return Quadratic.of()


class L1(Regularizer):
    """||M||_1 on a nonnegative factor, where it is linear: the sum of the entries."""

    name = "l1"
    separable = True

    def value(self, M: Array) -> float:
        """``sum |M|``."""
        return float(np.sum(np.abs(M), dtype=np.float64))

    def majorize(self, M: Array) -> Quadratic:
        """Quadratic with C = -1: exact on nonnegative matrices."""
        return Quadratic(C=-1.0)

    def objection(self, own: Constraint, partner: Constraint) -> str | None:
        """Signed entries would need another solver."""
        if own.nonnegative:
            return None
        return (
            "its factor may be negative; make it nonnegative, "
            "or ask for sparsity by GroupedSparse(nonnegative=False)"
        )
