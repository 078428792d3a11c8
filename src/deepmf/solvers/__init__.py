"""Ways to decrease one block, to be compared on the same quadratics."""

from deepmf.solvers.base import Solver, optimality
from deepmf.solvers.hals import HALS
from deepmf.solvers.multiplicative import Multiplicative
from deepmf.solvers.projected_gradient import FastProjectedGradient, ProjectedGradient

__all__ = [
    "HALS",
    "FastProjectedGradient",
    "Multiplicative",
    "ProjectedGradient",
    "Solver",
    "optimality",
]
