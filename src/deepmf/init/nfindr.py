"""N-FINDR (Winter 1999): the columns of X that span the largest simplex."""

from __future__ import annotations

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels
from deepmf.init.reduced import Reduced, reduced

_LARGER = 1 + 1e-9
"""Factor by which a swap must increase the volume."""


def nfindr(panels: Panels, rank: int, rng: np.random.Generator | None = None) -> Array:
    """X_K, where no swap of a single column enlarges the simplex of K in r - 1 dimensions.

    ::

        vol(K with k for its i-th) = |(E^-1 y_k)_i| vol(K),   E = Y_K

    K begins at the columns of the successive projection algorithm, and each vertex in turn is
    swapped for the best column, until no swap helps.
    """
    data = reduced(panels, rank, "N-FINDR")
    return panels.columns(data.index[largest_simplex(data)])


def largest_simplex(data: Reduced) -> list[int]:
    """The vertices, as indices into the usual columns."""
    Y = data.points
    chosen = _successive_projection(Y)
    inverse = np.linalg.inv(Y[:, chosen])
    since = i = 0
    while since < len(chosen):  # swaps enlarge the volume, so that they come to an end
        gains = np.abs(inverse[i] @ Y)
        best = int(np.argmax(gains))
        since += 1
        if gains[best] > _LARGER:
            chosen[i], since = best, 0
            inverse = np.linalg.inv(Y[:, chosen])
        i = (i + 1) % len(chosen)
    return chosen


def _successive_projection(Y: Array) -> list[int]:
    """The longest column, then the longest of the rest after projecting those chosen out."""
    chosen: list[int] = []
    rest = Y.copy()
    for _ in range(len(Y)):
        best = int(np.argmax(np.sum(rest * rest, axis=0)))
        chosen.append(best)
        u = rest[:, best] / np.linalg.norm(rest[:, best])
        rest -= np.outer(u, u @ rest)
    return chosen
