"""Minimum volume: basis vectors as close to the data as the fit allows."""

from __future__ import annotations

import numpy as np

from deepmf.constraints.base import Constraint
from deepmf.constraints.simplex import Simplex
from deepmf.core.parameters import check_number
from deepmf.core.quadratic import Array, Quadratic
from deepmf.regularizers.base import Regularizer


class MinVolume(Regularizer):
    """1/2 logdet(M'M + delta I).

    logdet is concave in M'M, so its tangent lies above it; at the current M* the majoriser is
    ``1/2 <M'M, Z>`` with ``Z = (M*'M* + delta I)^{-1}``, which joins the block's right side B.
    Use it on a W of fixed scale (column-stochastic, the default with this regulariser); otherwise
    the volume shrinks by scaling alone.

    Parameters
    ----------
    weight : float
        kappa-tilde of the paper: ``kappa = weight * error / |logdet(W'W + delta I)|`` at the start.
    relative : bool
        If false, ``weight`` is kappa itself.
    delta : float
        Keeps the volume of a rank-deficient W finite. It is measured against W'W, so with a W of
        free scale (H on the simplex) the data should be of order 1.
    """

    name = "min-volume"
    natural_set = Simplex()

    def __init__(self, weight: float = 1e-2, relative: bool = True, delta: float = 0.1) -> None:
        super().__init__(weight, relative)
        check_number("MinVolume's delta", delta, 1e-30, 1e30)
        self.delta = delta

    def value(self, M: Array) -> float:
        """1/2 logdet(M'M + delta I)."""
        return 0.5 * float(np.log(self._eigen(M)[0]).sum())

    def majorize(self, M: Array) -> Quadratic:
        """Quadratic with B = (M'M + delta I)^{-1}."""
        values, U = self._eigen(M)
        return Quadratic.of(B=(U / values) @ U.T)

    def strength(self, value: float, error: float) -> float:
        """Kappa of section 6, the division kept away from a logdet that happens to vanish."""
        return self.weight * (error / max(2 * abs(value), 0.1) if self.relative else 1.0)

    def objection(self, own: Constraint, partner: Constraint) -> str | None:
        """The scale must be fixed on one side."""
        if own.bounded or partner.bounded:
            return None
        return (
            "neither factor has a fixed scale, so the volume would vanish by scaling alone; "
            "use a simplex constraint on this factor or on its partner"
        )

    def _eigen(self, M: Array) -> tuple[Array, Array]:
        """Eigenvalues and vectors of M'M + delta I, none below delta whatever the rounding."""
        values, U = np.linalg.eigh(M.T @ M)
        return np.maximum(values, 0) + self.delta, U
