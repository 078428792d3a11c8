"""Canonical scales of results whose scales are open."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf import Box, DeepMF, Ridge, factorize
from deepmf.fitting import fit

RNG = np.random.default_rng(0)
X = RNG.random((9, 5)) @ RNG.random((5, 40)) + 0.05 * RNG.random((9, 40))
RANKS = [5, 3, 2]
EQUIVARIANT = {"solver": "hals", "inner_tol": 0, "extrapolate": False, "max_iter": 6, "tol": 0}
"""Coordinate descent, whose steps do not depend on the scales of rows and columns."""

OPEN = [
    {"model": "data-centric"},
    {"model": "trigeorgis"},
    {"model": "data-centric", "hierarchy": "codes"},
]
FIXED = [
    {"model": "layer-centric", "constraint_W": "nonnegative"},
    {"model": "multilayer", "constraint_W": "nonnegative"},
    {"model": "data-centric", "constraint_H": ["capped-simplex", None, None]},
    {"model": "data-centric", "constraint_W": Box(0, 0.9)},
    {"model": "data-centric", "regularizer_H": [None, Ridge(0.1), None]},
]


def given(seed=1, hierarchy="components"):
    rng = np.random.default_rng(seed)
    n = X.shape[1]
    if hierarchy == "codes":
        shapes = zip([9, *RANKS], RANKS)
        return [rng.random(s) for s in shapes], [rng.random((r, n)) for r in RANKS]
    return [rng.random((9, r)) for r in RANKS], [rng.random(s) for s in zip(RANKS, [n, *RANKS])]


def rescaled(Ws, Hs, D):
    """The same products: W_l D_l and D_l^-1 H_l D_{l-1}."""
    above = [np.ones(1), *D]
    return [W * d for W, d in zip(Ws, D)], [H / d[:, None] * a for H, d, a in zip(Hs, D, above)]


def unscaled(monkeypatch, **settings):
    """The fit as it ends, before it is rescaled."""
    with monkeypatch.context() as patched:
        patched.setattr(fit, "rescale", lambda *parts: None)
        return factorize(X, RANKS, **settings)


@pytest.mark.parametrize("settings", OPEN, ids=str)
def test_products_stay_and_components_sum_to_one(settings, monkeypatch):
    settings = {**settings, "random_state": 0, "max_iter": 5, "tol": 0}
    before, f = unscaled(monkeypatch, **settings), factorize(X, RANKS, **settings)
    np.testing.assert_array_equal(f.history.objective, before.history.objective)
    for k in (1, 2, 3):
        np.testing.assert_allclose(f.reconstruct(k), before.reconstruct(k), rtol=1e-10)
        np.testing.assert_allclose(np.sum(f.basis(k), axis=0), 1)
    assert not np.allclose(np.sum(before.basis(1), axis=0), 1)


@pytest.mark.parametrize("settings", FIXED, ids=str)
def test_nothing_changes_where_something_fixes_scales(settings, monkeypatch):
    settings = {**settings, "random_state": 0, "max_iter": 5, "tol": 0}
    before, f = unscaled(monkeypatch, **settings), factorize(X, RANKS, **settings)
    for a, b in zip([*f.W, *f.H], [*before.W, *before.H]):
        np.testing.assert_array_equal(a, b)


def test_signed_components_have_norm_one():
    f = factorize(X - X.mean(), [4], constraint_W="none", constraint_H="none", random_state=0)
    assert (f.W[0] < 0).any()
    np.testing.assert_allclose(np.linalg.norm(f.W[0], axis=0), 1)
    g = factorize(X, [4], model="data-centric", random_state=0)
    np.testing.assert_allclose(g.W[0].sum(axis=0), 1)


def test_components_of_zeros_stay():
    Ws, Hs = [np.c_[X[:, :2], np.zeros(9)]], [RNG.random((3, 40))]
    f = factorize(X, [3], init=(Ws, Hs), max_iter=0, tol=0)
    np.testing.assert_allclose(f.W[0].sum(axis=0), [1, 1, 0])
    np.testing.assert_allclose(f.reconstruct(1), Ws[0] @ Hs[0])


@pytest.mark.parametrize("model", ["data-centric", "trigeorgis"])
def test_results_do_not_depend_on_the_scales_of_the_start(model):
    Ws, Hs = given()
    D = [10 ** RNG.uniform(-1, 1, r) for r in RANKS]
    settings = {"model": model, "max_iter": 0, "tol": 0}
    f = factorize(X, RANKS, init=(Ws, Hs), **settings)
    g = factorize(X, RANKS, init=rescaled(Ws, Hs, D), **settings)
    for a, b in zip([*f.W, *f.H], [*g.W, *g.H]):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    for layer in (2, 3):
        np.testing.assert_allclose(f.links(layer), g.links(layer), atol=1e-8)
    assert f.tree() == g.tree()


def test_nor_do_sweeps_that_follow_it():
    (W, *_), (H, *_) = given()
    d = 10 ** RNG.uniform(-1, 1, RANKS[0])
    f = factorize(X, [RANKS[0]], init=(W, H), **EQUIVARIANT)
    g = factorize(X, [RANKS[0]], init=(W * d, H / d[:, None]), **EQUIVARIANT)
    assert f.history.objective[-1] < 0.9 * f.history.objective[0]
    np.testing.assert_allclose(f.W[0], g.W[0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(f.H[0], g.H[0], rtol=1e-8, atol=1e-10)


def test_codes_do_not_depend_on_the_scales_of_the_start():
    Ws, Hs = given(hierarchy="codes")
    D = [10 ** RNG.uniform(-1, 1, r) for r in RANKS]
    above = [np.ones(9), *D]
    other = (
        [W * d / a[:, None] for W, d, a in zip(Ws, D, above)],
        [H / d[:, None] for H, d in zip(Hs, D)],
    )
    settings = {"hierarchy": "codes", "model": "data-centric", "max_iter": 0, "tol": 0}
    f, g = (factorize(X, RANKS, init=init, **settings) for init in ((Ws, Hs), other))
    for a, b in zip([*f.W, *f.H], [*g.W, *g.H]):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("hierarchy", ["components", "codes"])
@pytest.mark.parametrize("model", ["data-centric", "layer-centric"])
@pytest.mark.filterwarnings("ignore:The fit used all")
def test_fit_and_transform_agree(model, hierarchy):
    """Codes of the training data are those of the fit, in the same scale."""
    settings = {"model": model, "hierarchy": hierarchy, "random_state": 0}
    estimator = DeepMF([3, 2], **settings, max_iter=3000, tol=1e-9)
    fitted = estimator.fit_transform(X.T)
    again = estimator.transform(X.T)
    np.testing.assert_allclose(again, fitted, atol=2e-3 * fitted.max())
    f = estimator.factorization_
    for layer in (1, 2):
        codes = f.codes(layer)
        np.testing.assert_allclose(f.encode(X, layer), codes, atol=5e-3 * codes.max())
