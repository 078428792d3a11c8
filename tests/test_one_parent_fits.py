"""Trees of layer-centric fits: true families, and components that no tree changes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from deepmf import LayerCentric, OneParent, factorize
from deepmf.datasets import simulated_scene
from deepmf.fitting import tree
from deepmf.fitting.diagnostics.layers import given_up
from deepmf.fitting.problem import build_problem
from deepmf.metrics import match

RNG = np.random.default_rng(0)
X = RNG.random((12, 5)) @ RNG.dirichlet(np.full(5, 0.2), 80).T + 0.02 * RNG.random((12, 80))
TREE = [None, "one-parent", "one-parent"]


def families(f, scene, layer):
    """Whether two components have one parent, for components in the order of the truth."""
    order = match(scene.W[layer - 2], f.basis(layer - 1)).order
    parent, true = f.H[layer - 1].argmax(axis=0)[order], scene.H[layer - 1].argmax(axis=0)
    return parent[:, None] == parent, true[:, None] == true


@pytest.fixture(scope="module", params=range(3))
def scene(request):
    return simulated_scene(random_state=request.param)


@pytest.mark.parametrize("recipe", ["scene", None])
def test_one_call_finds_the_true_families_and_their_spectra(scene, recipe):
    f = factorize(scene.X, [6, 4, 2], recipe=recipe, constraint_H=TREE, random_state=0)
    angles = [match(scene.W[k - 1], f.basis(k)).mean for k in (1, 2, 3)]
    assert angles[0] < 1
    assert angles[1] < 1.2
    assert angles[2] < 4
    for layer in (2, 3):
        np.testing.assert_array_equal(*families(f, scene, layer))


@pytest.mark.parametrize("unit", [False, True])
def test_a_tree_leaves_layer_1_as_free_links_have_it(unit):
    settings = {"model": LayerCentric(0.05), "random_state": 0}
    free = factorize(X, [5, 3, 2], **settings)
    planted = factorize(X, [5, 3, 2], constraint_H=[None, *[OneParent(unit)] * 2], **settings)
    np.testing.assert_array_equal(planted.W[0], free.W[0])
    np.testing.assert_array_equal(planted.H[0], free.H[0])
    assert not np.array_equal(planted.W[1], free.W[1])


@pytest.mark.parametrize("penalty", [None, "min-volume"])
def test_the_sum_of_both_losses_never_increases(penalty):
    f = factorize(
        X, [5, 3, 2], constraint_H=TREE, regularizer_W=penalty, tol=0, max_iter=30, random_state=0
    )
    objective = f.history["objective"]
    assert (np.diff(objective) <= 1e-12 * np.abs(objective).max()).all()
    assert objective[-1] < objective[0]
    assert f.n_iter == 30


@pytest.mark.parametrize("penalty", [None, "min-volume"])
def test_every_update_of_a_tree_decreases_its_objective(monkeypatch, penalty):
    settle, seen = tree._Layer.settle, []

    def checked(self, W, H, max_iter):
        start = W, H
        values = [self.objective(W, H)]
        for _ in range(5):
            W = self._improved("W", W, self._of_W(W, H))
            values.append(self.objective(W, H))
            H = self._improved("H", H, self._of_H(W, H))
            values.append(self.objective(W, H))
        assert (np.diff(values) <= 1e-12 * np.abs(values).max()).all()
        seen.append(self)
        return settle(self, *start, max_iter)

    monkeypatch.setattr(tree._Layer, "settle", checked)
    factorize(X, [5, 3, 2], constraint_H=TREE, regularizer_W=penalty, random_state=0)
    assert len(seen) == 4  # two starts of two layers


def test_a_tree_needs_no_weight_of_its_layer():
    constraint = [None, OneParent(unit=True)]
    f, g = (
        factorize(X, [5, 2], model=LayerCentric(lam), constraint_H=constraint, random_state=0)
        for lam in (0, 1e-9)
    )
    np.testing.assert_array_equal(f.H[1], g.H[1])
    np.testing.assert_allclose(f.W[1], g.W[1], atol=1e-3)


def test_the_history_ends_with_the_errors_of_the_result():
    f = factorize(X, [5, 3, 2], constraint_H=TREE, random_state=0)
    for k in (2, 3):
        error = np.linalg.norm(X - f.reconstruct(k)) ** 2 / np.linalg.norm(X) ** 2
        assert f.history["data_errors"][-1, k - 1] == pytest.approx(error, rel=1e-6)


def test_a_parent_is_the_average_of_its_children_in_the_data():
    f = factorize(X, [5, 2], constraint_H=[None, OneParent(unit=True)], random_state=0)
    use = np.sum(f.H[0] ** 2, axis=1)
    for k, children in enumerate(f.H[1] > 0):
        average = f.W[0][:, children] @ use[children] / use[children].sum()
        np.testing.assert_allclose(f.W[1][:, k], average, rtol=1e-3, atol=1e-5)


def test_a_tree_below_or_above_free_links():
    low = factorize(X, [5, 3, 2], constraint_H=[None, "one-parent", None], random_state=0)
    high = factorize(X, [5, 3, 2], constraint_H=[None, None, "one-parent"], random_state=0)
    free = factorize(X, [5, 3, 2], random_state=0)
    assert ((low.H[1] > 0).sum(axis=0) <= 1).all()
    assert ((high.H[2] > 0).sum(axis=0) <= 1).all()
    np.testing.assert_array_equal(high.W[1], free.W[1])


@pytest.mark.parametrize("unit", [False, True])
def test_a_fit_of_no_sweeps_returns_the_tree_it_starts_from(unit):
    rng, constraint = np.random.default_rng(1), OneParent(unit)
    W = [rng.random((12, r)) for r in (5, 3)]
    W = [M / M.sum(axis=0) for M in W]
    W[1] = 3 * W[1] if unit else W[1]
    H = [rng.random((5, 80)), constraint.project(rng.random((3, 5)))]
    f = factorize(X, [5, 3], init=(W, H), constraint_H=[None, constraint], max_iter=0)
    np.testing.assert_allclose(f.W[1], W[1])
    np.testing.assert_allclose(f.H[1], H[1])


def test_weighted_data_have_trees():
    V = (RNG.random(X.shape) > 0.1).astype(float)
    f = factorize(X, [5, 2], weights=V, constraint_H=[None, "one-parent"], random_state=0)
    assert ((f.H[1] > 0).sum(axis=0) == 1).all()
    assert np.isfinite(f.history["data_errors"]).all()


def test_a_tree_is_not_taken_for_a_copy_of_the_next_layer():
    alone = [SimpleNamespace(error=e) for e in (0.01, 0.02, 0.05)]
    done = SimpleNamespace(alone=alone, history=SimpleNamespace(data_errors=[[0.01, 0.05, 0.051]]))
    found = [
        [f.layer for f in given_up(done, build_problem([8, 4, 2], constraint_H=H), (100, 5000))]
        for H in (None, TREE)
    ]
    assert found == [[2], []]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"constraint_H": "one-parent"},
            ("H of layer 1", "columns are samples", "after the first"),
        ),
        ({"constraint_W": [None, "one-parent", None]}, ("W of layer 2", "constraint_H")),
        (
            {"recipe": "scene", "hierarchy": "codes", "constraint_H": TREE},
            ("layer 2", "OneParent", "hierarchy='components'", "regularizer_W='none'"),
        ),
    ],
)
def test_one_parent_is_refused_where_it_makes_no_tree(settings, words):
    with pytest.raises(ValueError, match=words[0]) as raised:
        factorize(X, [5, 3, 2], **settings)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize("unit", ["yes", 1, None])
def test_unit_is_true_or_false(unit):
    with pytest.raises(ValueError, match="unit must be True or False"):
        OneParent(unit=unit)
