"""Minimum volume: components as close to the data as the fit allows."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from deepmf._utils.messages import SettingError
from deepmf.constraints.base import Constraint
from deepmf.constraints.simplex import Simplex
from deepmf.core.parameters import check_number
from deepmf.core.quadratic import Array, Quadratic
from deepmf.regularizers.base import LayerFit, Regularizer

Scale = Literal["likelihood", "paper", "absolute"]

_DELTA, _OVERFITTED_DELTA = 0.01, 0.1
"""Default delta relative to the mean squared norm of components; with as many as features."""

_PAPER_DELTA = 0.1


class MinVolume(Regularizer):
    """kappa/2 logdet(M'M + delta I).

    logdet is concave in M'M, so its tangent lies above it; at the current M* the majorizer is
    ``1/2 <M'M, Z>`` with ``Z = (M*'M* + delta I)^{-1}``, which joins the block's right side B.
    Use it on a W whose scale is fixed: by itself (columns that sum to one, the default with this
    regularizer) or by its H (columns on the simplex); otherwise the volume shrinks by scaling.

    With abundances uniform on the simplex, a pixel's density given W falls with the volume of W,
    so the likelihood of n pixels with noise of variance s^2 carries ``n s^2 / 2 logdet(W'W)``.
    That is the default weight, and nothing is left to tune::

        kappa = weight * ||R||^2 / dim(R),    dim(R) = tr(R R')^2 / ||R R'||_F^2
        delta = 0.01 * mean of the squared norms of the components

    with the residual R of the layer's fit without penalties. Errors of neighboring bands go
    together, so their effective dimension takes the place of the number of bands.

    Parameters
    ----------
    weight : float
        Multiplies the scale: 1 is the likelihood's, more gives smaller volumes.
    scale : {"likelihood", "paper", "absolute"}
        What ``weight`` is measured by. ``"likelihood"`` (default): as above, free of units.
        ``"paper"``: ``kappa = weight * error / |logdet(W'W + delta I)|`` at the start.
        ``"absolute"``: ``weight`` is kappa.
    delta : float, optional
        Keeps the volume of a rank-deficient W finite: a multiple of the mean squared norm of the
        components (default 0.01; 0.1 for as many components as features) with ``"likelihood"``,
        and delta itself with the others (default 0.1).

    References
    ----------
    De Handschutter, Gillis, "A consistent and flexible framework for deep matrix factorizations",
    Pattern Recognition 134 (2023), for ``"paper"``.
    """

    name = "min-volume"
    natural_set = Simplex()
    gradual = True

    def __init__(
        self, weight: float = 1.0, scale: Scale = "likelihood", delta: float | None = None
    ) -> None:
        if scale not in get_args(Scale):
            raise SettingError(
                f"MinVolume's scale must be one of {', '.join(map(repr, get_args(Scale)))}, "
                f"got {scale!r}."
            )
        super().__init__(weight, relative=scale != "absolute")
        if delta is not None:
            check_number("MinVolume's delta", delta, 1e-30, 1e30)
        self.scale, self.delta = scale, delta

    @classmethod
    def from_spec(cls, params: dict[str, Any]) -> MinVolume:
        """The penalty from parameters in a file; version 0.1 had ``relative`` for ``scale``."""
        if "relative" in params:
            scale: Scale = "paper" if params["relative"] else "absolute"
            params = {"scale": scale, **{k: v for k, v in params.items() if k != "relative"}}
        return cls(**params)

    def value(self, M: Array) -> float:
        """1/2 logdet(M'M + delta I)."""
        return 0.5 * float(np.log(self._eigen(M)[0]).sum())

    def majorize(self, M: Array) -> Quadratic:
        """Quadratic with B = (M'M + delta I)^{-1}."""
        values, U = self._eigen(M)
        return Quadratic.of(B=(U / values) @ U.T)

    @property
    def needs_fit(self) -> bool:
        """True for the likelihood's scale."""
        return self.scale == "likelihood"

    def absolute(self, fit: LayerFit) -> dict[str, Any]:
        """kappa and delta."""
        if self.scale == "absolute":
            return {"weight": self.weight, "delta": self._delta(None)}
        if self.scale == "paper":  # a logdet that happens to vanish is kept from the division
            kappa = self.weight * fit.error / max(2 * abs(fit.value), 0.1)
            return {"weight": kappa, "delta": self._delta(None)}
        kappa = self.weight * 2 * fit.error / fit.dimension
        return {"weight": kappa, "delta": self._delta(fit)}

    def objection(self, own: Constraint, partner: Constraint) -> str | None:
        """Objection unless one of the two factors has a fixed scale."""
        if own.bounded or partner.bounded:
            return None
        return (
            "neither factor has a fixed scale, so the volume would vanish by scaling alone; "
            "use a simplex constraint on this factor or on its partner"
        )

    def _delta(self, fit: LayerFit | None) -> float:
        if fit is None or fit.M is None:
            return _PAPER_DELTA if self.delta is None else self.delta
        factor = _OVERFITTED_DELTA if fit.overfitted else _DELTA
        norm2 = float(np.mean(np.sum(np.square(fit.M), axis=0)))
        return (factor if self.delta is None else self.delta) * norm2

    def _eigen(self, M: Array) -> tuple[Array, Array]:
        """Eigenvalues and vectors of M'M + delta I, none below delta whatever the rounding."""
        values, U = np.linalg.eigh(M.T @ M)
        return np.maximum(values, 0) + self._delta(None), U
