"""The likelihood's volume in whole fits: it knows neither units, nor copies, nor where scale is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from deepmf import MinVolume, factorize
from deepmf.data.panels import DensePanels
from deepmf.fitting.calibration import _unmixed_error
from deepmf.metrics import match

RNG = np.random.default_rng(0)
PURE = RNG.random((12, 4)) ** 3 + 0.01
X = PURE @ RNG.dirichlet(np.full(4, 0.5), 150).T
X += 0.02 * X.max() * RNG.random(X.shape)
SETTINGS = {
    "regularizer_W": MinVolume(3.0), "init": "snpa", "max_iter": 20, "tol": 0,
    "inner_tol": 0, "extrapolate": False,
}  # fmt: skip
MODELS = pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer"])


def fitted(X, model, ranks=(4, 2), **more):
    return factorize(X, list(ranks), model=model, **{**SETTINGS, **more})


def volume_matters(f, model, **more):
    """The penalty moves the components by more than rounding."""
    plain = fitted(X, model, regularizer_W=None, constraint_W="simplex", **more)
    assert match(f.W[0], plain.W[0]).mean > 0.1


@MODELS
@pytest.mark.parametrize("c", [1e-3, 2.0**10, 1e4])
def test_units_of_the_data(model, c):
    f, g = fitted(X, model), fitted(c * X, model)
    for a, b in zip(f.W, g.W):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(c * f.H[0], g.H[0], rtol=1e-5, atol=1e-8 * g.H[0].max())
    np.testing.assert_allclose(f.history.data_errors, g.history.data_errors, rtol=1e-6)
    volume_matters(f, model)


@MODELS
@pytest.mark.parametrize("copies", [2, 5])
def test_bands_that_are_repeated(model, copies):
    f, g = fitted(X, model), fitted(np.tile(X, (copies, 1)), model)
    for a, b in zip(f.W, g.W):
        np.testing.assert_allclose(np.tile(a, (copies, 1)) / copies, b, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(f.history.data_errors, g.history.data_errors, rtol=1e-6)


@pytest.mark.parametrize("c", [1e-3, 1e4])
def test_scale_in_the_components(c):
    """With abundances on the simplex, the components have the data's units."""
    settings = {"ranks": [4], "constraint_H": "simplex", "constraint_W": "nonnegative"}
    f, g = fitted(X, "layer-centric", **settings), fitted(c * X, "layer-centric", **settings)
    np.testing.assert_allclose(c * f.W[0], g.W[0], rtol=1e-5, atol=1e-8 * g.W[0].max())
    np.testing.assert_allclose(f.H[0], g.H[0], rtol=1e-5, atol=1e-8)


def test_scale_on_either_side_finds_the_same_components():
    """Data whose columns have one sum fit both: W's columns on the simplex are H's too."""
    Y = X / X.sum(axis=0)
    on_W = fitted(Y, "layer-centric", [4], max_iter=400)
    on_H = fitted(
        Y, "layer-centric", [4], max_iter=400, constraint_H="simplex", constraint_W="nonnegative"
    )
    assert match(on_W.W[0], on_H.W[0]).mean < 1


def test_a_larger_weight_gives_a_smaller_volume():
    volumes = [
        np.linalg.slogdet(f.W[0].T @ f.W[0])[1]
        for f in (
            fitted(X, "layer-centric", [4], regularizer_W=MinVolume(w)) for w in (0.1, 1.0, 10.0)
        )
    ]
    assert volumes[0] > volumes[1] > volumes[2]


def test_samples_that_are_not_mixed_have_the_error_of_their_nearest_component():
    rng = np.random.default_rng(0)
    data, W = rng.random((3, 40)), rng.standard_normal((3, 5))
    errors = [min(nnls(W[:, [k]], x)[1] ** 2 for k in range(W.shape[1])) for x in data.T]
    assert _unmixed_error(DensePanels(data), W) == pytest.approx(sum(errors))
