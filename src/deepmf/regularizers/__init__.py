"""Penalties on the factors, each handled through a quadratic that lies above it."""

from deepmf.regularizers.base import Regularizer
from deepmf.regularizers.min_volume import MinVolume
from deepmf.regularizers.norms import L1, Ridge

__all__ = ["L1", "MinVolume", "Regularizer", "Ridge"]
