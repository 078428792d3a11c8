"""Random starts: reproducible, different, and of the data's size."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf import factorize
from deepmf.data.panels import DensePanels
from deepmf.init import random


def draw(X, rank, seed, width=None):
    return random(DensePanels(X, width), rank, np.random.default_rng(seed))


X = np.random.default_rng(0).random((30, 40))


@pytest.mark.parametrize("rank", [1, 4, 50])
def test_shape_and_sign(rank):
    W = draw(X, rank, 0)
    assert W.shape == (30, rank)
    assert W.dtype == np.float64
    assert np.isfinite(W).all()
    assert W.min() > 0
    assert np.linalg.matrix_rank(W) == min(W.shape)


def test_reproducible_and_different():
    np.testing.assert_array_equal(draw(X, 4, 0), draw(X, 4, 0))
    np.testing.assert_array_equal(draw(X, 4, 0), draw(X, 4, 0, width=7))
    assert np.abs(draw(X, 4, 0) - draw(X, 4, 1)).max() > 1e-2


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_scales_with_the_data(scale):
    ratio = np.linalg.norm(draw(scale * X, 4, 0)) / np.linalg.norm(draw(X, 4, 0))
    assert scale / 100 < ratio < scale * 100


@pytest.mark.parametrize("n", [1, 2, 3])
def test_fewer_columns_than_the_rank(n):
    W = draw(X[:, :n], 5, 0)
    assert np.isfinite(W).all()
    assert W.shape == (30, 5)
    assert np.linalg.norm(W[:, 0] - W[:, 1]) > 0


def test_random_state_of_factorize():
    def fit(seed):
        return factorize(X, [4, 2], init="random", max_iter=1, tol=0, random_state=seed)

    a, b, c = fit(0), fit(0), fit(1)
    for k in range(2):
        np.testing.assert_array_equal(a.W[k], b.W[k])
        np.testing.assert_array_equal(a.H[k], b.H[k])
    assert np.abs(a.W[0] - c.W[0]).max() > 1e-3
    d = fit(np.random.default_rng(0))
    np.testing.assert_array_equal(a.W[0], d.W[0])
