"""Scores of clusters against brute force and scikit-learn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.preprocessing import normalize

from deepmf.metrics import accuracy, ari, cluster_scores, nmi, purity

LABELS = np.random.default_rng(0).integers(0, 4, 60)


@pytest.mark.parametrize("count", [2, 4, 6])
def test_scores_are_those_of_brute_force(count):
    """Fewer clusters than classes, as many, and more."""
    rng = np.random.default_rng(count)
    clusters = np.where(rng.random(60) < 0.6, LABELS % count, rng.integers(0, count, 60))
    names = np.array(["a", "b", "c", "d"])[LABELS]
    table = contingency_matrix(LABELS, clusters)
    most = sum(max(table[:, k]) for k in range(count))
    assert purity(names, clusters) == pytest.approx(most / 60)
    padded = np.zeros((6, 6))
    padded[: len(table), :count] = table
    best = max(sum(padded[range(6), p]) for p in permutations(range(6)))
    assert accuracy(names, clusters) == pytest.approx(best / 60)
    assert nmi(names, clusters) == pytest.approx(normalized_mutual_info_score(LABELS, clusters))
    assert ari(names, clusters) == pytest.approx(adjusted_rand_score(LABELS, clusters))


def test_accuracy_pairs_one_to_one_where_purity_does_not():
    labels, clusters = [0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]
    assert purity(labels, clusters) == 1
    assert accuracy(labels, clusters) == pytest.approx(4 / 6)


def test_codes_make_clusters_by_their_largest_entry():
    codes = np.random.default_rng(1).random((5, 60))
    clusters = codes.argmax(axis=0)
    scores = cluster_scores(codes, LABELS.astype(object))
    measures = (nmi, ari, accuracy, purity)
    assert scores == tuple(measure(LABELS, clusters) for measure in measures)


def test_codes_make_clusters_by_k_means_on_their_directions():
    rng = np.random.default_rng(3)
    codes = (np.eye(4, 5)[LABELS] + 0.4 * rng.random((60, 5))).T * rng.uniform(0.1, 10, 60)
    codes[:, 0] = 0
    found = KMeans(4, n_init=10, random_state=5).fit_predict(normalize(codes.T))
    scores = cluster_scores(codes, LABELS, by="kmeans", random_state=5)
    assert scores.nmi == pytest.approx(nmi(LABELS, found))
    assert 0.9 < scores.accuracy < 1  # without unit norms: below 0.7


@pytest.mark.parametrize(
    ("codes", "labels", "by", "message"),
    [
        (np.ones((2, 3)), [0, 1], "argmax", r"codes have shape \(2, 3\).*2 columns"),
        (np.ones((2, 3)), [[0, 1, 1]], "argmax", r"labels have shape \(1, 3\)"),
        (np.ones((2, 3)), [], "argmax", "one entry per sample"),
        (np.ones((2, 3)), [0, 1, 1], "largest", "'argmax' or 'kmeans', got 'largest'"),
    ],
)
def test_what_does_not_fit_is_refused(codes, labels, by, message):
    with pytest.raises(ValueError, match=message):
        cluster_scores(codes, labels, by)


def test_as_many_clusters_as_labels():
    with pytest.raises(ValueError, match="2 labels were given for the clusters of 3 samples"):
        purity([0, 1], [0, 1, 1])
