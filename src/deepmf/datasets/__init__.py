"""Data to try things on: the paper's synthetic set, a simulated scene, loaders of public data."""

from deepmf.data.dataset import Dataset
from deepmf.datasets.own_scene import load_scene
from deepmf.datasets.published import (
    load_cbcl,
    load_jasper,
    load_moffett,
    load_samson,
    load_urban,
)
from deepmf.datasets.scene import simulated_scene
from deepmf.datasets.synthetic import synthetic

__all__ = [
    "Dataset",
    "load_cbcl",
    "load_jasper",
    "load_moffett",
    "load_samson",
    "load_scene",
    "load_urban",
    "simulated_scene",
    "synthetic",
]
