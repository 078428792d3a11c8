"""A set of matrices whose transposes lie in another set."""

from __future__ import annotations

from deepmf.constraints.base import Constraint
from deepmf.core.quadratic import Array, Quadratic


class Transposed(Constraint):
    """{M : M' lies in the set}, such as one parent for each row of Z_l in depth over codes.

    Parameters
    ----------
    constraint : Constraint
        The set.
    """

    name = "transposed"

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self.convex, self.nonnegative = constraint.convex, constraint.nonnegative
        self.bounded, self.cone = constraint.bounded, constraint.cone

    def project(self, M: Array) -> Array:
        """The transpose of the projection of M'."""
        return self.constraint.project(M.T).T

    def minimize(self, q: Quadratic, M: Array) -> Array | None:
        """See `Constraint.minimize`."""
        found = self.constraint.minimize(q.T, M.T)
        return None if found is None else found.T
