"""The models: what each block update decreases."""

from deepmf.losses.base import Loss
from deepmf.losses.data_centric import DataCentric
from deepmf.losses.layer_centric import LayerCentric
from deepmf.losses.multilayer import Multilayer
from deepmf.losses.trigeorgis import Trigeorgis

__all__ = ["DataCentric", "LayerCentric", "Loss", "Multilayer", "Trigeorgis"]
