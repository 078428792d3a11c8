"""The fit: why it stops, what it records, and how good it is on known data."""

from __future__ import annotations

import itertools
import os
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from deepmf import (
    L1,
    DataCentric,
    GroupedSparse,
    LayerCentric,
    MinVolume,
    Nonnegative,
    Quadratic,
    Regularizer,
    Ridge,
    factorize,
)
from deepmf.datasets import load_cbcl, simulated_scene, synthetic
from deepmf.fitting import fit
from deepmf.init import StartError
from deepmf.metrics import data_errors, hoyer, layer_errors, match

MODELS = ["layer-centric", "data-centric", "multilayer", "trigeorgis"]
models = pytest.mark.parametrize("model", MODELS)
needs_data = pytest.mark.skipif("DEEPMF_DATA" not in os.environ, reason="DEEPMF_DATA is not set")


def data(m=9, n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((m, 5)) @ rng.random((5, n)) + 0.05 * rng.random((m, n))


def given(X, ranks, seed=1):
    """Random positive factors as a start, with bases on the simplex."""
    rng = np.random.default_rng(seed)
    widths = [X.shape[1], *ranks]
    Ws = [rng.dirichlet(np.ones(len(X)), r).T for r in ranks]
    return Ws, [rng.random((r, widths[k])) for k, r in enumerate(ranks)]


X = data()
SHORT = {"max_iter": 6, "tol": 0}


# --- stopping ------------------------------------------------------------------------------------


@models
def test_stops_by_tol(model):
    f = factorize(X, [4, 2], model=model, tol=1e-2, max_iter=500, extrapolate=False)
    assert f.stop_reason == "tol"
    assert 1 <= f.n_iter < 500
    if model in ("layer-centric", "data-centric"):
        decrease = -np.diff(f.history.objective) / f.history.objective[1:]
        assert decrease[-1] <= 1e-2
        assert (decrease[:-1] > 1e-2).all()


class Constant(Regularizer):
    """Moves nothing and adds a large number to the objective."""

    def value(self, M):
        return 1e5

    def majorize(self, M):
        return Quadratic()


def test_tol_is_measured_against_the_loss_without_the_penalty():
    f = factorize(X, [4], tol=1e-3, max_iter=500)
    g = factorize(X, [4], tol=1e-3, max_iter=500, regularizer_W=Constant(1, relative=False))
    assert g.history.objective[-1] == pytest.approx(1e5 + f.history.objective[-1])
    assert g.n_iter == f.n_iter > 3


@models
def test_max_iter_warns_that_it_has_not_converged(model):
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        f = factorize(X, [4, 2], model=model, tol=1e-12, max_iter=3)
    assert f.stop_reason == "max_iter"
    assert f.n_iter == 3


@models
def test_tol_zero_asks_for_exactly_max_iter(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = factorize(X, [4, 2], model=model, max_iter=7, tol=0)
    assert f.stop_reason == "max_iter"
    assert f.n_iter == 7


@models
def test_max_time(model):
    """One sweep, of the first layer alone, and nothing after it."""
    rows = []
    settings = {"tol": 0, "max_iter": 500, "max_time": 0, "callbacks": rows.append}
    f = factorize(X, [4, 2], model=model, **settings)
    assert f.stop_reason == "max_time"
    assert f.n_iter == (1 if model == "multilayer" else 0)
    assert [(p.layer, p.sweep) for p in rows] == [(1, 1)]
    assert [M.shape for M in [*f.W, *f.H]] == [(9, 4), (9, 2), (4, 40), (2, 4)]
    one = factorize(X, [4], model=model, **settings)
    assert (one.stop_reason, one.n_iter) == ("max_time", 1)


@models
def test_time_that_runs_out_while_all_layers_are_swept(model, monkeypatch):
    def fitted(**more):
        rows, ticks = [], itertools.count()
        monkeypatch.setattr(fit, "clock", lambda: float(next(ticks)))
        f = factorize(X, [4, 2], model=model, tol=0, max_iter=5, callbacks=rows.append, **more)
        return f, rows

    _, rows = fitted()
    third = rows[-3]
    assert third.layer == (2 if model == "multilayer" else None)
    f, rows = fitted(max_time=third.time)
    assert (f.stop_reason, rows[-1].layer, rows[-1].sweep) == ("max_time", third.layer, 3)
    if model != "multilayer":
        assert f.n_iter == 3


@models
@pytest.mark.parametrize("layer", [1, 2, None])
def test_callback(model, layer):
    """It sees every sweep of every stage, and ends the fit wherever it says so."""
    if model == "multilayer" and layer is None:
        layer = 2
    seen = []

    def stop_at_three(progress):
        seen.append(progress)
        return (progress.layer, progress.sweep) == (layer, 3)

    f = factorize(X, [4, 2], model=model, tol=0, max_iter=5, callbacks=stop_at_three)
    assert f.stop_reason == "callback"
    before = {1: [], 2: [1], None: [1, 2]}[layer]
    stages = [*((k, sweep) for k in before for sweep in range(1, 6)), (layer, 1), (layer, 2)]
    assert [(p.layer, p.sweep) for p in seen] == [*stages, (layer, 3)]
    if layer is None:
        assert f.n_iter == 3
        for name in ("layer_errors", "data_errors"):
            np.testing.assert_array_equal(getattr(seen[-1], name), f.history[name][3])
    elif model != "multilayer":
        assert f.n_iter == 0  # none of all layers together


@models
def test_rows_of_a_layer_alone_say_how_near_the_data_it_is(model):
    """Before they are swept together, layers of a joint model are fitted to the data."""
    rows = []
    f = factorize(X, [4, 2], model=model, tol=0, max_iter=4, callbacks=rows.append)
    alone = {k: [p for p in rows if p.layer == k][-1] for k in (1, 2)}
    if model == "multilayer":
        for name in ("layer_errors", "data_errors"):
            np.testing.assert_allclose(getattr(alone[2], name), f.history[name][-1])
        return
    norm2 = np.sum(X**2)
    for k, rank in ((1, 4), (2, 2)):
        flat = factorize(X, [rank], constraint_W=f.problem.layers[k - 1].constraint_W, **SHORT)
        own = factorize(
            X, [rank], constraint_W=f.problem.layers[k - 1].constraint_W, tol=0, max_iter=4
        )
        assert alone[k].objective == pytest.approx(own.history.objective[-1])
        assert alone[k].data_errors[-1] == pytest.approx(2 * alone[k].objective / norm2)
        assert flat.history.objective[-1] < alone[k].objective
    assert np.isnan([alone[2].data_errors[0], *alone[2].layer_errors]).all()


def test_several_callbacks_are_all_called():
    calls = []
    f = factorize(
        X,
        [4],
        tol=0,
        max_iter=50,
        callbacks=[lambda p: calls.append("a") or True, lambda p: calls.append("b")],
    )
    assert calls == ["a", "b"]
    assert f.stop_reason == "callback"


def test_callbacks_without_an_answer_do_not_stop():
    rows = []
    f = factorize(X, [4, 2], callbacks=rows.append, **SHORT)
    assert f.stop_reason == "max_iter"
    together = [p.objective for p in rows if p.layer is None]
    np.testing.assert_array_equal(together, f.history.objective[1:])


def test_multilayer_callbacks_see_each_layer_in_turn():
    rows = []
    factorize(X, [4, 3, 2], model="multilayer", callbacks=rows.append, max_iter=2, tol=0)
    assert [(p.layer, p.sweep) for p in rows] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]
    assert [len(p.layer_errors) for p in rows] == [1, 1, 2, 2, 3, 3]


def test_the_gravest_reason_of_the_layers_is_reported():
    """Layer 1 converges at once from its own optimum; layer 2 runs out of sweeps."""
    best = factorize(X, [4], tol=1e-8, max_iter=5000)
    Ws, Hs = given(X, [4, 2])
    start = ([best.W[0], Ws[1]], [best.H[0], Hs[1]])
    with pytest.warns(ConvergenceWarning):
        f = factorize(X, [4, 2], model="multilayer", init=start, tol=1e-7, max_iter=5)
    assert f.stop_reason == "max_iter"
    with pytest.warns(ConvergenceWarning):
        f = factorize(X, [4, 2], model="multilayer", tol=1e-9, max_iter=2)
    assert f.stop_reason == "max_iter"


# --- history -------------------------------------------------------------------------------------


@models
@pytest.mark.parametrize("ranks", [[4], [5, 3], [5, 3, 2]], ids=str)
@pytest.mark.parametrize("constraint_W", [None, "simplex"])
def test_history_describes_the_factors(model, ranks, constraint_W):
    Ws, Hs = given(X, ranks)
    f = factorize(X, ranks, model=model, init=(Ws, Hs), constraint_W=constraint_W, **SHORT)
    h = f.history
    assert len(h) == f.n_iter + 1 == 7
    assert h.objective.shape == h.time.shape == (7,)
    assert h.layer_errors.shape == h.data_errors.shape == (7, len(ranks))
    assert (np.diff(h.time) >= 0).all()
    reference = [np.linalg.norm(W) for W in Ws[:-1]]
    last_layer = layer_errors(X, f.W, f.H, reference)
    last_data = data_errors(X, f.W, f.H)
    np.testing.assert_allclose(h.data_errors[-1], last_data, rtol=1e-8)
    # a result whose scales are open has canonical ones, which errors between layers depend on
    fixed = 1 if model in ("data-centric", "trigeorgis") and not constraint_W else len(ranks)
    np.testing.assert_allclose(h.layer_errors[-1, :fixed], last_layer[:fixed], rtol=1e-8)
    # row 0 is the start; a layer fitted after another starts from that one's end
    assert h.layer_errors[0, 0] == pytest.approx(layer_errors(X, Ws, Hs)[0])
    if model != "multilayer":
        np.testing.assert_allclose(h.layer_errors[0], layer_errors(X, Ws, Hs, reference))
        np.testing.assert_allclose(h.data_errors[0], data_errors(X, Ws, Hs))


def squared_layers(f):
    above = [X, *f.W]
    return np.array(
        [np.linalg.norm(above[k] - W @ H) ** 2 for k, (W, H) in enumerate(zip(f.W, f.H))]
    )


@models
def test_objective_is_the_models_loss(model):
    f = factorize(X, [5, 3], model=model, init=given(X, [5, 3]), **SHORT)
    against_data = data_errors(X, f.W, f.H) * np.linalg.norm(X) ** 2
    expected = {
        "layer-centric": 0.5 * f.weights @ squared_layers(f),
        "data-centric": 0.5 * f.weights @ against_data,
        "multilayer": 0.5 * squared_layers(f).sum(),
        "trigeorgis": 0.5 * against_data[-1],
    }[model]
    assert f.history.objective[-1] == pytest.approx(expected, rel=1e-9)


def test_objective_holds_the_penalties():
    f = factorize(
        X,
        [5, 3],
        regularizer_W=MinVolume(0.5, scale="absolute"),
        regularizer_H=Ridge(0.1, False),
        **SHORT,
    )
    volume = [0.5 * np.log(np.linalg.det(W.T @ W + 0.1 * np.eye(W.shape[1]))) for W in f.W]
    ridge = [0.5 * np.linalg.norm(H) ** 2 for H in f.H]
    penalties = 0.5 * np.array(volume) + 0.1 * np.array(ridge)
    expected = f.weights @ (0.5 * squared_layers(f) + penalties)
    assert f.history.objective[-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer"])
@pytest.mark.parametrize("init", ["nndsvd", "random", "snpa", "hierarchical"])
def test_objective_never_increases(model, init):
    f = factorize(X, [5, 3, 2], model=model, init=init, max_iter=40, tol=0, random_state=0)
    objective = f.history.objective
    assert (np.diff(objective) <= 1e-12 * objective[0]).all()
    assert objective[-1] < objective[0]


def test_multilayer_history_keeps_the_last_values_of_a_layer_that_stopped_early():
    rows = []
    Ws, Hs = given(X, [4, 2])
    f = factorize(
        X,
        [4, 2],
        model="multilayer",
        constraint_W="nonnegative",
        init=(Ws, Hs),
        tol=1e-4,
        max_iter=5000,
        callbacks=rows.append,
    )
    sweeps = [sum(p.layer == layer for p in rows) for layer in (1, 2)]
    assert sweeps[0] != sweeps[1]
    assert max(sweeps) == f.n_iter
    h = f.history
    early, stopped = int(np.argmin(sweeps)), min(sweeps)
    assert h.layer_errors[0, early] > h.layer_errors[stopped, early]
    np.testing.assert_array_equal(h.layer_errors[stopped:, early], h.layer_errors[-1, early])
    reference = [np.linalg.norm(Ws[0])]
    np.testing.assert_allclose(h.layer_errors[-1], layer_errors(X, f.W, f.H, reference), rtol=1e-8)
    np.testing.assert_allclose(h.data_errors[-1], data_errors(X, f.W, f.H), rtol=1e-8)


# --- multilayer is layer after layer -------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"constraint_W": "simplex"},
        {"solver": "hals", "regularizer_W": Ridge(0.1)},  # which leaves no scale open
        {"constraint_W": GroupedSparse(0.3)},
        {"regularizer_W": MinVolume(0.1), "init": "snpa"},
        {"regularizer_W": MinVolume(0.1, "paper"), "init": "snpa"},
        {"constraint_W": "nonnegative", "regularizer_H": Ridge(0.1)},
    ],
    ids=str,
)
def test_multilayer_equals_successive_single_layers(settings):
    both = factorize(X, [5, 3], model="multilayer", max_iter=15, tol=0, **settings)
    first = factorize(X, [5], model="multilayer", max_iter=15, tol=0, **settings)
    second = factorize(first.W[0], [3], model="multilayer", max_iter=15, tol=0, **settings)
    for a, b in zip([*both.W, *both.H], [first.W[0], second.W[0], first.H[0], second.H[0]]):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * np.abs(b).max())
    np.testing.assert_allclose(
        both.history.objective, first.history.objective + second.history.objective, rtol=1e-9
    )
    # new data are coded by the problem the first layer solved
    assert both.strength == pytest.approx(first.strength)
    np.testing.assert_allclose(both.encode(X), first.encode(X), atol=1e-8)


@pytest.mark.parametrize("model", MODELS)
def test_one_layer_is_nmf_whatever_the_model(model):
    f = factorize(X, [4], model=model, init=given(X, [4]), extrapolate=False, **SHORT)
    g = factorize(X, 4, init=given(X, [4]), extrapolate=False, **SHORT)
    np.testing.assert_allclose(f.W[0], g.W[0], atol=1e-12)
    np.testing.assert_allclose(f.H[0], g.H[0], atol=1e-12)
    np.testing.assert_array_equal(f.weights, [1])


# --- weights of section 6 ------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [10, 1, [2, 5]])
def test_layer_weights_from_the_starting_errors(lam):
    Ws, Hs = given(X, [5, 3, 2])
    f = factorize(X, [5, 3, 2], model=LayerCentric(lam), init=(Ws, Hs), **SHORT)
    above = [X, *Ws]
    err = np.array([0.5 * np.linalg.norm(above[k] - Ws[k] @ Hs[k]) ** 2 for k in range(3)])
    expected = np.concatenate([[1], np.broadcast_to(lam, 2) * err[0] / err[1:]])
    np.testing.assert_allclose(f.weights, expected, rtol=1e-9)


def test_data_centric_weights_are_used_as_given():
    f = factorize(X, [5, 3, 2], model=DataCentric([0.5, 3]), **SHORT)
    np.testing.assert_array_equal(f.weights, [1, 0.5, 3])


@pytest.mark.parametrize("scale", ["likelihood", "paper", "absolute"])
@pytest.mark.parametrize("model", ["layer-centric", "data-centric"])
def test_volume_weights_from_the_starting_errors(model, scale):
    """A given start is what penalties are measured by: the first objective, written out."""
    Ws, Hs = given(X, [5, 3])
    Ws = [W / W.sum(axis=0) for W in Ws]
    weights = np.array([0.3, 0.7])
    f = factorize(
        X,
        [5, 3],
        model=model,
        init=(Ws, Hs),
        regularizer_W=[MinVolume(w, scale) for w in weights],
        max_iter=0,
        tol=0,
    )
    of_layers = [X - Ws[0] @ Hs[0], Ws[0] - Ws[1] @ Hs[1]]
    of_data = [of_layers[0], X - Ws[1] @ Hs[1] @ Hs[0]]
    residuals = of_layers if model == "layer-centric" else of_data
    err = np.array([0.5 * np.sum(R**2) for R in residuals])
    deltas = np.full(2, 0.1)
    if scale == "likelihood":
        deltas = np.array([0.01 * np.mean(np.sum(W**2, axis=0)) for W in Ws])
    grams = [W.T @ W + delta * np.eye(len(W.T)) for W, delta in zip(Ws, deltas)]
    logdet = np.array([np.linalg.slogdet(gram)[1] for gram in grams])
    kappa = {
        "likelihood": weights * [np.sum(R**2) / dimension(R) for R in residuals],
        "paper": weights * err / np.abs(logdet),
        "absolute": weights,
    }[scale]
    expected = f.weights @ (err + 0.5 * kappa * logdet)
    assert f.history.objective[0] == pytest.approx(expected, rel=1e-9)


def dimension(R):
    """tr(R R')^2 / ||R R'||_F^2 from singular values."""
    squares = np.linalg.svd(R, compute_uv=False) ** 2
    return np.sum(squares) ** 2 / np.sum(squares**2)


@pytest.mark.parametrize("hierarchy", ["components", "codes"])
@models
@pytest.mark.parametrize("penalty", [L1, Ridge])
@pytest.mark.filterwarnings("ignore")
def test_a_relative_penalty_on_codes_shrinks_them(penalty, model, hierarchy):
    noisy, sizes = np.random.default_rng(0).random((20, 60)), []
    for weight in (0, 1, 10):
        f = factorize(
            noisy,
            [4, 2],
            model=model,
            hierarchy=hierarchy,
            constraint_W="simplex",
            regularizer_H=penalty(weight),
        )
        sizes.append(penalty(1.0).value(f.H[0]))
    assert np.all(np.diff(sizes) < 0)
    assert sizes[-1] < 0.5 * sizes[0]


def test_weight_of_a_relative_penalty_does_not_depend_on_units():
    settings = {"regularizer_H": L1(0.3), "init": "random", "random_state": 0, **SHORT}
    f, g = factorize(X, [4], **settings), factorize(1000 * X, [4], **settings)
    np.testing.assert_allclose(g.history.data_errors, f.history.data_errors, rtol=1e-6)


# --- starts --------------------------------------------------------------------------------------


@models
def test_no_sweep_returns_the_given_factors(model):
    Ws, Hs = given(X, [5, 3])
    f = factorize(X, [5, 3], model=model, init=(Ws, Hs), max_iter=0, tol=0)
    for a, b in zip([*f.W, *f.H], [*Ws, *Hs]):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    assert f.n_iter == 0
    assert len(f.history) == 1


def test_given_factors_are_not_modified():
    Ws, Hs = given(X, [5, 3])
    kept = [M.copy() for M in [*Ws, *Hs]]
    factorize(X, [5, 3], init=(Ws, Hs), **SHORT)
    for now, before in zip([*Ws, *Hs], kept):
        np.testing.assert_array_equal(now, before)


def test_given_factors_of_another_type():
    """float32 factors start a float64 fit as the float64 numbers they are."""
    Ws, Hs = ([M.astype(np.float32) for M in Ms] for Ms in given(X, [5, 3]))
    f = factorize(X, [5, 3], init=(Ws, Hs), **SHORT)
    wide = ([M.astype(np.float64) for M in Ms] for Ms in (Ws, Hs))
    g = factorize(X, [5, 3], init=tuple(wide), **SHORT)
    for a, b in zip([*f.W, *f.H], [*g.W, *g.H]):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == np.float64


def test_given_factors_are_checked():
    Ws, Hs = given(X, [5, 3])

    def fit(W=Ws, H=Hs, **settings):
        return factorize(X, [5, 3], init=(W, H), **SHORT, **settings)

    with pytest.raises(ValueError, match=r"1 W for 2 layers"):
        fit(W=Ws[:1])
    with pytest.raises(ValueError, match=r"W of layer 2 has shape \(9, 2\).*expected \(9, 3\)"):
        fit(W=[Ws[0], Ws[1][:, :2]])
    with pytest.raises(ValueError, match=r"H of layer 1 has shape \(5, 39\)"):
        fit(H=[Hs[0][:, 1:], Hs[1]])
    with pytest.raises(ValueError, match=r"W of layer 1.*(NaN|infinite)"):
        fit(W=[np.full((9, 5), np.nan), Ws[1]])
    with pytest.raises(ValueError, match=r"H of layer 2 is not in Nonnegative"):
        fit(H=[Hs[0], -Hs[1]])
    with pytest.raises(ValueError, match=r"W of layer 2 is not in Simplex"):
        fit(W=[Ws[0], -Ws[1]])


def test_given_factors_of_another_scale_are_rescaled():
    """So that all products stay."""
    Ws, Hs = given(X, [5, 3])
    first, second = np.arange(1.0, 6), np.array([0.1, 7.0, 1.0])
    W = [Ws[0] * first, Ws[1] * second]
    H = [Hs[0], Hs[1] / second[:, None]]
    f = factorize(X, [5, 3], init=(W, H), max_iter=0, tol=0)
    np.testing.assert_allclose(f.W[0].sum(axis=0), 1)
    np.testing.assert_allclose(f.W[1].sum(axis=0), 1)
    np.testing.assert_allclose(f.reconstruct(1), W[0] @ H[0])
    np.testing.assert_allclose(f.reconstruct(2), W[1] @ H[1] @ H[0])


@pytest.mark.parametrize("model", ["layer-centric", "data-centric"])
@pytest.mark.parametrize(
    ("W_set", "H_set"),
    [("simplex", None), ("box", "capped-simplex"), (None, "simplex"), (GroupedSparse(0.4), None)],
)
@pytest.mark.parametrize("init", ["snpa", "nndsvd", "random"])
def test_starts_are_feasible(model, W_set, H_set, init):
    f = factorize(
        X, [4, 2], model=model, constraint_W=W_set, constraint_H=H_set, init=init, max_iter=0, tol=0
    )
    for layer, W, H in zip(f.problem.layers, f.W, f.H):
        assert layer.constraint_W.violation(W) <= 1e-8
        assert layer.constraint_H.violation(H) <= 1e-10


def test_simplex_start_is_rescaled_not_flattened():
    """Projecting an unscaled spectrum onto the simplex would destroy its shape."""
    plain = factorize(X, [4], init="snpa", max_iter=0, tol=0).W[0]
    scaled = factorize(X, [4], init="snpa", constraint_W="simplex", max_iter=0, tol=0).W[0]
    np.testing.assert_allclose(scaled, plain / plain.sum(axis=0), atol=1e-12)


def test_codes_of_a_start_are_least_squares():
    from scipy.optimize import nnls

    f = factorize(X, [4], init="snpa", max_iter=0, tol=0)
    best = np.column_stack([nnls(f.W[0], x)[0] for x in X.T])
    error = np.linalg.norm(X - f.W[0] @ f.H[0])
    assert error <= 1.01 * np.linalg.norm(X - f.W[0] @ best)


@pytest.mark.parametrize(
    ("settings", "second"),
    [
        ({}, (9, 40)),  # layers of a joint model are started from the data, each by itself
        ({"model": "data-centric"}, (9, 40)),
        ({"augment": 0}, (9, 4)),
        ({"model": "multilayer"}, (9, 4)),
        ({"hierarchy": "codes"}, (9, 40)),
        ({"hierarchy": "codes", "model": "multilayer"}, (4, 40)),
    ],
    ids=str,
)
def test_a_function_as_start(settings, second):
    seen = []

    def first_columns(panels, rank, rng):
        seen.append((panels.shape, rank, panels.columns(range(rank))))
        return seen[-1][-1]

    plain = {"constraint_W": "nonnegative", "regularizer_H": Ridge(0), "max_iter": 0, "tol": 0}
    f = factorize(X, [4, 2], init=first_columns, **plain, **settings)
    assert [call[:2] for call in seen] == [((9, 40), 4), (second, 2)]
    np.testing.assert_array_equal(f.W[0], X[:, :4])
    if "hierarchy" not in settings:
        np.testing.assert_array_equal(f.W[1], X[:, :2])


@pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer"])
def test_a_start_that_fails_names_the_layer(model):
    def start(panels, r, rng):
        if r == 2:
            raise StartError("NNDSVD cannot.")
        return panels.columns(range(r))

    with pytest.raises(StartError, match=r"^Layer 2: NNDSVD cannot"):
        factorize(X, [4, 2], model=model, init=start)
    with pytest.raises(ValueError, match=r"W of layer 2 has shape \(9, 3\); expected \(9, 2"):
        factorize(X, [3, 2], model=model, init=lambda panels, r, rng: panels.columns(range(3)))


def test_augment():
    """Layer 1 alone for some sweeps, then layer 2 started from that W_1."""
    on_simplex = {"constraint_W": "simplex", "tol": 0}
    alone = factorize(X, [5], model="multilayer", max_iter=10, **on_simplex)
    f = factorize(X, [5, 3], augment=10, max_iter=0, **on_simplex)
    np.testing.assert_allclose(f.W[0], alone.W[0], atol=1e-10)
    np.testing.assert_allclose(f.H[0], alone.H[0], atol=1e-10)
    second = factorize(alone.W[0], [3], model="multilayer", max_iter=10, **on_simplex)
    np.testing.assert_allclose(f.W[1], second.W[0], atol=1e-9)
    assert f.n_iter == 0
    # its sweeps are no sweeps of the fit, but their time counts
    g = factorize(X, [5, 3], augment=10, **SHORT)
    assert g.n_iter == 6
    assert g.history.time[0] > 0


def test_callbacks_see_the_sweeps_of_augmenting():
    rows = []
    factorize(X, [5, 3], augment=4, max_iter=2, tol=0, callbacks=rows.append)
    alone = [(layer, sweep) for layer in (1, 2) for sweep in (1, 2, 3, 4)]
    assert [(p.layer, p.sweep) for p in rows] == [*alone, (None, 1), (None, 2)]


# --- how good ------------------------------------------------------------------------------------


def compare_with_scikit_learn(data, rank, max_iter):
    rng = np.random.default_rng(0)
    size = 2 * np.sqrt(data.mean() / rank)
    W, H = size * rng.random((len(data), rank)), size * rng.random((rank, data.shape[1]))
    theirs = NMF(rank, init="custom", solver="cd", tol=0, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        codes = theirs.fit_transform(data.T, W=H.T.copy(), H=W.T.copy())
    error = np.linalg.norm(data.T - codes @ theirs.components_) ** 2
    f = factorize(data, [rank], init=([W], [H]), max_iter=max_iter, tol=0)
    ours = f.history.data_errors[-1, 0] * np.linalg.norm(data) ** 2
    assert ours <= error * (1 + 1e-3)


def test_as_good_as_scikit_learn_on_digits():
    compare_with_scikit_learn(load_digits().data.T, 10, 200)


@needs_data
def test_as_good_as_scikit_learn_on_faces():
    compare_with_scikit_learn(load_cbcl().X, 49, 60)


def mean_mrsa(model, seeds=5, sweeps=100):
    out = []
    for seed in range(seeds):
        truth = synthetic(noise=0.01, random_state=seed)
        f = factorize(
            truth.X,
            [6, 3],
            model=model,
            regularizer_W=[MinVolume(1e-3, scale="paper"), MinVolume(1e-2, scale="paper")],
            init="snpa",
            augment=0,
            allow_negative=True,
            max_iter=sweeps,
            tol=0,
        )
        out.append([match(truth.W[k], f.W[k]).mean for k in range(2)])
    return np.mean(out, axis=0)


def test_the_papers_synthetic_data():
    """Section 4.1: LC-DMF finds both layers; Tri-DMF fails at the first."""
    layer_centric, trigeorgis = mean_mrsa("layer-centric"), mean_mrsa("trigeorgis")
    assert layer_centric[0] <= 0.7
    assert layer_centric[1] <= 0.2
    assert trigeorgis[0] >= 3 * layer_centric[0]


@needs_data
@pytest.mark.parametrize("model", ["layer-centric", "data-centric"])
def test_faces_reach_their_sparsities(model):
    faces = load_cbcl().X
    targets = [0.7, 0.8, 0.85]
    f = factorize(
        faces,
        [100, 49, 25],
        model=model,
        constraint_W=[GroupedSparse(s) for s in targets],
        init="snpa",
        max_iter=5,
        tol=0,
    )
    for W, target in zip(f.W, targets):
        assert hoyer(W).mean() >= target - 1e-6
        assert W.min() >= 0
    assert (np.diff(f.history.objective) <= 1e-12 * f.history.objective[0]).all()
    assert f.problem.layers[0].constraint_H == Nonnegative()


def test_history_columns_by_name():
    f = factorize(np.random.default_rng(0).random((6, 12)), [3, 2], max_iter=4, tol=0)
    for name, column in f.history.to_dict().items():
        np.testing.assert_array_equal(f.history[name], column)
        assert len(column) == len(f.history) == 5
    with pytest.raises(KeyError, match="nosuch"):
        f.history["nosuch"]


@pytest.mark.parametrize(("solver", "possible"), [("fpgm", True), ("hals", False), ("mu", False)])
def test_the_simplex_is_advised_only_to_solvers_that_take_it(solver, possible):
    X = np.random.default_rng(0).random((8, 12))
    settings = {"constraint_W": "nonnegative", "max_iter": 2, "tol": 1e-9}
    with pytest.warns(ConvergenceWarning) as caught:
        factorize(X, [4, 2], solver=solver, **settings)
    (said,) = [str(w.message) for w in caught if w.category is ConvergenceWarning]
    assert ("constraint_W='simplex'" in said) == possible


def test_volumes_shrink_until_they_slow_down():
    """Their first sweeps decrease the objective by little, and later ones by more."""
    scene = simulated_scene(random_state=0)
    settings = {"regularizer_W": MinVolume(), "init": "snpa"}
    soon, late = (factorize(scene.X, 6, tol=tol, **settings) for tol in (3e-5, 1e-6))
    objective = late.history.objective
    gap = objective[0] - objective[-1]
    assert soon.history.objective[-1] - objective[-1] < 0.5 * gap


@pytest.mark.filterwarnings("ignore::deepmf.fitting.diagnostics.FindingsWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ranks", [1, [2, 1]], ids=str)
@pytest.mark.parametrize("recipe", [None, "scene", "cells", "images"])
def test_a_fit_of_exact_data_stops_at_the_limit_of_their_digits(dtype, ranks, recipe):
    rng = np.random.default_rng(0)
    one, constant = rng.random((20, 1)), np.full((20, 50), 3.0)
    for X in [constant, one @ rng.random((1, 30)), *([one] if ranks == 1 else [])]:
        f = factorize(X.astype(dtype), ranks, recipe=recipe, random_state=0)
        assert f.stop_reason == "tol"
        assert f.n_iter < 300
