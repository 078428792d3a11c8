"""VCA and N-FINDR: columns of X that span it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from deepmf.data.panels import DensePanels
from deepmf.init import StartError, nfindr, vca

STARTS = [vca, nfindr]


def start(init, X, rank, seed=0, width=None):
    return init(DensePanels(X, width), rank, np.random.default_rng(seed))


def indices(X, W):
    """Which columns of X the columns of W are."""
    same = np.all(X[:, :, None] == W[:, None, :], axis=0)
    assert same.any(axis=0).all(), "every column of W is a column of X"
    return same.argmax(axis=0).tolist()


def volume2(V):
    """The squared volume of a simplex, up to a factor: the Gram determinant of its edges."""
    edges = V[:, 1:] - V[:, :1]
    return np.linalg.det(edges.T @ edges)


@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rank", [1, 2, 4, 7])
def test_pure_columns_are_found(init, rank, seed):
    rng = np.random.default_rng(seed)
    codes = rng.dirichlet(np.full(rank, 0.7), 200).T
    where = rng.choice(200, rank, replace=False)
    codes[:, where] = np.eye(rank)
    X = rng.random((12, rank)) @ codes
    assert rank == 1 or sorted(indices(X, start(init, X, rank, seed))) == sorted(where)
    assert start(init, X, rank).shape == (12, rank)


@pytest.mark.parametrize("seed", range(5))
def test_nfindr_gives_a_simplex_that_no_swap_enlarges(seed):
    X = np.random.default_rng(seed).random((3, 40))  # r = m: nothing is lost by the reduction
    found = indices(X, start(nfindr, X, 3))
    plane, _ = np.linalg.qr(np.linalg.svd(X - X.mean(axis=1)[:, None])[0][:, :2])
    Z = plane.T @ X
    best = volume2(Z[:, found])
    for i in range(3):
        for k in range(40):
            assert volume2(Z[:, [*found[:i], k, *found[i + 1 :]]]) <= best * (1 + 1e-6)


def test_nfindr_reaches_the_largest_simplex_of_a_small_cloud():
    X = np.random.default_rng(3).random((3, 12))
    plane = np.linalg.svd(X - X.mean(axis=1)[:, None])[0][:, :2]
    Z = plane.T @ X
    largest = max(combinations(range(12), 3), key=lambda K: volume2(Z[:, K]))
    assert sorted(indices(X, start(nfindr, X, 3))) == sorted(largest)


def test_vca_draws_from_the_generator():
    X = np.random.default_rng(0).random((30, 60))
    np.testing.assert_array_equal(start(vca, X, 4, 1), start(vca, X, 4, 1, width=7))
    assert any(indices(X, start(vca, X, 4, s)) != indices(X, start(vca, X, 4, 0)) for s in range(9))


class OtherSigns(DensePanels):
    def leading(self, k, members=None):
        U, s = super().leading(k, members)
        return U * np.where(np.arange(k) % 2, 1, -1), s


@pytest.mark.parametrize("init", STARTS)
def test_signs_of_singular_vectors_do_not_matter(init):
    for seed in range(5):
        X = np.random.default_rng(seed).random((9, 60))
        other = init(OtherSigns(X), 4, np.random.default_rng(0))
        np.testing.assert_array_equal(start(init, X, 4), other)


def test_vca_looks_along_directions_orthogonal_to_what_it_has():
    """A second vertex far out in the direction of the first is not chosen again."""
    X = np.zeros((3, 30))
    X[:, 0], X[:, 1], X[:, 2] = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    X[:, 3:] = np.random.default_rng(0).dirichlet(np.ones(3), 27).T
    for seed in range(20):
        assert sorted(indices(X, start(vca, X, 3, seed))) == [0, 1, 2]


@pytest.mark.parametrize("init", STARTS)
def test_scale_does_not_matter(init):
    X = np.random.default_rng(0).random((8, 50))
    for scale in (2.0**-300, 2.0**300):
        np.testing.assert_array_equal(start(init, scale * X, 4), scale * start(init, X, 4))


@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hulls_that_are_too_flat_are_refused(init, dtype):
    rng = np.random.default_rng(0)
    X = (rng.random((9, 3)) @ rng.dirichlet(np.ones(3), 60).T).astype(dtype)
    assert start(init, X, 3).shape == (9, 3)
    with pytest.raises(StartError, match=r"at most 3 vertices .* rank 4") as caught:
        start(init, X, 4)
    assert "Lower the rank to 3" in str(caught.value)
    with pytest.raises(StartError, match="at most 9 vertices"):
        start(init, rng.random((9, 60)), 10)


@pytest.mark.parametrize("init", STARTS)
def test_zero_columns_are_never_chosen(init):
    X = np.random.default_rng(0).random((6, 20))
    X[:, ::2] = 0
    assert (np.linalg.norm(start(init, X, 4), axis=0) > 0).all()
    with pytest.raises(StartError, match="at most 2 vertices"):
        start(init, np.c_[X[:, 1:5], np.zeros((6, 3))], 3)
