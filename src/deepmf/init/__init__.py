"""Starts: one layer's first basis from that layer's data."""

from deepmf.init.base import Start, StartError
from deepmf.init.hierarchical import hierarchical
from deepmf.init.nndsvd import nndsvd
from deepmf.init.random import random
from deepmf.init.snpa import snpa

__all__ = ["Start", "StartError", "hierarchical", "nndsvd", "random", "snpa"]
