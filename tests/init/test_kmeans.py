"""Starts from centers of clusters, and how closely samples gather around components."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from deepmf import factorize
from deepmf.data.panels import DensePanels
from deepmf.datasets import synthetic
from deepmf.init import StartError, kmeans, nndsvd, snpa
from deepmf.init.nearby import distance_of_samples
from deepmf.metrics import match

RNG = np.random.default_rng(0)
CENTERS = RNG.random((12, 4)) ** 3
LABELS = RNG.integers(4, size=300)
X = CENTERS[:, LABELS] * RNG.uniform(0.5, 2, 300) * (1 + 0.02 * RNG.standard_normal((12, 300)))


def start(X, rank, seed=0):
    return kmeans(DensePanels(np.ascontiguousarray(X)), rank, np.random.default_rng(seed))


def test_clusters_of_any_brightness_are_found():
    W = start(X, 4)
    assert match(CENTERS, W).mean < 1
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), np.sqrt(np.mean(np.sum(X**2, axis=0))))


@pytest.mark.parametrize("rank", [2, 5, 8])
def test_clusters_are_as_tight_as_those_of_scikit_learn(rank):
    data = RNG.random((10, 400)) ** 2
    U = np.linalg.svd(data, full_matrices=False)[0][:, :rank]
    Z = U.T @ data
    Z /= np.linalg.norm(Z, axis=0)
    best = KMeans(rank, n_init=10, random_state=0).fit(Z.T)
    centers = U.T @ start(data, rank)
    nearest = np.argmax(centers.T @ Z / np.linalg.norm(centers, axis=0)[:, None], axis=0)
    means = np.column_stack([Z[:, nearest == k].mean(axis=1) for k in range(rank)])
    assert np.sum((Z - means[:, nearest]) ** 2) < 1.05 * best.inertia_


def test_one_seed_gives_one_answer():
    np.testing.assert_array_equal(start(X, 6, seed=3), start(X, 6, seed=3))


def test_more_clusters_than_features_can_be_found():
    angles = np.linspace(0.1, 1.4, 5)
    corners = np.array([np.cos(angles), np.sin(angles)])
    W = start(np.repeat(corners, 30, axis=1), 5)
    np.testing.assert_allclose(np.sort(np.arctan2(W[1], W[0])), angles, atol=1e-9)


@pytest.mark.parametrize(
    ("data", "rank"),
    [(np.repeat(X[:, :3], 20, axis=1), 4), (np.zeros((3, 9)), 2), (X[:, :3], 4), (-X, 2)],
    ids=["copies", "zeros", "few", "negative"],
)
def test_too_few_clusters_are_refused(data, rank):
    with pytest.raises(StartError, match="k-means"):
        start(data, rank)


def test_the_default_start_does_not_depend_on_the_random_state():
    fits = [factorize(X, 4, random_state=seed, max_iter=3, tol=0) for seed in (None, 1, 2)]
    for f in fits[1:]:
        np.testing.assert_array_equal(f.W[0], fits[0].W[0])


def test_the_default_start_takes_what_has_too_few_clusters():
    f = factorize(np.repeat(X[:, :3], 20, axis=1), 4, random_state=0, max_iter=5, tol=0)
    assert np.isfinite(f.history.objective).all()


def test_distances_of_samples_are_those_of_unit_columns():
    W = nndsvd(DensePanels(X), 4)
    units = [A / np.linalg.norm(A, axis=0) for A in (X, W)]
    distances = np.linalg.norm(units[0][:, :, None] - units[1][:, None, :], axis=0)
    count = X.shape[1] // (4 * W.shape[1])
    expected = np.sort(distances, axis=0)[count - 1].mean()
    assert distance_of_samples(DensePanels(X), W) == pytest.approx(expected)
    assert distance_of_samples(DensePanels(X[:, :9]), W) == 0


@pytest.mark.parametrize(("noise", "kept"), [(0.01, "snpa"), (0.2, "k-means")])
def test_components_beyond_the_features_are_not_outliers_of_noise(noise, kept):
    starts = ["snpa", "k-means"]
    settings = {"recipe": "scene", "allow_negative": True, "random_state": 0, "max_iter": 5}
    fits = [
        factorize(
            synthetic(noise=noise, random_state=seed).X, [6, 3], init=starts, tol=0, **settings
        )
        for seed in range(5)
    ]
    assert np.median([f.starts[0] for f in fits]) == starts.index(kept)


def test_extreme_samples_are_the_start_without_noise():
    scene = synthetic(noise=0.0, random_state=0)
    assert match(scene.W[0], snpa(DensePanels(scene.X), 6)).mean < 1
