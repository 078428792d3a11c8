"""scikit-learn's face: rows are samples, and everything scikit-learn does with an estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from deepmf import (
    L1,
    Box,
    DataCentric,
    DeepMF,
    GroupedSparse,
    LayerCentric,
    MinVolume,
    Ridge,
    factorize,
)

MODELS = ["layer-centric", "data-centric", "multilayer", "trigeorgis"]
SHORT = {"max_iter": 5, "tol": 0, "random_state": 0}


@parametrize_with_checks([DeepMF((3, 2), max_iter=50, tol=1e-3), DeepMF(2, model="multilayer")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The first rank")
@pytest.mark.filterwarnings("ignore::deepmf.fitting.diagnostics.FindingsWarning")
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


def samples(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, 4)) @ rng.random((4, 9)) + 0.05 * rng.random((n, 9))


X = samples()
NEW = samples(7, seed=1)


@pytest.fixture(scope="module")
def model():
    return DeepMF((4, 3, 2), **SHORT).fit(X)


# --- what is fitted ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_it_is_factorize_turned(name):
    model = DeepMF((4, 2), model=name, **SHORT).fit(X)
    f = factorize(X.T, [4, 2], model=name, **SHORT)
    for layer in (1, 2):
        np.testing.assert_allclose(model.components(layer), f.basis(layer).T, atol=1e-10)
    np.testing.assert_allclose(model.history_.objective, f.history.objective, rtol=1e-10)
    assert (model.n_iter_, model.stop_reason_) == (f.n_iter, f.stop_reason) == (5, "max_iter")


def test_attributes(model):
    assert model.n_features_in_ == 9
    assert model.components_.shape == (2, 9)
    assert [model.components(layer).shape for layer in (1, 2, 3)] == [(4, 9), (3, 9), (2, 9)]
    assert [model.links(layer).shape for layer in (2, 3)] == [(3, 4), (2, 3)]
    np.testing.assert_array_equal(model.components(-1), model.components_)
    np.testing.assert_array_equal(model.components(-3), model.components(1))


def test_links_are_shares(model):
    for layer in (2, 3):
        links = model.links(layer)
        assert links.min() >= 0
        np.testing.assert_allclose(links.sum(axis=0), 1)


@pytest.mark.parametrize("layer", [1, 2, 3, -1])
def test_reconstruction_error(layer):
    model = DeepMF((4, 3, 2), layer=layer, **SHORT).fit(X)
    f = model.factorization_
    number = layer if layer > 0 else 3
    expected = np.linalg.norm(X.T - f.reconstruct(number))
    assert model.reconstruction_err_ == pytest.approx(expected, rel=1e-6)


def test_parameters_are_not_touched_by_fit():
    settings = {
        "ranks": [4, 2],
        "constraint_W": ["simplex", None],
        "regularizer_W": [MinVolume(0.1), None],
        "model": LayerCentric([3.0]),
    }
    model = DeepMF(**settings, **SHORT)
    before = {k: repr(v) for k, v in model.get_params(deep=False).items()}
    model.fit(X)
    assert model.ranks is settings["ranks"]
    assert {k: repr(v) for k, v in model.get_params(deep=False).items()} == before


def test_a_later_change_of_settings_leaves_the_fit_alone():
    model = DeepMF(3, constraint_H=Box(0, 5), **SHORT).fit(X)
    before = model.transform(X)
    model.set_params(constraint_H__upper=0.01)
    np.testing.assert_array_equal(model.transform(X), before)


def test_fitting_again_replaces_everything():
    model = DeepMF((4, 2), **SHORT).fit(samples(12)[:, :5])
    fresh = DeepMF((4, 2), **SHORT).fit(X)
    np.testing.assert_array_equal(model.fit(X).components_, fresh.components_)
    assert model.n_features_in_ == 9


# --- codes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"layer": 1},
        {"constraint_H": "simplex"},
        {"constraint_W": "none"},
        {"constraint_H": GroupedSparse(0.3)},
        {"regularizer_H": L1(0.1)},
        {"regularizer_W": MinVolume(0.1)},
        {"solver": "mu"},
        {"init": "random"},
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", MODELS)
def test_fit_transform_is_fit_then_transform(name, settings):
    a = DeepMF((4, 2), model=name, **settings, **SHORT).fit_transform(X)
    b = DeepMF((4, 2), model=name, **settings, **SHORT).fit(X).transform(X)
    np.testing.assert_array_equal(a, b)
    assert a.shape == (30, 4 if settings.get("layer") == 1 else 2)
    assert np.isfinite(a).all()


@pytest.mark.parametrize("layer", [1, 2, 3, -1, -2, None])
def test_transform_in_any_layer(model, layer):
    rank = {1: 4, 2: 3, 3: 2, -1: 2, -2: 3, None: 2}[layer]
    codes = model.transform(NEW, layer=layer)
    assert codes.shape == (7, rank)
    assert codes.flags.c_contiguous
    assert codes.min() >= 0


def test_codes_of_deeper_layers_are_lifted(model):
    first = model.transform(NEW, layer=1)
    H = model.factorization_.H
    np.testing.assert_allclose(model.transform(NEW, layer=2), first @ H[1].T, atol=1e-12)
    np.testing.assert_allclose(model.transform(NEW), first @ H[1].T @ H[2].T, atol=1e-12)


@pytest.mark.parametrize("constraint_H", [None, "simplex", "box"], ids=repr)
def test_a_samples_codes_depend_on_it_alone(constraint_H):
    """As `transform` promises, whatever else is coded with it."""
    model = DeepMF((4, 2), constraint_H=constraint_H, layer=1, **SHORT).fit(X)
    alone = np.vstack([model.transform(NEW[[i]]) for i in range(len(NEW))])
    np.testing.assert_allclose(alone, model.transform(NEW), atol=1e-8)


def test_codes_are_optimal():
    """With the components fixed, no projected step improves the layer-centric codes."""
    model = DeepMF((4, 2), layer=1, **SHORT).fit(X)
    codes, W = model.transform(NEW), model.components(1)
    gradient = (codes @ W - NEW) @ W.T
    step = np.linalg.norm(W @ W.T, 2)
    moved = np.maximum(codes - gradient / step, 0)
    np.testing.assert_allclose(moved, codes, atol=1e-5 * codes.max())


def test_inverse_transform(model):
    for layer in (1, 2, 3, None):
        codes = model.transform(NEW, layer=layer)
        back = model.inverse_transform(codes, layer=layer)
        assert back.shape == NEW.shape
        np.testing.assert_allclose(back, codes @ model.components(layer or 3))
    frame = pd.DataFrame(model.transform(NEW))
    np.testing.assert_allclose(model.inverse_transform(frame), back)


def test_inverse_transform_is_close_to_the_data():
    model = DeepMF((4, 2), layer=1, tol=0, max_iter=300).fit(X)
    back = model.inverse_transform(model.transform(X))
    assert np.linalg.norm(back - X) < 0.1 * np.linalg.norm(X)


def test_score_is_minus_the_mean_squared_error(model):
    back = model.inverse_transform(model.transform(NEW))
    assert model.score(NEW) == pytest.approx(-np.mean((NEW - back) ** 2))


def test_zero_samples_among_others_get_zero_codes(model):
    codes = model.transform(np.vstack([NEW[:2], np.zeros((1, 9))]))
    assert np.all(codes[2] == 0)
    assert np.all(model.transform(np.zeros((2, 9))) == 0)


@pytest.mark.parametrize("method", ["transform", "inverse_transform", "score"])
def test_not_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(DeepMF(), method)(X)


def test_nothing_fitted_to_show():
    for method in ("components", "links"):
        with pytest.raises(NotFittedError):
            getattr(DeepMF(), method)(1)
    assert not hasattr(DeepMF(), "components_")


# --- types and chance ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_the_type_is_kept(name, dtype):
    model = DeepMF((4, 2), model=name, **SHORT).fit(X.astype(dtype))
    codes = model.transform(NEW.astype(dtype))
    assert codes.dtype == model.components_.dtype == dtype
    assert model.inverse_transform(codes).dtype == dtype


def test_float32_is_close_to_float64():
    single, double = (DeepMF((4, 2), **SHORT).fit(X.astype(t)) for t in ("f", "d"))
    np.testing.assert_allclose(single.components_, double.components_, atol=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_random_state(name):
    def codes(seed):
        settings = {**SHORT, "random_state": seed, "init": "random", "model": name}
        return DeepMF((4, 2), **settings).fit_transform(X)

    np.testing.assert_array_equal(codes(3), codes(3))
    np.testing.assert_array_equal(codes(np.random.RandomState(3)), codes(np.random.RandomState(3)))
    assert not np.allclose(codes(3), codes(4))


def test_one_sample():
    model = DeepMF(1, **SHORT).fit(X[:1])
    assert model.transform(X[:1]).shape == (1, 1)
    assert model.reconstruction_err_ == pytest.approx(0, abs=1e-5)


# --- the rest of scikit-learn --------------------------------------------------------------------


def test_feature_names():
    model = DeepMF((4, 2), **SHORT).fit(pd.DataFrame(X).rename(columns="band{}".format))
    assert list(model.feature_names_in_) == [f"band{i}" for i in range(9)]
    assert list(model.get_feature_names_out()) == ["deepmf0", "deepmf1"]
    first = DeepMF((4, 2), layer=1, **SHORT).fit(X)
    assert len(first.get_feature_names_out()) == 4


def test_renamed_features_are_refused():
    frame = pd.DataFrame(X).rename(columns="band{}".format)
    model = DeepMF((4, 2), **SHORT).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[frame.columns[::-1]])


def test_set_output():
    frame = pd.DataFrame(X, index=[f"s{i}" for i in range(30)]).rename(columns=str)
    model = DeepMF((4, 2), **SHORT).set_output(transform="pandas")
    codes = model.fit_transform(frame)
    assert isinstance(codes, pd.DataFrame)
    assert list(codes.columns) == ["deepmf0", "deepmf1"]
    assert list(codes.index) == list(frame.index)
    np.testing.assert_allclose(codes, DeepMF((4, 2), **SHORT).fit_transform(X), rtol=1e-9)


def test_set_output_names_the_estimators_own_layer_only():
    model = DeepMF((4, 2), **SHORT).set_output(transform="pandas").fit(X)
    assert model.transform(X, layer=2).shape == (30, 2)
    with pytest.raises(ValueError, match=r"write model\.at_layer\(1\)\.transform\(X\)"):
        model.transform(X, layer=1)


FULL = {
    "ranks": [4, 2],
    "model": LayerCentric(lam=[2.0]),
    "constraint_W": [GroupedSparse(0.3), "simplex"],
    "constraint_H": Box(0, 9),
    "regularizer_H": [L1(0.01), Ridge(0.1)],
    "layer": 1,
}


def test_clone():
    model = DeepMF(**FULL, **SHORT).fit(X)
    copy = clone(model)
    assert not hasattr(copy, "factorization_")
    assert repr(copy.get_params()) == repr(model.get_params())
    assert copy.model is not model.model
    copy.set_params(model__lam=5.0)
    assert model.model.lam == [2.0]
    np.testing.assert_array_equal(clone(model).fit_transform(X), model.transform(X))


def test_pickle():
    model = DeepMF(**FULL, **SHORT).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))
    np.testing.assert_array_equal(again.history_.objective, model.history_.objective)
    assert repr(again.get_params()) == repr(model.get_params())


def test_repr_holds_the_settings():
    text = repr(DeepMF([4, 2], regularizer_W=MinVolume(0.5)))
    assert "ranks=[4, 2]" in text
    assert "weight=0.5" in text


def test_nested_parameters():
    model = DeepMF(model=DataCentric(2.0), regularizer_W=MinVolume(0.5))
    params = model.get_params()
    assert params["model__mu"] == 2.0
    assert params["regularizer_W__weight"] == 0.5
    model.set_params(regularizer_W__delta=1.0, model__mu=3.0)
    assert (model.regularizer_W.delta, model.model.mu) == (1.0, 3.0)
    with pytest.raises(ValueError, match="nosuch"):
        model.set_params(regularizer_W__nosuch=1)
    with pytest.raises(ValueError, match="weight"):
        model.set_params(regularizer_W__weight=-1)


def test_grid_search():
    grid = {"regularizer_W__weight": [1e-3, 1e3], "model__lam": [0.1, 10.0], "layer": [1]}
    search = GridSearchCV(
        DeepMF((4, 2), model=LayerCentric(), regularizer_W=Ridge(), **SHORT), grid, cv=2
    ).fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert len(set(scores)) == 4
    assert search.best_score_ == scores.max() < 0
    assert search.best_estimator_.model.lam == search.best_params_["model__lam"]


def test_in_a_pipeline():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60)
    data = rng.random((60, 6)) + 2 * np.outer(labels, [1, 1, 0, 0, 0, 0])
    pipe = make_pipeline(DeepMF((3, 2), **SHORT), LogisticRegression())
    assert pipe.fit(data, labels).score(data, labels) > 0.9


def test_callbacks_stop_the_fit():
    seen = []

    def stop(progress):
        seen.append(progress.sweep)
        return progress.sweep == 2

    model = DeepMF((4, 2), **{**SHORT, "callbacks": stop}).fit(X)
    assert model.stop_reason_ == "callback"
    assert seen == [1, 2]


def test_many_samples_under_a_constraint_that_ties_them_together():
    """The estimator has no panel_size to ask for, so it must choose one panel by itself."""
    data = samples(4200)
    model = DeepMF(2, constraint_H=GroupedSparse(0.5), **{**SHORT, "max_iter": 1}).fit(data)
    assert model.factorization_.H[0].shape == (2, 4200)


# --- what newcomers try --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fit", "fit_transform", "transform", "score"])
def test_missing_entries_without_weights(method):
    gaps = X.copy()
    gaps[3, 4] = np.nan
    model = DeepMF((4, 2), **SHORT)
    model = model if method.startswith("fit") else model.fit(X)
    with pytest.raises(ValueError, match=r"NaN .* row 3, column 4\..*weights='observed'") as caught:
        getattr(model, method)(gaps)
    assert "\n" not in str(caught.value)


def test_parameters_of_parts_that_are_given_by_name():
    model = DeepMF((4, 2), constraint_W="grouped-sparse", regularizer_H={"name": "l1", "weight": 2})
    copy = clone(model).set_params(model__lam=0.5, constraint_W__sparsity=0.7)
    assert copy.model == LayerCentric(0.5)
    assert copy.constraint_W == GroupedSparse(0.7)
    assert model.model is None
    copy.set_params(model="data-centric", model__mu=3.0, regularizer_H__relative=False)
    assert copy.model == DataCentric(3.0)
    assert copy.regularizer_H == L1(2, relative=False)
    assert repr(clone(copy).get_params()) == repr(copy.get_params())
    with pytest.raises(ValueError, match=r"'data-centric' does not take \['lam'\].*: mu"):
        copy.set_params(model="data-centric", model__lam=1)
    with pytest.raises(ValueError, match=r"is None; name one first, .*_W='min-volume'"):
        copy.set_params(regularizer_W__weight=1)
    with pytest.raises(ValueError, match="is None; name one first, such as constraint_H='box'"):
        copy.set_params(constraint_H__upper=1)
    copy.set_params(regularizer_W=["ridge", None])
    with pytest.raises(ValueError, match="whole list instead of regularizer_W__weight"):
        copy.set_params(regularizer_W__weight=1)
    search = GridSearchCV(DeepMF(2, **SHORT), {"regularizer_W__weight": [1, 2]}, cv=2)
    with pytest.raises(ValueError, match="is None; name one first"):
        search.fit(X)


def test_parts_that_are_not_given_are_those_of_the_recipe():
    topics = DeepMF(recipe="topics").set_params(model__mu=0.5)
    assert topics.model.spec() == {"name": "data-centric", "mu": 0.5}
    scene = DeepMF().set_params(recipe="scene", regularizer_W__weight=2)
    assert scene.regularizer_W.spec() == MinVolume(2).spec()


def test_grid_search_over_parts_that_are_given_by_name():
    search = GridSearchCV(DeepMF([4, 2], layer=1, **SHORT), {"model__lam": [0.1, 100.0]}, cv=2)
    scores = search.fit(X).cv_results_["mean_test_score"]
    assert scores[0] > scores[1]
    assert search.best_estimator_.model == LayerCentric(0.1)


def test_another_layer_of_the_same_fit():
    model = DeepMF((4, 2), **SHORT).set_output(transform="pandas").fit(X)
    first = model.at_layer(1)
    codes = first.transform(NEW)
    assert codes.columns.tolist() == [f"deepmf{k}" for k in range(4)]
    assert first.factorization_ is model.factorization_
    np.testing.assert_array_equal(first.components_, model.components(1))
    expected = DeepMF((4, 2), layer=1, **SHORT).fit(X)
    np.testing.assert_array_equal(codes, expected.transform(NEW))
    assert first.reconstruction_err_ == expected.reconstruction_err_
    first.set_output(transform="default")
    assert model.transform(NEW).columns.tolist() == ["deepmf0", "deepmf1"]
    with pytest.raises(NotFittedError):
        DeepMF().at_layer(1)


def test_links_are_those_of_the_last_layer_by_default(model):
    np.testing.assert_array_equal(model.links(), model.links(3))
    np.testing.assert_array_equal(model.factorization_.links(), model.links(3))


def test_new_samples_below_zero_in_a_pipeline():
    pipe = make_pipeline(MinMaxScaler(), DeepMF((4, 2), **SHORT)).fit(X)
    with pytest.raises(ValueError, match=r"Negative values in data.*MinMaxScaler\(clip=True\)"):
        pipe.transform(X - 0.01)
    clipped = make_pipeline(MinMaxScaler(clip=True), DeepMF((4, 2), **SHORT)).fit(X)
    assert clipped.transform(X - 0.01).shape == (30, 2)
    with pytest.raises(ValueError, match="constraint_W='none'"):
        DeepMF((4, 2)).fit(X - 1)


@pytest.mark.parametrize("name", ["init", "callbacks", "hierarchy"])
def test_a_part_of_what_has_no_parts_is_refused(name):
    with pytest.raises(ValueError, match=f"Invalid parameter 'x' for {name}, .* set {name} itself"):
        DeepMF().set_params(**{f"{name}__x": 1})
    with pytest.raises(ValueError, match="Invalid parameter 'nosuch' for estimator DeepMF"):
        DeepMF().set_params(nosuch__x=1)
