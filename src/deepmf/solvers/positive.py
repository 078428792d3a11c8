"""Factors without zeros, for updates that keep them: multiplicative ones, and divergences."""

from __future__ import annotations

import numpy as np

from deepmf.constraints import Constraint
from deepmf.core.quadratic import Array

LOWEST = 1e-2
"""Share of the mean that the smallest entry of a start has."""

_LEAST = 0.8
"""Part of a positive entry that an extrapolated step leaves: small ones grow again but slowly."""


def raised(M: Array, constraint: Constraint) -> Array:
    """M without zeros, in a set."""
    return inward(constraint.project(np.maximum(M, LOWEST * np.mean(np.abs(M)))), constraint)


def inward(M: Array, constraint: Constraint) -> Array:
    """A matrix of a set of columns, with these drawn a little toward their means.

    There a projection makes zeros, and on sets of single entries it makes none.
    """
    if constraint.separable != "columns" or not constraint.convex:
        return M
    return M + M.dtype.type(LOWEST) * (M.mean(axis=0) - M)


def positive_ahead(M: Array, before: Array, beta: float, constraint: Constraint) -> Array:
    """M + beta (M - before) in the set, where no entry falls far below that of M.

    Columns of proportions are scaled, as a projection would make zeros.
    """
    ahead = np.maximum(M + M.dtype.type(beta) * (M - before), M.dtype.type(_LEAST) * M)
    scales = constraint.scales(ahead)
    if scales is None:
        return constraint.project(ahead)
    ahead /= scales.astype(M.dtype)
    return ahead if constraint.separable == "columns" else constraint.project(ahead)
