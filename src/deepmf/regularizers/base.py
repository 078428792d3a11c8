"""What a regulariser is."""

from __future__ import annotations

from typing import ClassVar

from deepmf.constraints.base import Constraint
from deepmf.core.parameters import Parametrized, check_number
from deepmf.core.quadratic import Array, Quadratic


class Regularizer(Parametrized):
    """A penalty ``strength * value(M)`` on one factor, handled through quadratics above it.

    A subclass needs ``value`` and ``majorize``. This is a complete regulariser, smooth spectra::

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
        If true (default), ``weight`` is measured against the layer's own error at the start, so
        that it does not depend on the data's units: ``strength = weight * error / |value|``. If
        false, ``weight`` is the strength itself.
    """

    separable: ClassVar[bool] = False
    """Whether value and majoriser are sums over columns; only such penalties can act on H_1."""

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

    def strength(self, value: float, error: float) -> float:
        """Factor in front of ``value``, from the value and the layer's error at the start."""
        if not self.relative:
            return self.weight
        return self.weight * error / abs(value) if value else 0.0

    def objection(self, own: Constraint, partner: Constraint) -> str | None:
        """Why the penalty cannot work with these constraints on its factor and on the partner."""
        return None
