"""Step sizes of gradient methods."""

from __future__ import annotations

import numpy as np

from deepmf.constraints.base import Constraint
from deepmf.core.quadratic import Array, Quadratic


def step_sizes(q: Quadratic, constraint: Constraint, scaled: bool) -> Array | None:
    """Steps under which a gradient step never increases f, broadcastable to M; None: f is linear.

    ::

        plain     1 / Lip,  Lip = lmax(A) lmax(B)
        scaled    1 / (lmax(A~) lmax(B~) A_ii B_kk),  A~_ij = A_ij / sqrt(A_ii A_jj), B~ likewise

    The scaled ones are plain steps in the variables sqrt(A_ii B_kk) M_ik, which do not depend on
    how the data's or the factors' scales are shared out. A set that separates over entries has the
    same projection in both; for other sets, and for several terms, steps are plain.
    """
    if scaled and constraint.separable == "entries" and len(q.terms) == 1:
        tau = q.curvatures()
        size = 1 / tau if tau.min() > 0 else np.full((1, 1), np.inf)
    else:
        lipschitz = q.lipschitz()
        size = np.full((1, 1), 1 / lipschitz if lipschitz > 0 else np.inf)
    return size if 0 < size.max() < np.inf else None
