"""The interface of solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepmf.constraints.base import Constraint
from deepmf.core.parameters import Parametrized
from deepmf.core.quadratic import Array, Quadratic

if TYPE_CHECKING:
    from deepmf.kernels.descent import Descent


class Solver(Parametrized):
    """Decreases one block: min f(M) over a set, from a feasible M.

    A solver never returns a matrix with a larger f than it was given (to rounding), and treats the
    columns of a column-separable problem independently, so that the result does not depend on how
    columns are grouped into panels.
    """

    keeps_zeros: bool = False
    """Whether an entry that is zero stays zero: starts are then made positive."""

    def solve(
        self, q: Quadratic, constraint: Constraint, M: Array, max_iter: int, tol: float
    ) -> Array:
        """A matrix of the set with a smaller f.

        Parameters
        ----------
        q : Quadratic
            The function f.
        constraint : Constraint
            The set.
        M : array
            Feasible starting point, left as it is.
        max_iter : int
            Cap on inner iterations.
        tol : float
            Stop when a step is shorter than ``tol`` times the first one.
        """
        raise NotImplementedError(
            f"{type(self).__name__} needs a method solve(q, constraint, M, max_iter, tol)."
        )

    def improve(self, q: Any, constraint: Constraint, M: Array, max_iter: int, tol: float) -> Array:
        """`solve` for the part of M that the set leaves free; what it holds stays as it is.

        A surrogate that is not a quadratic is asked for its own
        ``descend(constraint, M, max_iter, tol)`` instead.
        """
        if not isinstance(q, Quadratic):
            return q.descend(constraint, M, max_iter, tol)
        exact = constraint.minimize(q, M)
        if exact is not None:
            return exact
        block = constraint.free(M.shape)
        if block is None:
            return self.solve(q, constraint, M, max_iter, tol)
        out, part = M.copy(), np.ascontiguousarray(M[block])
        if part.size:
            part_q = q.restricted(M, block)
            out[block] = self.solve(part_q, constraint.inner, part, max_iter, tol)
        return out

    def column_kernel(
        self, A: Array, constraint: Constraint, dtype: np.dtype, max_iter: int, tol: float
    ) -> Descent | None:
        """Settings of the compiled kernels for 1/2 <h, A h> - <c, h> per column, where they apply.

        ``None``: panels call `solve` instead.
        """
        return None

    def objection(self, constraint: Constraint) -> str | None:
        """Why the solver cannot handle the constraint, or ``None``."""
        return None


def optimality(q: Quadratic, constraint: Constraint, M: Array) -> float:
    """Lip ||M - P(M - grad f(M) / Lip)||: 0 exactly at a stationary point of a convex set."""
    lipschitz = q.lipschitz()
    if lipschitz == 0:
        return 0.0
    D = M - constraint.project(M - q.gradient(M) / lipschitz)
    return lipschitz * float((D * D).sum()) ** 0.5
