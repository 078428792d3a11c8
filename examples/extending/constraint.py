"""Your own constraint: at most k nonzero entries per column."""

import numpy as np

from deepmf import Constraint, factorize
from deepmf.checks import check_constraint
from deepmf.datasets import simulated_scene


class AtMost(Constraint):
    """Nonnegative columns with at most k nonzero entries."""

    separable = "columns"
    convex = False
    nonnegative = True

    def __init__(self, k=2):
        self.k = k

    def project(self, M):
        positive = np.maximum(M, 0)
        if self.k < len(M):
            smallest = np.argpartition(positive, -self.k, axis=0)[: -self.k]
            np.put_along_axis(positive, smallest, 0, axis=0)
        return positive


check_constraint(AtMost(2))

scene = simulated_scene(rows=32, cols=32)
f = factorize(scene, ranks=[6, 3], constraint_H=[AtMost(2), None], init="snpa", tol=1e-3)
print("materials per pixel:", np.count_nonzero(f.H[0], axis=0).max())
