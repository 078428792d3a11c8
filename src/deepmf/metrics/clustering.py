"""Agreement of codes with classes of the samples."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf.metrics.arrays import Array, real, unit

_STARTS = 10
"""Restarts of k-means."""


class ClusterScores(NamedTuple):
    """Agreement of clusters with classes; 1 is best in all four."""

    nmi: float
    ari: float
    accuracy: float
    purity: float


def cluster_scores(
    codes: ArrayLike,
    labels: ArrayLike,
    by: Literal["argmax", "kmeans"] = "argmax",
    random_state: Any = 0,
) -> ClusterScores:
    """`nmi`, `ari`, `accuracy` and `purity` of the clusters that codes make.

    Parameters
    ----------
    codes : array_like, r x n
        Codes of n samples, as in ``f.codes(layer)``.
    labels : array_like of n
        Classes of the samples, as numbers or names.
    by : {"argmax", "kmeans"}, default "argmax"
        A sample's cluster is the component of its largest code; or codes of norm 1 are clustered
        by k-means into as many clusters as there are classes, the best of 10 starts.
    random_state : None, int or RandomState, default 0
        Draws the starts of k-means.

    Returns
    -------
    ClusterScores
    """
    H, classes = real(codes, "codes"), numbered(labels, "labels")
    if H.ndim != 2 or H.shape[0] == 0 or H.shape[1] != len(classes):
        raise ValueError(
            f"codes have shape {H.shape}, but for {len(classes)} labels they must be a matrix with "
            f"{len(classes)} columns."
        )
    if by == "argmax":
        clusters = np.argmax(H, axis=0)
    elif by == "kmeans":
        clusters = _k_means(H, int(classes.max()) + 1, random_state)
    else:
        raise ValueError(f"by must be 'argmax' or 'kmeans', got {by!r}.")
    return ClusterScores(*(measure(classes, clusters) for measure in (nmi, ari, accuracy, purity)))


def purity(labels: ArrayLike, clusters: ArrayLike) -> float:
    """Share of samples in the largest class of their cluster, ``sum_k max_c n_kc / n``.

    In (0, 1]. It rises with the number of clusters, to 1 where every sample is a cluster.

    Parameters
    ----------
    labels, clusters : array_like of n
        Class and cluster of each sample, as numbers or names.
    """
    counts = _counts(labels, clusters)
    return float(counts.max(axis=0).sum() / counts.sum())


def accuracy(labels: ArrayLike, clusters: ArrayLike) -> float:
    """Share of samples whose cluster is paired with their class, at the best pairing (ACC).

    ``max_p sum_c n_p(c),c / n`` over the one-to-one maps p between classes and clusters (Hungarian
    method). In (0, 1]. Samples of clusters beyond the number of classes count as wrong.

    Parameters
    ----------
    labels, clusters : array_like of n
        Class and cluster of each sample, as numbers or names.
    """
    from scipy.optimize import linear_sum_assignment

    counts = _counts(labels, clusters)
    pairs = linear_sum_assignment(counts, maximize=True)
    return float(counts[pairs].sum() / counts.sum())


def nmi(labels: ArrayLike, clusters: ArrayLike) -> float:
    """Normalized mutual information ``2 I(labels, clusters) / (H(labels) + H(clusters))``.

    In [0, 1]; from scikit-learn.

    Parameters
    ----------
    labels, clusters : array_like of n
        Class and cluster of each sample, as numbers or names.
    """
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(*_both(labels, clusters)))


def ari(labels: ArrayLike, clusters: ArrayLike) -> float:
    """Rand index adjusted for chance: 0 on average for random clusters, at most 1.

    From scikit-learn.

    Parameters
    ----------
    labels, clusters : array_like of n
        Class and cluster of each sample, as numbers or names.
    """
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(*_both(labels, clusters)))


def numbered(labels: ArrayLike, name: str) -> NDArray[np.intp]:
    """Labels as numbers from 0."""
    given = np.asarray(labels)
    if given.ndim != 1 or given.size == 0:
        raise ValueError(
            f"{name} have shape {given.shape}, but they must be a list with one entry per sample."
        )
    known = given.astype(str) if given.dtype == object else given
    return np.asarray(np.unique(known, return_inverse=True)[1], dtype=np.intp)


def contingency(classes: NDArray[np.intp], clusters: NDArray[np.intp], count: int) -> NDArray:
    """Number of samples of each class (rows) in each of ``count`` clusters (columns)."""
    counts = np.zeros((int(classes.max()) + 1, count), dtype=np.intp)
    np.add.at(counts, (classes, clusters), 1)
    return counts


def _both(labels: ArrayLike, clusters: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    a, b = numbered(labels, "labels"), numbered(clusters, "clusters")
    if len(a) != len(b):
        raise ValueError(
            f"{len(a)} labels were given for the clusters of {len(b)} samples; give one for each."
        )
    return a, b


def _counts(labels: ArrayLike, clusters: ArrayLike) -> NDArray:
    a, b = _both(labels, clusters)
    return contingency(a, b, int(b.max()) + 1)


def _k_means(H: Array, count: int, random_state: Any) -> NDArray[np.intp]:
    from sklearn.cluster import KMeans

    found = KMeans(count, n_init=_STARTS, random_state=random_state).fit(unit(H).T)
    return np.asarray(found.labels_, dtype=np.intp)
