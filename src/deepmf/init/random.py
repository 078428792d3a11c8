"""Random starts."""

from __future__ import annotations

import numpy as np

from deepmf.panels.base import Panels
from deepmf.quadratic import Array


def random(panels: Panels, rank: int, rng: np.random.Generator) -> Array:
    """sqrt(mean(x^2) / rank) |N(0, 1)|: positive entries of the data's size."""
    m, n = panels.shape
    scale = np.sqrt(panels.norm2 / (m * n) / rank)
    return scale * np.abs(rng.standard_normal((m, rank)))
