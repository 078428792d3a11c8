"""The interface of regularizers."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from deepmf.constraints.base import Constraint
from deepmf.core.parameters import Parametrized, check_number
from deepmf.core.quadratic import Array, Quadratic


@dataclass(frozen=True)
class LayerFit:
    """A layer's fit without penalties, by which relative weights are measured."""

    M: Array | None
    """The factor that the penalty is on; None for codes, which stay on the data side."""
    value: float
    """The penalty's value at it."""
    error: float
    """1/2 ||R||^2, with the layer's residual R."""
    residual: Callable[[], Array] = lambda: np.ones((1, 1))
    """Some columns of R, or all of them."""
    overfitted: bool = False
    """Whether the layer has as many components as features, so that R says nothing."""

    @cached_property
    def dimension(self) -> float:
        """The effective dimension of the residual, see `effective_dimension`."""
        return effective_dimension(self.residual())


def effective_dimension(R: Array) -> float:
    """``tr(R R')^2 / ||R R'||_F^2``: in how many directions of similar size a residual varies.

    About m for white noise, and far less where the errors of different features go together.
    """
    largest = float(np.max(np.abs(R), initial=0.0))
    R = R.astype(np.float64) / (largest or 1.0)  # whose squares neither overflow nor vanish
    gram = R @ R.T if len(R) <= R.shape[1] else R.T @ R
    squares = float(np.sum(gram * gram))
    return float(np.trace(gram)) ** 2 / squares if squares > 0 else 1.0


class Regularizer(Parametrized):
    """A penalty ``weight * value(M)`` on one factor, handled through quadratics above it.

    A subclass needs ``value`` and ``majorize``. This is a complete regularizer, smooth spectra::

        class Smooth(Regularizer):
            def value(self, M):
                return 0.5 * np.sum(np.diff(M, axis=0) ** 2)

            def majorize(self, M):
                D = np.diff(np.eye(len(M)), axis=0)
                return Quadratic.of(A=D.T @ D)

        factorize(X, ranks=[4, 2], regularizer_W=Smooth(0.1))

    Parameters
    ----------
    weight : float
        Strength of the penalty.
    relative : bool
        If true (default), ``weight`` is measured against the error of the layer's own fit without
        penalties, so that it does not depend on the data's units: the penalty is multiplied by
        ``weight * error / |value|``. If false, by ``weight`` itself.
    """

    separable: ClassVar[bool] = False
    """Whether value and majorizer are sums over columns; if not, see `shifts`."""

    shifts: ClassVar[bool] = False
    """Whether the majorizer is ``tau/2 ||M||^2 - <C, M>``.

    Such a penalty may act on H_1 and tie its columns together, as a graph of neighbors does, where
    data are in memory or on disk.
    """

    gradual: ClassVar[bool] = False
    """Whether it gains on the loss slowly at first: small decreases are then no sign of the end."""

    natural_set: ClassVar[Constraint | None] = None
    """The constraint a factor with this penalty gets when the user names none."""

    def __init__(self, weight: float = 1e-2, relative: bool = True) -> None:
        check_number(f"{type(self).__name__}'s weight", weight, 0, 1e30)
        self.weight = weight
        self.relative = relative

    def value(self, M: Array) -> float:
        """The penalty at M, without its strength."""
        raise NotImplementedError(f"{type(self).__name__} needs a method value(M).")

    def majorize(self, M: Array) -> Quadratic:
        """A quadratic q with q(Z) - q(M) >= value(Z) - value(M) for all feasible Z."""
        raise NotImplementedError(f"{type(self).__name__} needs a method majorize(M).")

    @property
    def needs_fit(self) -> bool:
        """Whether `absolute` needs the layer's fit without penalties, and not just its start."""
        return self.relative

    def absolute(self, fit: LayerFit) -> dict[str, Any]:
        """The attributes of this penalty in absolute terms, fixed for the rest of the fit."""
        if not self.relative:
            return {"weight": self.weight}
        return {"weight": self.weight * fit.error / abs(fit.value) if fit.value else 0.0}

    def having(self, attributes: dict[str, Any]) -> Self:
        """A copy with the attributes that `absolute` gave."""
        fixed = copy(self)
        vars(fixed).update(attributes)
        return fixed

    def objection(self, own: Constraint, partner: Constraint) -> str | None:
        """Why the penalty cannot work with these constraints on its factor and on the partner."""
        return None
