"""Missing entries and weights: only what is observed counts."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf import L1, GroupedSparse, MinVolume, Ridge, factorize
from deepmf.growth import add_layer
from deepmf.losses import DataCentric, LayerCentric
from deepmf.names import resolve_start
from deepmf.observed import Observed
from deepmf.panels import as_panels
from deepmf.problem import build_problem
from deepmf.state import State
from deepmf.sweep import Sweep, squared_errors

RNG = np.random.default_rng(0)
LOW = RNG.random((20, 3)) @ RNG.random((3, 90))
X = LOW + 0.05 * RNG.random(LOW.shape)
GAPS = RNG.random(X.shape) < 0.4
HOLED = np.where(GAPS, np.nan, X)
WEIGHTS = np.where(GAPS, 0.0, RNG.uniform(0.1, 1.0, X.shape))
WEIGHTS.flat[np.argmax(WEIGHTS)] = 1.0  # the largest, so that the objective's scale is that of X
MODELS = [
    {"model": "layer-centric"},
    {"model": DataCentric([0.5, 2.0])},
    {"model": "multilayer"},
    {"model": "trigeorgis"},
    {"constraint_W": "simplex", "regularizer_W": MinVolume(1e-2)},
    {"model": "data-centric", "regularizer_H": [L1(0.1), Ridge(0.1), None]},
    {"constraint_H": ["simplex", None, None]},
    {"constraint_H": [GroupedSparse(0.3), None, None]},
    {"solver": "hals"},
    {"solver": "mu"},
]
CONSISTENT = [s for s in MODELS if s.get("model") != "trigeorgis"]
RANKS = [4, 3, 2]


def fitted(data, ranks=RANKS, **settings):
    return factorize(
        data, ranks, **{"init": "nndsvd", "max_iter": 12, "tol": 0, "random_state": 0} | settings
    )


def weighted_errors(f, V, data=X):
    """sum V (X - W_l H_l...H_1)^2, written out."""
    return np.array([np.sum(V * (data - f.reconstruct(k)) ** 2) for k in range(1, f.depth + 1)])


def assert_same(f, g, tol=1e-10):
    for a, b in zip(f.W + f.H, g.W + g.H):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * np.abs(b).max())
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=tol)


# --- identities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_weights_of_one_are_the_plain_fit(settings):
    ones = np.full(X.shape, 3.0)
    assert_same(fitted(X, weights=ones, **settings), fitted(X, **settings))


@pytest.mark.parametrize("settings", MODELS[:4], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_mask_zero_weights_and_nan_are_the_same(settings, order):
    nan = fitted(np.asarray(HOLED, order=order), weights="observed", **settings)
    mask = fitted(np.asarray(X, order=order), weights=~GAPS, **settings)
    zeros = fitted(np.where(GAPS, 1e6, X), weights=5.0 * ~GAPS, **settings)
    assert_same(mask, nan)
    assert_same(zeros, nan)


@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_what_is_missing_changes_nothing(settings):
    a = fitted(np.where(GAPS, -7.0, X), weights=WEIGHTS, **settings)
    b = fitted(np.where(GAPS, np.inf, X), weights=WEIGHTS, **settings)
    assert_same(a, b, 0)


def test_only_ratios_of_weights_matter():
    a, b = (fitted(X, weights=c * WEIGHTS) for c in (1.0, 64.0))
    assert_same(a, b, 0)
    assert_same(a, fitted(X, weights=1e-200 * WEIGHTS), 1e-9)


@pytest.mark.parametrize("extrapolate", [False, True])
@pytest.mark.parametrize("settings", MODELS[:4], ids=str)
def test_the_history_is_of_the_weighted_errors(settings, extrapolate):
    f = fitted(X, weights=WEIGHTS, extrapolate=extrapolate, **settings)
    errors = weighted_errors(f, WEIGHTS)
    np.testing.assert_allclose(
        f.history.data_errors[-1], errors / np.sum(WEIGHTS * X**2), rtol=1e-10
    )
    if isinstance(settings["model"], DataCentric):
        assert f.history.objective[-1] == pytest.approx(0.5 * errors @ [1, 0.5, 2], rel=1e-10)


def test_the_objective_of_one_layer_is_half_the_weighted_error():
    f = fitted(X, 3, weights=WEIGHTS)
    assert f.history.objective[-1] == pytest.approx(0.5 * weighted_errors(f, WEIGHTS)[0], rel=1e-10)


def test_weights_pull():
    """Where a weight is large the fit is close, and the other way round."""
    heavy = np.ones(X.shape)
    heavy[:, 7] = 1e4
    plain, pulled = (fitted(X, 2, weights=V, max_iter=300) for V in (None, heavy))
    near, far = (np.linalg.norm(X[:, 7] - f.reconstruct(1)[:, 7]) for f in (pulled, plain))
    assert near < 0.5 * far


# --- decrease ------------------------------------------------------------------------------------


@pytest.mark.parametrize("extrapolate", [False, True])
@pytest.mark.parametrize("settings", CONSISTENT, ids=str)
def test_the_objective_never_rises(settings, extrapolate):
    f = fitted(HOLED, weights="observed", extrapolate=extrapolate, max_iter=60, **settings)
    if settings.get("model") == "multilayer":
        errors = f.history.layer_errors[:, 0]
        assert np.all(np.diff(errors[np.isfinite(errors)]) <= 1e-14)
    else:
        steps = np.diff(f.history.objective)
        assert np.all(steps <= 1e-12 * f.history.objective[0])
    assert f.history.objective[-1] < f.history.objective[0]


def filled_loss(sweep, panels, fills):
    """The loss with every data term's X filled as it was at a former point."""
    s, H = sweep.state, panels.get_codes()
    terms = sweep.loss.terms(s, sweep.weights)
    data = sum(0.5 * w * np.sum((F - B @ H) ** 2) for (w, B), F in zip(terms, fills, strict=True))
    deeper = [
        0.5 * sweep.weights[k] * np.sum((s.W[k - 1] - s.W[k] @ s.H[k]) ** 2)
        for k in range(1, s.depth)
    ]
    return data + (0 if sweep.loss.errors == "data" else sum(deeper))


@pytest.mark.parametrize("loss", [LayerCentric(), DataCentric()], ids=str)
def test_every_block_update_decreases_the_filled_loss(loss):
    problem = build_problem(RANKS, loss)
    panels, state = as_panels(Observed(X, WEIGHTS)), State(1.0)
    for _ in RANKS:
        add_layer(panels, state, problem, resolve_start("nndsvd", False), RNG)
    sweep = Sweep(panels, state, problem, loss, [1.0] * 3, range(3), 5, 0.0)

    def fills():
        H = panels.get_codes()
        bases = [B for _, B in loss.terms(state, sweep.weights)]
        return [WEIGHTS * X + (1 - WEIGHTS) * (B @ H) for B in bases]

    for _ in range(10):
        for block in sweep.blocks:
            if block in (("H", 0), ("W", 0)):  # X is filled anew for H_1, and after it
                now = fills()
                true = sweep.objective(squared_errors(panels, state))
                above = true - filled_loss(sweep, panels, now)
            before = filled_loss(sweep, panels, now)
            sweep.update(block)
            after = filled_loss(sweep, panels, now)
            assert after <= before * (1 + 1e-13)
            assert sweep.objective(squared_errors(panels, state)) <= (after + above) * (1 + 1e-13)


# --- what it is for ------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.3, 0.5])
@pytest.mark.parametrize("init", ["nndsvd", "random", "snpa", "hierarchical"])
def test_held_out_entries_of_low_rank_data_are_found(share, init):
    hidden = np.random.default_rng(1).random(LOW.shape) < share
    data = np.where(hidden, np.nan, LOW)
    f = fitted(data, 3, weights="observed", init=init, max_iter=1500)
    error = np.linalg.norm((f.reconstruct(1) - LOW)[hidden]) / np.linalg.norm(LOW[hidden])
    assert error < 1e-2


def test_the_first_of_several_layers_finds_them_too():
    f = fitted(
        np.where(GAPS, np.nan, LOW),
        [3, 2],
        weights="observed",
        max_iter=1500,
        model=LayerCentric(1e-3),
    )
    assert np.linalg.norm((f.reconstruct(1) - LOW)[GAPS]) < 1e-2 * np.linalg.norm(LOW[GAPS])
