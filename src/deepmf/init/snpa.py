"""Successive nonnegative projection algorithm (SNPA, Gillis 2014): extreme columns of X."""

from __future__ import annotations

import numpy as np

from deepmf.constraints.simplex import CappedSimplex
from deepmf.init.base import StartError
from deepmf.panels.base import Coding, Panels
from deepmf.quadratic import Array
from deepmf.solvers.projected_gradient import FastProjectedGradient

_NEGLIGIBLE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}
"""Squared residual, relative to the largest column, at which no further vertex is left."""

_INNER_ITER = 200
_INNER_TOL = 1e-3


def snpa(panels: Panels, rank: int, rng: np.random.Generator | None = None) -> Array:
    """X_K, where K adds one at a time the column farthest from the hull of those chosen.

    ::

        k = argmax_j min { ||x_j - X_K h||^2 : h >= 0, sum h <= 1 }

    Ties (within 1e-6) go to the column of larger norm. Codes are warm-started and residual norms
    come from Gram matrices, so a step costs two passes over X.
    """
    norms2 = panels.column_norms2()
    residuals2 = norms2
    floor = _NEGLIGIBLE[panels.dtype] * float(norms2.max())
    chosen: list[int] = []
    panels.set_codes(np.zeros((0, panels.shape[1])))
    while True:
        largest = float(residuals2.max())
        if largest <= floor:
            raise StartError(
                f"SNPA found only {len(chosen)} vertices where rank {rank} was asked for: the other "
                f"columns are mixtures of these. Lower the rank to {len(chosen)}, or use "
                f"init='random' or 'nndsvd'."
            )
        ties = np.flatnonzero(residuals2 >= (1 - 1e-6) * largest)
        chosen.append(int(ties[np.argmax(norms2[ties])]))
        W = panels.columns(chosen)
        if len(chosen) == rank:
            return W
        _add_vertex(panels, chosen[-1])
        coding = Coding(W.T @ W, W, CappedSimplex())
        panels.update(coding, FastProjectedGradient(), _INNER_ITER, _INNER_TOL)
        residuals2 = panels.column_residuals2(W)


def _add_vertex(panels: Panels, column: int) -> None:
    """A new row of codes: zero everywhere, and the new vertex coded by itself alone."""
    H = panels.get_codes()
    H = np.vstack([H, np.zeros((1, H.shape[1]), dtype=H.dtype)])
    H[:, column] = 0
    H[-1, column] = 1
    panels.set_codes(H)
