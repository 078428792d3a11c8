"""Hierarchical alternating least squares: one row at a time, in closed form."""

from __future__ import annotations

import numpy as np

from deepmf.constraints.base import Constraint
from deepmf.core.quadratic import Array, Quadratic, Side, largest_eigenvalue
from deepmf.solvers.base import Solver


class HALS(Solver):
    """m_k <- P(m_k - grad_k / c_k) for each row k, with c_k = sum_i A_i[k, k] lmax(B_i).

    Where f separates over columns (every H of the layer-centric loss) that is the exact minimizer
    over the row; otherwise it minimizes a quadratic above f. Blocks with A = I (every W) are
    transposed, so that W is updated column by column. Runs ``max_iter`` rounds, whatever ``tol``.
    """

    name = "hals"

    def solve(
        self, q: Quadratic, constraint: Constraint, M: Array, max_iter: int, tol: float
    ) -> Array:
        """See `Solver.solve`."""
        if not q.column_separable and q.T.column_separable:
            return self.solve(q.T, constraint, M.T.copy(), max_iter, tol).T
        M = M.copy()
        C = np.broadcast_to(np.asarray(q.C, dtype=M.dtype), M.shape)
        scales = [largest_eigenvalue(B) for _, B in q.terms]
        for _ in range(max_iter):
            for k in range(len(M)):
                curvature = sum(s * _entry(A, k) for (A, _), s in zip(q.terms, scales))
                if curvature > 0:
                    gradient = sum(_row(A, B, M, k) for A, B in q.terms) - C[k]
                    M[k] = constraint.project((M[k] - gradient / curvature)[None])[0]
        return M

    def objection(self, constraint: Constraint) -> str | None:
        """Rows can be updated alone only where entries can."""
        if constraint.separable == "entries" and constraint.convex:
            return None
        return "it updates one row at a time, so it needs a constraint on single entries"


def _entry(A: Side, k: int) -> float:
    return A if isinstance(A, float) else float(A[k, k])


def _row(A: Side, B: Side, M: Array, k: int) -> Array:
    """Row k of A M B."""
    row = A * M[k] if isinstance(A, float) else A[k] @ M
    return row * B if isinstance(B, float) else row @ B
