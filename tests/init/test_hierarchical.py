"""Hierarchical clustering by rank-two NMF."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from deepmf.data.panels import DensePanels, svd
from deepmf.init import StartError, hierarchical
from deepmf.init.hierarchical import _best_threshold, _nnls_two
from deepmf.metrics import mrsa

SIZES = [40, 25, 60, 15, 30]


def clusters(seed=0, noise=0.01, m=20):
    """Well separated directions, with lengths that differ inside every cluster."""
    rng = np.random.default_rng(seed)
    centers = rng.random((m, len(SIZES))) ** 3 + 0.02
    labels = np.repeat(np.arange(len(SIZES)), SIZES)
    rng.shuffle(labels)
    X = centers[:, labels] * rng.uniform(0.7, 1.3, len(labels))
    return np.maximum(X + noise * rng.standard_normal(X.shape), 0), centers, labels


def which(X, W):
    same = np.all(X[:, :, None] == W[:, None, :], axis=0)
    assert same.any(axis=0).all(), "every representative is a column of X"
    return same.argmax(axis=0)


@pytest.mark.parametrize("seed", range(5))
def test_separated_clusters_are_found(seed):
    X, _, labels = clusters(seed)
    W = hierarchical(DensePanels(X), len(SIZES))
    assert W.shape == (20, len(SIZES))
    assert sorted(labels[which(X, W)]) == list(range(len(SIZES)))


@pytest.mark.parametrize("seed", range(10))
def test_many_splits_in_any_order(seed):
    """The leaf to split next is rarely the first of the list."""
    X = np.abs(np.random.default_rng(seed).standard_normal((10, 40)))
    W = hierarchical(DensePanels(X), 8)
    assert len(set(which(X, W))) == 8


@pytest.mark.parametrize("lanczos", [False, True], ids=["gram", "lanczos"])
@pytest.mark.parametrize("width", [None, 13])
def test_the_same_whatever_the_panels(width, lanczos, monkeypatch):
    X, _, _ = clusters()
    expected = hierarchical(DensePanels(X), 5)
    if lanczos:
        monkeypatch.setattr(svd, "_LARGEST_GRAM", 0)
    np.testing.assert_array_equal(hierarchical(DensePanels(X, width), 5), expected)


def test_a_single_cluster_gives_the_column_closest_to_the_first_singular_vector():
    X, _, _ = clusters()
    u = np.abs(np.linalg.svd(X)[0][:, 0])
    closest = min(X.T, key=lambda x: mrsa(x, u))
    np.testing.assert_array_equal(hierarchical(DensePanels(X), 1)[:, 0], closest)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_representative_is_near_its_center(noise):
    X, centers, labels = clusters(3, noise)
    W = hierarchical(DensePanels(X), len(SIZES))
    for w, j in zip(W.T, labels[which(X, W)]):
        assert mrsa(w, centers[:, j]) < 1e-4 + 100 * noise


def test_scale_does_not_matter():
    X, _, _ = clusters()
    expected = hierarchical(DensePanels(X), 5)
    for scale in (2.0**-300, 2.0**300):
        np.testing.assert_array_equal(hierarchical(DensePanels(scale * X), 5), scale * expected)


def test_too_many_clusters_are_refused():
    directions = np.array([[1.0, 0, 1], [0, 1.0, 1], [0.5, 0.5, 0]])
    X = np.repeat(directions, 10, axis=1) * np.tile(np.arange(1.0, 11), 3)
    assert hierarchical(DensePanels(X), 3).shape == (3, 3)
    with pytest.raises(StartError, match=r"only 3 clusters .* rank 4") as caught:
        hierarchical(DensePanels(X), 4)
    assert "Lower the rank to 3" in str(caught.value)


def test_a_single_column_cannot_be_split():
    X = np.arange(1.0, 5)[:, None]
    np.testing.assert_array_equal(hierarchical(DensePanels(X), 1), X)
    with pytest.raises(StartError, match="only 1 cluster"):
        hierarchical(DensePanels(X), 2)


def test_zero_columns_are_no_cluster():
    X, _, labels = clusters()
    padded = np.c_[X, np.zeros((20, 50))]
    W = hierarchical(DensePanels(padded), 5)
    assert sorted(labels[which(X, W)]) == list(range(5))
    two = np.c_[np.tile([[1.0], [0.0]], 9), np.zeros((2, 30)), np.tile([[0.0], [2.0]], 9)]
    np.testing.assert_array_equal(np.sort(hierarchical(DensePanels(two), 2)), [[0, 1], [0, 2]])
    with pytest.raises(StartError, match="only 2 clusters"):
        hierarchical(DensePanels(two), 3)


# --- the pieces ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("draw", ["random", "standard_normal"])
def test_two_variable_nnls(seed, draw):
    rng = np.random.default_rng(seed)
    F = getattr(rng, draw)((6, 2))
    Y = rng.standard_normal((6, 50))
    V = _nnls_two(F.T @ F, F.T @ Y)
    expected = np.column_stack([nnls(F, y)[0] for y in Y.T])
    assert (expected == 0).any()
    assert (expected > 0).all(axis=0).any()
    np.testing.assert_allclose(V, expected, atol=1e-10)


@pytest.mark.parametrize("F", [np.ones((4, 2)), np.c_[np.ones(4), np.zeros(4)], np.zeros((4, 2))])
def test_two_variable_nnls_with_dependent_columns(F):
    Y = np.random.default_rng(0).standard_normal((4, 20))
    V = _nnls_two(F.T @ F, F.T @ Y)
    assert V.min() >= 0
    assert np.isfinite(V).all()
    for v, y in zip(V.T, Y.T):
        best = nnls(F, y)[1] if F.any() else np.linalg.norm(y)
        assert np.linalg.norm(F @ v - y) == pytest.approx(best, abs=1e-10)


def test_threshold_falls_into_the_gap():
    rng = np.random.default_rng(0)
    score = np.concatenate([rng.uniform(0, 0.3, 100), rng.uniform(0.6, 1, 100)])
    assert 0.3 <= _best_threshold(score) <= 0.6


def test_threshold_minimizes_the_criterion_of_section_7():
    score = np.random.default_rng(1).beta(0.5, 0.7, 200)

    def cost(t):
        F = np.mean(score <= t)
        low, high = max(t - 0.05, 0), min(t + 0.05, 1)
        G = np.mean((score >= low) & (score <= high)) / (high - low)
        return np.inf if F in (0, 1) else -np.log(F * (1 - F)) + np.exp(G)

    grid = np.arange(101) / 100
    chosen = _best_threshold(score)
    assert cost(chosen) == pytest.approx(min(cost(t) for t in grid), rel=1e-6)
