"""Several starts: the lowest objective under common weights."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf import MinVolume, factorize
from deepmf.datasets import simulated_scene
from deepmf.init import StartError

SCENE = simulated_scene(rows=32, cols=32, bands=30)
SETTINGS = {"max_iter": 15, "tol": 0, "random_state": 0}
NAMES = ["random", "snpa", "hierarchical"]
models = pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer"])


def objectives(rows, layer):
    """The last objective of each start's stages: those without penalties measured by it first."""
    return [p.objective for p in rows if (p.layer, p.sweep) == (layer, SETTINGS["max_iter"])]


@models
@pytest.mark.parametrize("penalty", [None, MinVolume(0.1)], ids=repr)
def test_each_layer_keeps_the_start_whose_fit_alone_has_the_lowest_objective(model, penalty):
    rows = []
    f = factorize(
        SCENE.X,
        [6, 3],
        model=model,
        init=NAMES,
        regularizer_W=penalty,
        callbacks=rows.append,
        **SETTINGS,
    )
    for k, layer in enumerate((1, 2)):
        values = objectives(rows, layer)
        assert len(values) == (6 if penalty else 3)
        assert f.starts[k] == np.argmin(values[-3:])
    assert len({tuple(f.starts)} | {(0, 0)}) == 2  # the first is not the best


@models
def test_the_start_that_is_kept_leads_where_it_leads_alone(model):
    """Starts compared with it leave no trace: not their codes, and not their random numbers."""
    several = factorize(SCENE.X, [6, 3], model=model, init=NAMES, **SETTINGS)
    assert several.starts == [1, 1]
    alone = factorize(SCENE.X, [6, 3], model=model, init=NAMES[1], **SETTINGS)
    for a, b in zip([*several.W, *several.H, several.weights], [*alone.W, *alone.H, alone.weights]):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(several.history.objective, alone.history.objective)


def test_all_starts_have_the_penalties_of_the_best_fit_without_them():
    """So that their objectives compare: those of the best are the same as without the others."""
    settings = {**SETTINGS, "regularizer_W": MinVolume(0.1), "model": "multilayer"}
    several, alone = [], []
    f = factorize(SCENE.X, [6, 3], init=NAMES, callbacks=several.append, **settings)
    g = factorize(SCENE.X, [6, 3], init=NAMES[1], callbacks=alone.append, **settings)
    plain = objectives(several, 1)[:3]
    assert np.argmin(plain) == 1
    assert objectives(several, 1)[4] == objectives(alone, 1)[1]
    weights = [factor.problem.layers[0].regularizer_W.weight for factor in (f, g)]
    assert weights == [0.1, 0.1]  # results name the settings, not what was measured
    np.testing.assert_array_equal(f.W[0], g.W[0])


def test_codes_and_components_belong_together():
    f = factorize(SCENE.X, [6, 3], init=["snpa", "random"], **SETTINGS)
    assert f.starts[0] == 0  # the random start, fitted last, is worse: its codes must not stay
    error = np.sum((SCENE.X - f.W[0] @ f.H[0]) ** 2) / np.sum(SCENE.X**2)
    assert error == pytest.approx(f.history.data_errors[-1, 0], rel=1e-6)


def test_a_start_that_cannot_be_made_is_passed_over():
    few = np.repeat(np.random.default_rng(0).random((8, 3)), 5, axis=1)
    f = factorize(few, 4, init=["snpa", "random"], max_iter=5, tol=0, random_state=0)
    assert f.starts == [1]
    with pytest.raises(StartError, match="found only 3 vertices"):
        factorize(few, 4, init=["snpa", "snpa"], max_iter=5, tol=0)


def test_an_unknown_name_among_several_is_said():
    with pytest.raises(ValueError, match=r"'nosuch'.*'snpa'"):
        factorize(SCENE.X, 3, init=["snpa", "nosuch"])
    for init in (["snpa", None], [None, None], ["snpa", SCENE.X]):
        with pytest.raises(
            ValueError, match=r"Unknown init 'list': expected one of 'default', 'snpa'.*pair"
        ):
            factorize(SCENE.X, 3, init=init)


def test_time_is_shared_by_all_starts():
    rows = []
    f = factorize(
        SCENE.X,
        [6, 3],
        init=["snpa", "random"],
        max_time=0,
        tol=0,
        random_state=0,
        callbacks=rows.append,
    )
    assert (f.starts, f.stop_reason, f.n_iter) == ([0, 0], "max_time", 0)
    assert [(p.layer, p.sweep) for p in rows] == [(1, 1)]


@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
def test_merged_components_do_not_depend_on_units(scale):
    f = factorize(scale * SCENE.X, [6, 3], init=["snpa", "merged"], **SETTINGS)
    g = factorize(SCENE.X, [6, 3], init=["snpa", "merged"], **SETTINGS)
    assert f.starts == g.starts
    np.testing.assert_allclose(f.reconstruct(2) / scale, g.reconstruct(2), atol=1e-6)


def test_components_are_merged_only_into_fewer():
    with pytest.warns(UserWarning, match="increase"):
        f = factorize(SCENE.X, [3, 5], init=["nndsvd", "merged"], **SETTINGS)
    assert f.starts == [0, 0]


RECIPES = pytest.mark.parametrize("recipe", ["scene", "topics", "cells", "images"])
FEW = {
    "few samples": np.random.default_rng(1).random((20, 3)),
    "few distinct samples": np.repeat(np.random.default_rng(1).random((20, 3)), 5, axis=1),
}
few = pytest.mark.parametrize("X", FEW.values(), ids=FEW)


@pytest.mark.filterwarnings("ignore::UserWarning")
@few
@RECIPES
def test_a_recipe_falls_back_on_the_default_start_where_its_own_fail(recipe, X):
    f = factorize(X, [4, 2], recipe=recipe, random_state=0)
    assert f.starts[0] == (3 if recipe == "scene" else 1)
    assert f.history.data_errors[-1, 0] < 0.1


@pytest.mark.filterwarnings("ignore:The first rank")
@few
def test_a_start_that_the_user_names_raises_with_what_each_one_says(X):
    with pytest.raises(StartError, match=r"k-means needs|k-means found"):
        factorize(X, 4, recipe="images", init="k-means")
    with pytest.raises(StartError, match=r"SNPA found only 3 vertices.* MV-Dual can find at most"):
        factorize(X, 4, recipe="scene", init=["snpa", "mv-dual"])


@pytest.mark.parametrize("constraint_W", [None, "none"])
def test_the_default_is_left_out_where_another_start_works(constraint_W):
    settings = {**SETTINGS, "model": "data-centric", "constraint_W": constraint_W}
    f = factorize(SCENE.X, [4, 2], init=["snpa", "default"], **settings)
    alone = factorize(SCENE.X, [4, 2], init="snpa", **settings)
    assert f.starts == [0, 0]
    np.testing.assert_array_equal(f.W[0], alone.W[0])
    named, default = (factorize(SCENE.X, [4, 2], init=i, **settings) for i in ("default", None))
    np.testing.assert_array_equal(named.W[0], default.W[0])


@pytest.mark.parametrize("init", [[], ()])
def test_an_empty_list_of_starts_gets_a_sentence(init):
    with pytest.raises(ValueError, match=r"init is empty: name one .*\['snpa', 'k-means'\], or"):
        factorize(SCENE.X, 3, init=init)
