"""Several starts: the lowest objective under common weights."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf import MinVolume, factorize
from deepmf.datasets import simulated_scene
from deepmf.init import StartError

SCENE = simulated_scene(rows=32, cols=32, bands=30)
SETTINGS = {"regularizer_W": MinVolume(1e-2), "max_iter": 15, "tol": 0, "augment": 3}


@pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer"])
def test_the_lowest_objective_under_the_first_starts_weights_is_kept(model):
    names = ["random", "snpa", "hierarchical"]
    several = factorize(SCENE.X, [6, 3], model=model, init=names, random_state=0, **SETTINGS)
    objectives = [
        factorize(
            SCENE.X, [6, 3], model=model, init=["random", name], random_state=0, **SETTINGS
        ).history.objective[-1]
        for name in names[1:]
    ]
    assert several.history.objective[-1] == pytest.approx(min(objectives), rel=1e-9)
    alone = factorize(SCENE.X, [6, 3], model=model, init="random", random_state=0, **SETTINGS)
    assert several.history.objective[-1] <= alone.history.objective[-1]
    np.testing.assert_array_equal(several.weights, alone.weights)


def test_codes_and_components_belong_together():
    f = factorize(SCENE.X, [6, 3], init=["snpa", "random"], random_state=0, **SETTINGS)
    assert f.start == 0  # the random start, fitted last, is worse: its codes must not stay behind
    error = np.sum((SCENE.X - f.W[0] @ f.H[0]) ** 2) / np.sum(SCENE.X**2)
    assert error == pytest.approx(f.history.data_errors[-1, 0], rel=1e-6)


def test_a_start_that_cannot_be_made_is_passed_over():
    few = np.repeat(np.random.default_rng(0).random((8, 3)), 5, axis=1)
    f = factorize(few, 4, init=["snpa", "random"], max_iter=5, tol=0, random_state=0)
    assert f.start == 1
    with pytest.raises(StartError, match="found only 3 vertices"):
        factorize(few, 4, init=["snpa", "snpa"], max_iter=5, tol=0)


def test_an_unknown_name_among_several_is_said():
    with pytest.raises(ValueError, match=r"'nosuch'.*'snpa'"):
        factorize(SCENE.X, 3, init=["snpa", "nosuch"])
    for init in (["snpa", None], [None, None], ["snpa", SCENE.X]):
        with pytest.raises(ValueError, match=r"Unknown init 'list': expected one of 'snpa'.*pair"):
            factorize(SCENE.X, 3, init=init)


def test_time_is_shared_by_all_starts():
    f = factorize(SCENE.X, [6, 3], init=["snpa", "random"], max_time=0, tol=0, random_state=0)
    assert (f.start, f.stop_reason, f.n_iter) == (0, "max_time", 1)
