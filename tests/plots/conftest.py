"""Small fits of every kind of data: a scene, pictures, a table with names and one without."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from deepmf import L1, factorize
from deepmf.data.layout import Layout
from deepmf.datasets import simulated_scene

pytest.importorskip("matplotlib")


def fitted(X, ranks, layout, **options):
    options = {"max_iter": 3, "tol": 0, **options}
    return dataclasses.replace(factorize(X, ranks, **options), layout=layout)


@pytest.fixture(scope="session")
def scene():
    return simulated_scene(rows=36, cols=32, bands=20)


@pytest.fixture(scope="session")
def of_scene(scene):
    return fitted(scene.X, [6, 4, 2], scene.layout, init="snpa")


@pytest.fixture(scope="session")
def holed(scene):
    """X and fit of the scene without some bands and pixels."""
    keep = np.r_[0:5, 8:12, 13:14, 15:20]
    valid = np.ones((36, 32), bool)
    valid[3:7, 2:9] = False
    X = scene.X[keep][:, valid.ravel()]
    layout = dataclasses.replace(
        scene.layout, wavelengths=scene.wavelengths[keep], bands=keep + 1, valid=valid
    )
    layout.check(X.shape)
    return X, fitted(X, [3, 2], layout)


@pytest.fixture(scope="session")
def faces():
    """X and fit of pictures of 5 x 4 pixels, down the columns."""
    X = np.random.default_rng(0).random((20, 60))
    return X, fitted(X, [9, 4], Layout(image_shape=(5, 4), order="F", pixels="rows"))


@pytest.fixture(scope="session")
def signed_faces():
    X = np.random.default_rng(1).normal(size=(20, 60))
    layout = Layout(image_shape=(5, 4), order="F", pixels="rows")
    return X, fitted(X, [6, 3], layout, constraint_W="none", init="random", random_state=0)


@pytest.fixture(scope="session")
def topics():
    """X and fit of a table whose rows and columns have names."""
    X = np.random.default_rng(2).random((30, 50)) ** 4
    words = np.array([f"word{'s' * (i % 7)} {i}" for i in range(30)])
    words[7] = "a price of $5 or $6, in one very long name of a feature"
    papers = np.array([f"paper {j}" for j in range(50)])
    return X, fitted(X, [5, 2], Layout(features=words, samples=papers))


@pytest.fixture(scope="session")
def bare():
    """X and fit of a table of which nothing is known."""
    X = np.random.default_rng(3).random((12, 40))
    return X, fitted(X, [4, 2], Layout())


@pytest.fixture(scope="session")
def many():
    """A fit with more components than fit into a row."""
    X = np.random.default_rng(4).random((20, 150))
    layout = Layout(image_shape=(5, 4), pixels="rows")
    sparse = {"regularizer_H": [L1(1e-3), None, None]}  # or a warning would say they are too many
    return fitted(X, [60, 30, 12], layout, init="random", random_state=0, **sparse)
