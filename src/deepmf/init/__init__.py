"""Starts: one layer's first basis from that layer's data."""

from deepmf.init.base import Start, StartError
from deepmf.init.hierarchical import hierarchical
from deepmf.init.kmeans import kmeans
from deepmf.init.merged import merged
from deepmf.init.mv_dual import mv_dual
from deepmf.init.nfindr import nfindr
from deepmf.init.nndsvd import nndsvd
from deepmf.init.random import random
from deepmf.init.snpa import snpa
from deepmf.init.vca import vca

__all__ = [
    "Start",
    "StartError",
    "hierarchical",
    "kmeans",
    "merged",
    "mv_dual",
    "nfindr",
    "nndsvd",
    "random",
    "snpa",
    "vca",
]
