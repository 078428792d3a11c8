"""Defaults that a layer's scale needs, and what is said where a layer went wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from deepmf import (
    L1,
    Fixed,
    GroupedSparse,
    LayerCentric,
    MinVolume,
    Nonnegative,
    Simplex,
    factorize,
)
from deepmf.datasets import simulated_scene
from deepmf.fitting.problem import build_problem

FREE, SCALED = Nonnegative(), Simplex()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [SCALED, SCALED]),
        ({"model": "multilayer"}, [SCALED, SCALED]),
        ({"model": "data-centric"}, [FREE, FREE]),
        ({"ranks": [4]}, [FREE]),
        ({"constraint_W": "nonnegative"}, [FREE, FREE]),
        ({"constraint_W": [GroupedSparse(0.3), None]}, [GroupedSparse(0.3), SCALED]),
        ({"constraint_H": ["simplex", None]}, [FREE, SCALED]),
        ({"regularizer_W": [L1(0.1), None]}, [FREE, SCALED]),
        ({"regularizer_H": L1(0.1)}, [SCALED, SCALED]),
        ({"regularizer_W": MinVolume(1), "model": "data-centric"}, [SCALED, SCALED]),
        ({"solver": "hals"}, [FREE, FREE]),
    ],
    ids=str,
)
def test_the_set_of_a_basis_that_none_was_named_for(settings, expected):
    problem = build_problem(**{"ranks": [4, 2], **settings})
    assert [layer.constraint_W for layer in problem.layers] == expected


def families(seed=0, noise=0.5):
    """Six components in two families, with noise."""
    rng = np.random.default_rng(seed)
    family = rng.gamma(0.3, size=(60, 2))
    W = np.repeat(family, 3, axis=1) + 0.7 * rng.gamma(0.2, size=(60, 6))
    X = W @ rng.dirichlet([0.3] * 6, 300).T
    return np.maximum(X + noise * X.std() * rng.standard_normal(X.shape), 0)


def test_a_first_layer_that_became_a_copy():
    with pytest.warns(
        UserWarning, match=r"copy.*model=\{'name': 'layer-centric', 'lam': 0.1\}, or"
    ):
        factorize(families(), [6, 2], model=LayerCentric(100))


def test_a_layer_that_lost_the_data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 6)) @ rng.standard_normal((6, 200))
    with pytest.warns(UserWarning, match=r"Layer 2 leaves .* model='data-centric'"):
        factorize(X, [5, 2], constraint_W="none", random_state=0)


@pytest.mark.parametrize(
    ("X", "settings"),
    [
        (families(), {}),
        (families(), {"model": "data-centric"}),
        (families(noise=0), {}),
        (simulated_scene(rows=32, cols=32).X, {"ranks": [6, 4, 2], "init": "snpa"}),
        (families(), {"model": LayerCentric(100), "tol": 0, "max_iter": 20}),
    ],
    ids=["noisy", "data-centric", "exact", "scene", "not converged"],
)
def test_nothing_is_said_of_a_good_or_unfinished_fit(X, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        factorize(X, **{"ranks": [6, 2], "tol": 1e-4, **settings})


def test_held_components_keep_their_scale():
    X = families()
    problem = build_problem([6, 2], constraint_W=[Fixed(X[:, :1]), None])
    assert problem.layers[0].constraint_W.inner == FREE
