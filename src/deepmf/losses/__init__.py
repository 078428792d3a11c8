"""Models, each a list of terms."""

from deepmf.core.terms import Factor, H, Term, W, X
from deepmf.losses.base import Loss
from deepmf.losses.data_centric import DataCentric
from deepmf.losses.layer_centric import LayerCentric
from deepmf.losses.multilayer import Multilayer
from deepmf.losses.trigeorgis import Trigeorgis

__all__ = [
    "DataCentric",
    "Factor",
    "H",
    "LayerCentric",
    "Loss",
    "Multilayer",
    "Term",
    "Trigeorgis",
    "W",
    "X",
]
