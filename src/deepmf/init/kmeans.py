"""Centers of clusters by k-means among singular vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import counted, setting
from deepmf._utils.threads import single_blas
from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels
from deepmf.init.base import StartError

Labels = NDArray[np.intp]

_RESTARTS, _ROUNDS = 4, 100
_LARGEST = 50_000
"""Samples that are clustered; of more, a random choice."""


def kmeans(panels: Panels, rank: int, rng: np.random.Generator) -> Array:
    """Centers of ``rank`` clusters of the samples, which are compared by their angles.

    Samples are projected onto as many leading left singular vectors U, if there are so many, and
    given norm one. The best of a few restarts is kept. The columns of W are U times the centers,
    clipped at zero.
    """
    n = panels.shape[1]
    U, _ = panels.leading(min(rank, *panels.shape))
    Z = panels.dot(U, _some(n, rng) if n > _LARGEST else None)
    norms = np.linalg.norm(Z, axis=0)
    Z = Z[:, norms > 0] / norms[norms > 0]
    if Z.shape[1] < rank:
        raise StartError(
            f"k-means needs as many samples as clusters, but {Z.shape[1]} are not zero where rank "
            f"{rank} was asked for. Lower the rank or use {setting(init='random')}."
        )
    with single_blas():  # sums of several threads would differ in their last bits
        found = [_clusters(Z, rank, rng) for _ in range(_RESTARTS)]
    centers, labels, _ = min(found, key=lambda clusters: clusters[2])
    W = np.maximum(U @ centers, 0)
    reached = np.asarray(W.any(axis=0))
    clusters = len(np.unique(labels[reached[labels]]))
    if clusters < rank:
        raise StartError(
            f"k-means found only {counted(clusters, 'cluster')} with a positive center where rank "
            f"{rank} was asked for. Lower the rank or use {setting(init='random')}."
        )
    return np.sqrt(panels.norm2 / n) * W / np.linalg.norm(W, axis=0)


def _clusters(Z: Array, rank: int, rng: np.random.Generator) -> tuple[Array, Labels, float]:
    """Centers, labels and ``-sum_j <z_j, c> - ||c||^2 / 2`` of the columns z_j, by Lloyd's rounds.

    That sum is half of the squared distances to the centers, up to a constant.
    """
    centers = _spread(Z, rank, rng)
    labels: Labels = np.full(Z.shape[1], -1)
    for _ in range(_ROUNDS):
        nearness = centers.T @ Z - np.sum(centers**2, axis=0)[:, None] / 2
        before, labels = labels, np.argmax(nearness, axis=0)
        if np.array_equal(labels, before):
            break
        counts = np.bincount(labels, minlength=rank)
        sums = np.array([np.bincount(labels, row, rank) for row in Z])
        centers = np.where(counts, sums / np.maximum(counts, 1), centers)
    return centers, labels, -float(np.sum(np.max(nearness, axis=0)))


def _spread(Z: Array, rank: int, rng: np.random.Generator) -> Array:
    """Columns of Z to begin from: of a few that are likely far from those before, the best.

    This is greedy k-means++ (Arthur and Vassilvitskii 2007), with the cosines of unit columns.
    """
    chosen = [int(rng.integers(Z.shape[1]))]
    far = _squares(Z, chosen)[0]
    while len(chosen) < rank:
        reached = np.cumsum(far)
        drawn = np.searchsorted(reached, rng.random(2 + int(np.log(rank))) * reached[-1])
        candidates = np.minimum(drawn, Z.shape[1] - 1)
        left = np.minimum(far, _squares(Z, candidates))
        best = int(np.argmin(left.sum(axis=1)))
        chosen.append(int(candidates[best]))
        far = left[best]
    return Z[:, chosen]


def _squares(Z: Array, chosen: Any) -> Array:
    """Half of the squared distances of the columns of Z to some of them."""
    return np.maximum(1 - Z[:, chosen].T @ Z, 0)


def _some(n: int, rng: np.random.Generator) -> Labels:
    return np.sort(rng.choice(n, _LARGEST, replace=False))
