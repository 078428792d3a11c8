"""Relative residuals, dense and sparse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepmf import factorize
from deepmf.metrics import arrays
from deepmf.plots import relative_residual


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).random((15, 37)) ** 6
    X[X < 0.1] = 0
    return X, factorize(X, [5, 3], max_iter=5, tol=0)


@pytest.mark.parametrize("layer", [1, 2, -1])
def test_it_is_the_formula(table, layer):
    X, f = table
    expected = np.linalg.norm(X - f.reconstruct(layer), axis=0) / np.linalg.norm(X, axis=0)
    np.testing.assert_allclose(relative_residual(f, X, layer), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_is_dense(table, kind):
    X, f = table
    np.testing.assert_allclose(
        relative_residual(f, kind(X), 2), relative_residual(f, X, 2), atol=1e-7
    )


def test_counts_are_no_trouble(table):
    """Squares of small integer types would overflow."""
    X = (200 * table[0]).astype(np.uint8)
    f = factorize(X.astype(float), 3, max_iter=3, tol=0)
    left = np.linalg.norm(X - f.reconstruct(1), axis=0)
    expected = left / np.linalg.norm(X.astype(float), axis=0)
    np.testing.assert_allclose(relative_residual(f, X), expected, rtol=1e-9)
    np.testing.assert_allclose(relative_residual(f, sparse.csc_array(X)), expected, atol=1e-7)


def test_blocks_do_not_matter(table, monkeypatch):
    X, f = table
    whole = relative_residual(f, X)
    monkeypatch.setattr(arrays, "BLOCK", 60)
    np.testing.assert_allclose(relative_residual(f, X), whole, rtol=1e-12)


def test_sparse_data_stay_sparse(table, monkeypatch):
    X, f = table
    for kind in (sparse.csc_array, sparse.csr_array):
        monkeypatch.setattr(kind, "toarray", None)
        monkeypatch.setattr(kind, "todense", None)
    relative_residual(f, sparse.csr_array(X))


def test_exact_fits_are_clipped_at_zero():
    W, H = np.random.default_rng(1).random((6, 2)), np.random.default_rng(2).random((2, 9))
    f = factorize(W @ H, 2, init=([W], [H]), max_iter=1, tol=0)
    values = relative_residual(f, sparse.csc_array(f.W[0] @ f.H[0]))
    assert (values >= 0).all()
    assert values.max() < 1e-6


def test_empty_columns(table):
    X, f = table
    X = X.copy()
    X[:, 4] = 0
    for data in (X, sparse.csc_array(X)):
        assert relative_residual(f, data)[4] == np.inf
    f.H[0][:, 4], kept = 0, f.H[0][:, 4].copy()
    assert relative_residual(f, X)[4] == 0
    f.H[0][:, 4] = kept


def test_single_precision(table):
    X = table[0].astype(np.float32)
    f = factorize(X, 3, max_iter=3, tol=0)
    dense = relative_residual(f, X)
    assert dense.dtype == np.float64
    np.testing.assert_allclose(relative_residual(f, sparse.csr_array(X)), dense, atol=1e-4)


def test_other_data_are_refused(table):
    X, f = table
    with pytest.raises(ValueError, match=r"X has shape \(37, 15\), but .* fitted to 15 x 37"):
        relative_residual(f, X.T)
