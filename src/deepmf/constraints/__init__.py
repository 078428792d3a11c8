"""Sets the factors must lie in, one idea a file."""

from deepmf.constraints.base import Constraint
from deepmf.constraints.entries import Box, Nonnegative, Unconstrained
from deepmf.constraints.fixed import Fixed
from deepmf.constraints.grouped_sparse import GroupedSparse
from deepmf.constraints.one_parent import OneParent
from deepmf.constraints.simplex import CappedSimplex, Simplex
from deepmf.constraints.transposed import Transposed

__all__ = [
    "Box",
    "CappedSimplex",
    "Constraint",
    "Fixed",
    "GroupedSparse",
    "Nonnegative",
    "OneParent",
    "Simplex",
    "Transposed",
    "Unconstrained",
]
