"""Your own solver: exact updates by the active-set method of Lawson and Hanson."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from deepmf import FastProjectedGradient, Nonnegative, Solver, factorize
from deepmf.checks import check_solver
from deepmf.datasets import simulated_scene


class Exact(Solver):
    """min 1/2 <m, A m> - <c, m> over m >= 0 for each column m, as ||R m - R^-T c|| with R'R = A."""

    name = "exact"

    def objection(self, constraint):
        if not isinstance(constraint, Nonnegative):
            return "its active-set method supports nonnegativity only"
        return None

    def solve(self, q, constraint, M, max_iter, tol):
        if q.T.column_separable and not q.column_separable:  # W: the rows are independent
            return self.solve(q.T, constraint, M.T, max_iter, tol).T
        ((A, B),) = q.terms if len(q.terms) == 1 else ((0.0, 1.0),)
        if not q.column_separable or np.ndim(A) == 0 or np.trace(A) == 0:
            return FastProjectedGradient().solve(q, constraint, M, max_iter, tol)
        A = A * B  # B is a multiple of the identity
        R = cholesky(A + 1e-12 * np.trace(A) * np.eye(len(A)))
        targets = solve_triangular(R, np.broadcast_to(q.C, M.shape), trans="T")
        return np.column_stack([nnls(R, t)[0] for t in targets.T]).astype(M.dtype)


check_solver(Exact())

scene = simulated_scene(rows=32, cols=32)
for solver in (Exact(), FastProjectedGradient()):
    f = factorize(scene, ranks=[6, 3], solver=solver, init="snpa", tol=0, max_iter=50)
    print(f"{solver!r}: objective {f.history.objective[-1]:.4f} after 50 sweeps")
