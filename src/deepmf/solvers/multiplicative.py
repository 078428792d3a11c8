"""Multiplicative updates, as the original Tri-DMF used them."""

from __future__ import annotations

import numpy as np

from deepmf.constraints.base import Constraint
from deepmf.constraints.entries import Nonnegative
from deepmf.core.quadratic import Array, Quadratic, Side
from deepmf.solvers.base import Solver


class Multiplicative(Solver):
    """M <- M * (C / (A M B)), entrywise (Lee and Seung).

    Where A, B or C have negative entries (semi-NMF, minimum volume) the two are split into their
    positive and negative parts and the square root of the ratio is taken (Ding, Li and Jordan);
    both forms decrease f. Entries that are zero stay zero. Runs ``max_iter`` rounds, whatever
    ``tol``.
    """

    name = "mu"
    keeps_zeros = True

    def solve(
        self, q: Quadratic, constraint: Constraint, M: Array, max_iter: int, tol: float
    ) -> Array:
        """See `Solver.solve`."""
        signed = np.min(q.C) < 0 or any(_has_negative(A) or _has_negative(B) for A, B in q.terms)
        for _ in range(max_iter):
            up = np.broadcast_to(np.maximum(q.C, 0), M.shape).astype(M.dtype)
            down = np.broadcast_to(np.maximum(-q.C, 0), M.shape).astype(M.dtype)
            for A, B in q.terms:
                same, cross = _signed_products(A, M, B) if signed else (_product(A, M, B), 0)
                up, down = up + cross, down + same
            ratio = np.divide(up, down, out=np.ones_like(M), where=down > 0)
            M = M * (np.sqrt(ratio) if signed else ratio)
        return M

    def objection(self, constraint: Constraint) -> str | None:
        """Products keep the sign and nothing else."""
        if isinstance(constraint, Nonnegative):
            return None
        return "multiplicative updates only handle nonnegativity"


def _has_negative(A: Side) -> bool:
    return bool(np.min(A) < 0)


def _product(A: Side, M: Array, B: Side) -> Array:
    return Quadratic.of(A, B).hessian(M)


def _signed_products(A: Side, M: Array, B: Side) -> tuple[Array, Array]:
    """Positive and negative part of A M B = (A+ - A-) M (B+ - B-), for M >= 0."""
    (Ap, An), (Bp, Bn) = _parts(A), _parts(B)
    same = _product(Ap, M, Bp) + _product(An, M, Bn)
    cross = _product(Ap, M, Bn) + _product(An, M, Bp)
    return same, cross


def _parts(A: Side) -> tuple[Side, Side]:
    if isinstance(A, float):
        return max(A, 0.0), max(-A, 0.0)
    return np.maximum(A, 0), np.maximum(-A, 0)
