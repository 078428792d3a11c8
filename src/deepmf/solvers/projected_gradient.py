"""Projected gradient, plain and fast with restarts (Algorithm 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepmf.constraints.base import Constraint
from deepmf.core.quadratic import Array, Quadratic
from deepmf.solvers.base import Solver
from deepmf.solvers.dispatch import FIRST_ALPHA, column_settings, compiled_solve
from deepmf.solvers.steps import step_sizes

if TYPE_CHECKING:
    from deepmf.kernels.descent import Descent

Mask = NDArray[np.bool_]


class FastProjectedGradient(Solver):
    """Restarted fast projected gradient method (FPGM, Algorithm 4).

    ::

        M_k = P(Y - grad f(Y) / Lip),   Y = M_k + b_k (M_k - M_{k-1}),
        a_{k+1} = (sqrt(a_k^4 + 4 a_k^2) - a_k^2) / 2,   b_k = a_k (1 - a_k) / (a_k^2 + a_{k+1})

    A step that would increase f is not taken; the extrapolation restarts from a_1. The decision
    rests on the exact change of f, not on the difference of two values, and is made for each
    column (or row) where f and the set separate over them.

    Parameters
    ----------
    scaled : bool
        Whether rows and columns take steps (see `steps.step_sizes`) and, for a W, decisions of
        their own, where the set allows it. False is the paper's algorithm, with 1 / Lip for all.
    """

    name = "fpgm"
    accelerated = True

    def __init__(self, scaled: bool = True) -> None:
        if not isinstance(scaled, bool | np.bool_):
            raise ValueError(f"scaled must be True or False, got {scaled!r}.")
        self.scaled = scaled

    def solve(
        self, q: Quadratic, constraint: Constraint, M: Array, max_iter: int, tol: float
    ) -> Array:
        """See `Solver.solve`."""
        if self._by_row(q, constraint):
            transposed = np.ascontiguousarray(M.T)
            return np.ascontiguousarray(self.solve(q.T, constraint, transposed, max_iter, tol).T)
        size = step_sizes(q, constraint, self.scaled)
        if size is None:
            return M
        size = size.astype(M.dtype, copy=False)
        fast = compiled_solve(q, constraint, M, size, max_iter, tol, self.accelerated)
        if fast is not None:
            return fast
        run = _Descent(q, constraint, M, size, tol, self.accelerated)
        for _ in range(max_iter):
            if not run.step():
                break
        return run.result()

    def _by_row(self, q: Quadratic, constraint: Constraint) -> bool:
        """Whether each row of M is a problem of its own, and columns are not."""
        entries = self.scaled and constraint.separable == "entries"
        return entries and not q.column_separable and q.T.column_separable

    def column_kernel(
        self, A: Array, constraint: Constraint, dtype: np.dtype, max_iter: int, tol: float
    ) -> Descent | None:
        """See `Solver.column_kernel`."""
        own = type(self).solve is not FastProjectedGradient.solve  # a subclass with its own steps
        if own or constraint.separable is None:
            return None
        size = step_sizes(Quadratic.of(A=A.astype(dtype, copy=False)), constraint, self.scaled)
        if size is None:
            return None
        return column_settings(constraint, len(A), dtype, size, max_iter, tol, self.accelerated)


class ProjectedGradient(FastProjectedGradient):
    """Plain projected gradient: M <- P(M - grad f(M) / Lip)."""

    name = "pg"
    accelerated = False


class _Descent:
    """State of one run. Columns that have converged stand still, and leave in groups."""

    def __init__(
        self,
        q: Quadratic,
        constraint: Constraint,
        M: Array,
        size: Array,
        tol: float,
        accelerated: bool,
    ) -> None:
        self.q, self.constraint, self.size, self.tol = q, constraint, size, tol
        self.accelerated = accelerated
        self.by_column = q.column_separable and constraint.separable is not None
        self.M, self.HM = M, q.hessian(M)
        self.Y, self.HY = self.M, self.HM
        self.C = np.broadcast_to(np.asarray(q.C, dtype=M.dtype), M.shape)
        groups = M.shape[1] if self.by_column else 1
        self.alpha = np.full(groups, FIRST_ALPHA, dtype=M.dtype)
        self.moving = np.ones(groups, dtype=bool)  # false once converged: M stays as it is
        self.fresh = np.ones(groups, dtype=bool)  # Y = M: the next step is a plain one
        self.first = np.full(groups, -1.0)  # squared length of the first step
        self.live: NDArray[np.intp] | None = None  # which columns of `out` M holds; None: all
        self.out = M

    def step(self) -> bool:
        """One iteration; false when every column has converged."""
        new = self.constraint.project(self.Y - self.size * (self.HY - self.C))
        Hnew = self.q.hessian(new)
        D, HD = new - self.M, Hnew - self.HM
        change = self._sum((self.HM - self.C + 0.5 * HD) * D)
        length = self._sum(D * D)
        self.first = np.where(self.first < 0, length, self.first)

        better = self.moving & (change <= 0)  # false for NaN too
        small = better & (length <= self.tol**2 * self.first)
        # Only a plain step says whether M has converged: a short extrapolated one is tried again.
        self.moving &= np.where(better, ~(small & self.fresh), ~self.fresh)
        self._advance(new, Hnew, D, HD, better, better & ~small)
        if self.by_column and 2 * np.count_nonzero(self.moving) < len(self.moving):
            self._drop_still_columns()
        return bool(self.moving.any())

    def _advance(
        self, new: Array, Hnew: Array, D: Array, HD: Array, better: Mask, onward: Mask
    ) -> None:
        """Take the steps that are better, and extrapolate those that go onward."""
        if better.all():
            self.M, self.HM = new, Hnew
        else:
            self.M = np.where(better, new, self.M)
            self.HM = np.where(better, Hnew, self.HM)
        if not self.accelerated:
            self.Y, self.HY = self.M, self.HM
            return
        a2 = self.alpha**2
        following = (np.sqrt(a2 * a2 + 4 * a2) - a2) / 2
        beta = np.where(onward, self.alpha * (1 - self.alpha) / (a2 + following), 0)
        beta = beta.astype(new.dtype, copy=False)
        self.alpha = np.where(onward, following, FIRST_ALPHA).astype(new.dtype, copy=False)
        self.Y, self.HY = self.M + beta * D, self.HM + beta * HD
        self.fresh = ~onward

    def _drop_still_columns(self) -> None:
        """Write the columns so far to the result and continue with those that still move."""
        self.out = self.result()
        keep = np.flatnonzero(self.moving)
        self.live = keep if self.live is None else self.live[keep]
        for name in ("M", "HM", "Y", "HY", "C"):
            setattr(self, name, getattr(self, name)[:, keep])
        for name in ("alpha", "moving", "fresh", "first"):
            setattr(self, name, getattr(self, name)[keep])

    def result(self) -> Array:
        """All columns, those that have converged and left included."""
        if self.live is None:
            return self.M
        self.out[:, self.live] = self.M
        return self.out

    def _sum(self, P: Array) -> Array:
        """Sum per column, or over everything where columns are tied together."""
        return P.sum(axis=0) if self.by_column else P.sum(keepdims=True)[0]
