"""Columns that no start should believe."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepmf.data.panels import DensePanels, as_panels
from deepmf.init import hierarchical, mv_dual, nfindr, snpa, vca
from deepmf.init import outliers as module
from deepmf.init.outliers import usual_columns

rng = np.random.default_rng(0)
VERTICES = rng.random((20, 4))
CODES = rng.dirichlet(np.full(4, 0.5), 400).T
CODES[:, :4] = np.eye(4)
CLEAN = VERTICES @ CODES

DAMAGE = {
    "a random direction": {7: 1e3 * rng.standard_normal(20)},
    "a hot entry": {7: CLEAN[:, 7] + 100 * np.eye(20)[3]},
    "too bright": {7: 1e3 * CLEAN[:, 7]},
    "three of them": {k: 10.0**k * rng.random(20) for k in (1, 2, 3)},
}


def damaged(what):
    X = CLEAN.copy()
    for j, x in DAMAGE[what].items():
        X[:, j] = x
    return X


def brute(X):
    """The definition, over all pairs."""
    norms = np.linalg.norm(X, axis=0)
    q = np.sort(norms)[::-1][np.count_nonzero(norms) // 100]
    usual = norms > 0
    for j in np.flatnonzero(norms > 3 * q):
        apart = np.linalg.norm(X - X[:, [j]], axis=0)
        usual[j] = (np.delete(apart, j) <= norms[j] / 2).any()
    return usual


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("start", [snpa, vca, nfindr, mv_dual, hierarchical])
@pytest.mark.parametrize("kind", [np.array, sparse.csc_array])
def test_starts_pass_over_outliers(start, what, kind):
    X = damaged(what)
    bad = list(DAMAGE[what])
    found = start(as_panels(kind(X)), 4, np.random.default_rng(0))
    without = start(as_panels(np.delete(X, bad, axis=1)), 4, np.random.default_rng(0))
    np.testing.assert_allclose(found, without, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("what", DAMAGE)
def test_outliers_alone_are_left_out(what):
    expected = np.ones(400, dtype=bool)
    expected[list(DAMAGE[what])] = False
    np.testing.assert_array_equal(usual_columns(DensePanels(damaged(what))), expected)


@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize("seed", range(4))
def test_the_definition(seed, batch, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", batch)
    g = np.random.default_rng(seed)
    X = g.random((3, 3000)) * (1 + g.pareto(0.8, 3000))
    X[:, 50:60] = 0
    expected = brute(X)
    norms = np.linalg.norm(X, axis=0)
    long = norms > 3 * np.sort(norms)[::-1][29]
    assert (long & expected).any()
    assert (long & ~expected).any()
    np.testing.assert_array_equal(usual_columns(DensePanels(X, 13)), expected)


def test_two_alike_vouch_for_each_other():
    X = CLEAN.copy()
    X[:, 7] = 100 * rng.random(20)
    X[:, 9] = 1.1 * X[:, 7]
    assert usual_columns(DensePanels(X)).all()


def test_few_columns_have_no_outliers():
    X = CLEAN[:, :99].copy()
    X[:, 7] *= 1e3
    assert usual_columns(DensePanels(X)).all()


def test_a_small_bright_material_is_kept():
    X = CLEAN.copy()
    X[:, 7:10] = 20 * np.outer(rng.random(20), [1, 0.8, 0.7])
    assert usual_columns(DensePanels(X)).all()


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**300])
def test_scale_does_not_matter(scale):
    X = damaged("three of them")
    np.testing.assert_array_equal(usual_columns(DensePanels(scale * X)), brute(X))
