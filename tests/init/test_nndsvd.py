"""NNDSVD against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition._nmf import _initialize_nmf

from deepmf.data.panels import DensePanels
from deepmf.init import StartError, nndsvd


def theirs(X, rank):
    return _initialize_nmf(X, rank, init="nndsvd", random_state=0)[0]


def unit(W):
    """Directions: where the scale goes, to W or to H, is each library's own choice."""
    return W / np.linalg.norm(W, axis=0)


@pytest.mark.parametrize("shape", [(12, 15), (15, 12), (12, 40), (5, 3)])
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("width", [None, 4])
def test_scikit_learn_agrees(shape, rank, width):
    X = np.random.default_rng(0).random(shape)
    W = nndsvd(DensePanels(X, width), rank)
    np.testing.assert_allclose(unit(W), unit(theirs(X, rank)), atol=1e-5)


def test_full_rank():
    X = np.random.default_rng(0).random((6, 4))
    np.testing.assert_allclose(unit(nndsvd(DensePanels(X), 4)), unit(theirs(X, 4)), atol=1e-5)


def test_basis_is_nonnegative_and_of_the_datas_scale():
    X = np.random.default_rng(0).random((8, 30))
    W = nndsvd(DensePanels(X), 4)
    assert W.min() >= 0
    assert (np.linalg.norm(W, axis=0) > 0).all()
    np.testing.assert_allclose(nndsvd(DensePanels(100 * X), 4), 100 * W, rtol=1e-8, atol=1e-9)
    assert 0.1 * X.max() < W.max() < 10 * X.max()


def test_columns_have_the_norm_of_a_typical_data_point():
    X = np.random.default_rng(0).random((8, 30))
    norms = np.linalg.norm(nndsvd(DensePanels(X), 4), axis=0)
    np.testing.assert_allclose(norms, np.sqrt(np.mean(np.sum(X**2, axis=0))))


def test_rank_one_data():
    X = np.outer(np.arange(1.0, 5), np.arange(1.0, 7))
    W = nndsvd(DensePanels(X), 3)
    assert np.isfinite(W).all()
    np.testing.assert_allclose(W[:, 0] / W[0, 0], np.arange(1.0, 5))


def test_float32():
    X = np.random.default_rng(0).random((8, 30))
    W = nndsvd(DensePanels(X.astype(np.float32)), 3)
    np.testing.assert_allclose(W, nndsvd(DensePanels(X), 3), atol=1e-4)


@pytest.mark.parametrize("shape", [(4, 9), (9, 4)])
def test_too_large_a_rank_is_refused(shape):
    panels = DensePanels(np.random.default_rng(0).random(shape))
    with pytest.raises(StartError, match=r"at most .* = 4 .* rank 5"):
        nndsvd(panels, 5)
