"""Sets that bound each entry on its own."""

from __future__ import annotations

import math

import numpy as np

from deepmf.constraints.base import Constraint
from deepmf.core.parameters import check_number
from deepmf.core.quadratic import Array


class Unconstrained(Constraint):
    """All matrices: with a nonnegative partner, semi-NMF."""

    name = "none"
    separable = "entries"
    cone = True

    def project(self, M: Array) -> Array:
        """M itself."""
        return M


class Nonnegative(Constraint):
    """{M : M >= 0}."""

    name = "nonnegative"
    separable = "entries"
    cone = True
    nonnegative = True

    def project(self, M: Array) -> Array:
        """max(M, 0)."""
        return np.maximum(M, 0)


class Box(Constraint):
    """{M : lower <= M <= upper}, for example abundances in [0, 1].

    Parameters
    ----------
    lower, upper : float
        Bounds of every entry; either may be infinite.
    """

    name = "box"
    separable = "entries"

    def __init__(self, lower: float = 0.0, upper: float = 1.0) -> None:
        for name, value in (("lower", lower), ("upper", upper)):
            check_number(f"Box's {name}", value, -math.inf)
        if not lower < upper:
            raise ValueError(f"Box needs lower < upper, got lower={lower} and upper={upper}.")
        self.lower = lower
        self.upper = upper
        self.nonnegative = lower >= 0
        self.bounded = math.isfinite(lower) and math.isfinite(upper)

    def project(self, M: Array) -> Array:
        """min(max(M, lower), upper)."""
        return np.clip(M, float(self.lower), float(self.upper))

    def scales(self, M: Array) -> Array | None:
        """Column maxima over the upper bound, where they exceed it."""
        if not 0 < self.upper < math.inf:
            return None
        return np.maximum(M.max(axis=0) / self.upper, 1.0)
