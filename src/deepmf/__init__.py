"""Deep matrix factorization: hierarchies of layers with one consistent loss."""

from typing import TYPE_CHECKING, Any

from deepmf._factorize import factorize
from deepmf._utils.version import __version__ as __version__
from deepmf.constraints import (
    Box,
    CappedSimplex,
    Constraint,
    Fixed,
    GroupedSparse,
    Nonnegative,
    OneParent,
    Simplex,
    Unconstrained,
)
from deepmf.core.quadratic import Quadratic
from deepmf.factorization import Factorization
from deepmf.fitting.checkpoint import Checkpoint
from deepmf.losses import DataCentric, LayerCentric, Loss, Multilayer, Trigeorgis
from deepmf.regularizers import L1, MinVolume, Regularizer, Ridge
from deepmf.selection.scan import Scan, scan
from deepmf.solvers import HALS, FastProjectedGradient, Multiplicative, ProjectedGradient, Solver

if TYPE_CHECKING:
    from deepmf.estimator import DeepMF

__all__ = [
    "HALS",
    "L1",
    "Box",
    "CappedSimplex",
    "Checkpoint",
    "Constraint",
    "DataCentric",
    "DeepMF",
    "Factorization",
    "FastProjectedGradient",
    "Fixed",
    "GroupedSparse",
    "LayerCentric",
    "Loss",
    "MinVolume",
    "Multilayer",
    "Multiplicative",
    "Nonnegative",
    "OneParent",
    "ProjectedGradient",
    "Quadratic",
    "Regularizer",
    "Ridge",
    "Scan",
    "Simplex",
    "Solver",
    "Trigeorgis",
    "Unconstrained",
    "factorize",
    "scan",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    # scikit-learn imports more slowly than all of deepmf: load it when the estimator is wanted.
    if name == "DeepMF":
        from deepmf.estimator import DeepMF

        return DeepMF
    raise AttributeError(f"module 'deepmf' has no attribute {name!r}")
