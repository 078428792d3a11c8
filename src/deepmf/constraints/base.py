"""The interface of constraints."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from deepmf.core.parameters import Parametrized
from deepmf.core.quadratic import Array, Block
from deepmf.core.separable import Separable


class Constraint(Parametrized):
    """A set of matrices, given by the projection onto it.

    A subclass needs ``project`` and the facts that differ from the defaults below. This is a
    complete constraint, columns inside the unit ball::

        class UnitBall(Constraint):
            separable = "columns"
            bounded = True

            def project(self, M):
                return M / np.maximum(np.linalg.norm(M, axis=0), 1)

        factorize(X, ranks=[4, 2], constraint_W=UnitBall())
    """

    separable: ClassVar[Literal["entries", "columns"] | None] = None
    """Unit that the projection handles alone: entries or columns; ``None``: the whole matrix."""

    convex: bool = True
    """Whether the set is convex."""

    nonnegative: bool = False
    """Whether every matrix of the set is entrywise nonnegative."""

    bounded: bool = False
    """Whether the set is bounded, so that it fixes the scale of a factor."""

    cone: bool = False
    """Whether rows and columns of a matrix of the set may be rescaled by positive numbers."""

    def project(self, M: Array) -> Array:
        """argmin over Z in the set of ||Z - M||. Pure: M is left as it is."""
        raise NotImplementedError(f"{type(self).__name__} needs a method project(M).")

    def violation(self, M: Array) -> float:
        """``max |M - project(M)| / max |M|``: 0 on the set, free of scale."""
        largest = float(np.max(np.abs(M), initial=0.0))
        if largest == 0.0:
            largest = 1.0
        return float(np.max(np.abs(M - self.project(M)), initial=0.0)) / largest

    def scales(self, M: Array) -> Array | None:
        """Per column, the number to divide M by on the way to the set; ``None``: none helps.

        A start is rescaled by these before it is projected, which keeps the product with the
        factor on its other side. Projecting an unscaled spectrum onto the simplex would destroy it.
        """
        return None

    @property
    def minimizes(self) -> bool:
        """Whether `minimize` finds the minimum of every `Separable` function over the set.

        Divergences need that. A set of bounds on nonnegative entries has it from `project`.
        """
        return self.separable == "entries" and self.convex and self.nonnegative

    def minimize(self, q: Any, M: Array) -> Array | None:
        """A matrix of the set with the smallest q, or none larger than at M, where that is exact.

        q is a `Quadratic` or, with a divergence, a `Separable`. ``None``: a solver approaches it by
        projections.
        """
        return self.project(q.argmin(M)) if isinstance(q, Separable) else None

    def arrange(self, M: Array) -> Array:
        """A start's columns in the order that suits the set."""
        return M

    @property
    def inner(self) -> Constraint:
        """The set of the free part: the set itself, unless part of the factor is held."""
        return self

    def free(self, shape: tuple[int, ...]) -> Block | None:
        """The block that a fit may choose where it holds the rest; ``None``: it holds nothing."""
        return None

    def objection(self, shape: tuple[int, int]) -> str | None:
        """Why no matrix of this shape can carry the constraint, or ``None``."""
        return None

    def objection_on(self, kind: Literal["H", "W"], shape: tuple[int, int]) -> str | None:
        """Why no factor of this kind and shape can carry the constraint, or ``None``."""
        return self.objection(shape)
