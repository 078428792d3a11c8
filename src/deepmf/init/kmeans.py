"""Centers of clusters by spherical k-means among singular vectors."""

from __future__ import annotations

import warnings

import numpy as np

from deepmf._utils.messages import setting
from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels
from deepmf.init.base import StartError

_RESTARTS = 4
_LARGEST = 50_000
"""Samples that are clustered; of more, a random choice."""


def kmeans(panels: Panels, rank: int, rng: np.random.Generator) -> Array:
    """Centers of ``rank`` clusters of the samples, which are compared by their angles.

    Samples are projected onto as many leading left singular vectors U, if there are so many, and
    given norm one; k-means there takes a few restarts. The columns of W are U times the centers,
    clipped at zero.
    """
    from sklearn.cluster import KMeans  # late: it loads slowly
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    n = panels.shape[1]
    U, _ = panels.leading(min(rank, *panels.shape))
    Z = panels.dot(U) if n <= _LARGEST else panels.dot(U, _some(n, rng))
    norms = np.linalg.norm(Z, axis=0)
    Z = Z[:, norms > 0] / norms[norms > 0]
    if Z.shape[1] < rank:
        raise StartError(
            f"k-means found only {Z.shape[1]} samples other than zero where rank {rank} was asked "
            f"for. Lower the rank."
        )
    seed = int(rng.integers(2**31))
    with threadpool_limits(1), warnings.catch_warnings():
        # one thread: sums of several would differ in their last bits
        warnings.simplefilter("ignore", ConvergenceWarning)  # too few clusters are counted below
        found = KMeans(rank, n_init=_RESTARTS, random_state=seed).fit(Z.T)
    W = np.maximum(U @ found.cluster_centers_.T, 0)
    sizes = np.linalg.norm(W, axis=0)
    clusters = len(np.unique(found.labels_[sizes[found.labels_] > 0]))
    if clusters < rank:
        raise StartError(
            f"k-means found only {clusters} clusters with a positive center where rank {rank} was "
            f"asked for. Lower the rank or use {setting(init='random')}."
        )
    return np.sqrt(panels.norm2 / n) * W / sizes


def _some(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.choice(n, _LARGEST, replace=False))
