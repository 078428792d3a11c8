"""Vertex component analysis (VCA, Nascimento and Bioucas-Dias 2005): extreme columns of X."""

from __future__ import annotations

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels
from deepmf.init.reduced import reduced


def vca(panels: Panels, rank: int, rng: np.random.Generator) -> Array:
    """X_K, where K adds one at a time the column farthest along a random direction.

    ::

        k = argmax_j |<f, y_j>|,   f random and orthogonal to the points chosen so far

    y_j is column j in r - 1 principal directions and one constant: the projection that the paper
    gives for noisy data. The one it gives for little noise magnifies the noise of dark columns.
    """
    data = reduced(panels, rank, "VCA")
    Y = data.points
    basis = data.U @ data.P
    constant = np.eye(rank)[:, rank - 1 :] if rank > 1 else np.zeros((1, 0))
    chosen: list[int] = []
    for _ in range(rank):
        # drawn in the space of the data, where signs of singular vectors do not matter
        draw = rng.standard_normal(panels.shape[0] + 1)
        f = np.append(basis.T @ draw[:-1], draw[-1])
        before = Y[:, chosen] if chosen else constant
        f -= before @ (np.linalg.pinv(before) @ f)
        chosen.append(int(np.argmax(np.abs(f @ Y))))
    return panels.columns(data.index[chosen])
