"""Random starts."""

from __future__ import annotations

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels

_MIXED = 5


def random(panels: Panels, rank: int, rng: np.random.Generator) -> Array:
    """Random positive mixtures of a few random columns of X, blurred by a tenth of their size.

    Such a basis has the data's scale and sign pattern, whatever these are.
    """
    m, n = panels.shape
    W = np.empty((m, rank))
    for k in range(rank):
        picked = rng.choice(n, size=min(_MIXED, n), replace=False)
        W[:, k] = panels.columns(picked) @ rng.dirichlet(np.ones(len(picked)))
    blur = 1 + 0.1 * np.abs(rng.standard_normal((m, rank)))
    return W * blur + 1e-3 * np.abs(W).mean() * rng.random((m, rank))
