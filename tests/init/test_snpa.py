"""SNPA against a slow textbook version with exact projections."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from deepmf.data.panels import DensePanels
from deepmf.init import StartError, snpa


def exact_distance(V, x):
    """Min ||x - V h||^2 over h >= 0, sum h <= 1, by enumeration of the supports."""
    best = x @ x
    for face in product([False, True], repeat=V.shape[1]):
        S = np.flatnonzero(face)
        if not len(S):
            continue
        F = V[:, S]
        candidates = [np.linalg.lstsq(F, x, rcond=None)[0]]
        # on the face sum h = 1: h = h_0 + N y, with N spanning the vectors of sum zero
        last = F[:, -1]
        y = np.linalg.lstsq(F[:, :-1] - last[:, None], x - last, rcond=None)[0]
        candidates.append(np.append(y, 1 - y.sum()))
        for h in candidates:
            if h.min() >= -1e-12 and h.sum() <= 1 + 1e-12:
                best = min(best, np.sum((x - F @ h) ** 2))
    return best


def textbook(X, rank):
    """Indices by Gillis (2014), Algorithm SNPA: one column at a time, farthest from the hull."""
    chosen = []
    for _ in range(rank):
        distances = np.array([exact_distance(X[:, chosen], x) for x in X.T])
        distances[chosen] = -1
        ties = np.flatnonzero(distances >= (1 - 1e-6) * distances.max())
        chosen.append(int(ties[np.argmax(np.sum(X[:, ties] ** 2, axis=0))]))
    return chosen


def indices(X, W):
    """Which columns of X the columns of W are."""
    same = np.all(X[:, :, None] == W[:, None, :], axis=0)
    assert same.any(axis=0).all(), "every column of W is a column of X"
    return same.argmax(axis=0).tolist()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("m", "rank"), [(3, 4), (5, 4), (8, 3)])
def test_the_textbook_choice(m, rank, seed):
    X = np.random.default_rng(seed).random((m, 25))
    assert indices(X, snpa(DensePanels(X), rank)) == textbook(X, rank)


@pytest.mark.parametrize("seed", range(3))
def test_the_textbook_choice_for_signed_data(seed):
    X = np.random.default_rng(seed).standard_normal((4, 20))
    assert indices(X, snpa(DensePanels(X), 4)) == textbook(X, 4)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
@pytest.mark.parametrize("width", [None, 7])
def test_separable_data_are_recovered(noise, width):
    rng = np.random.default_rng(0)
    m, r, n = 10, 6, 200
    vertices = rng.random((m, r))
    codes = rng.dirichlet(np.full(r, 0.5), n).T
    where = rng.choice(n, r, replace=False)
    codes[:, where] = np.eye(r)
    X = vertices @ codes + noise * rng.standard_normal((m, n))
    found = indices(X, snpa(DensePanels(X, width), r))
    assert len(set(found)) == r
    # with noise a point next to a vertex may win: it is the vertex for all that the data can tell
    nearest = [np.argmin(np.linalg.norm(X[:, where] - X[:, [j]], axis=0)) for j in found]
    assert sorted(nearest) == list(range(r))
    if noise == 0:
        assert sorted(found) == sorted(where)


def test_more_vertices_than_dimensions():
    """The paper's synthetic data: six vertices of a hexagon in three dimensions."""
    rng = np.random.default_rng(0)
    angle = np.arange(6) * np.pi / 3
    vertices = np.array([2 + np.cos(angle), 2 + np.sin(angle), 1 + 0 * angle])
    X = np.c_[vertices, vertices @ rng.dirichlet(np.ones(6), 100).T]
    assert sorted(indices(X, snpa(DensePanels(X), 6))) == list(range(6))


def test_first_vertex_is_the_longest_column():
    X = np.random.default_rng(0).random((4, 30))
    W = snpa(DensePanels(X), 1)
    np.testing.assert_array_equal(W[:, 0], X[:, np.argmax(np.linalg.norm(X, axis=0))])


def test_ties_go_to_the_longer_column():
    # after (3, 0, 0) both others are at distance 1 from the hull; the second is longer
    X = np.array([[3.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert indices(X, snpa(DensePanels(X), 2)) == [0, 2]
    assert indices(X[:, [0, 2, 1]], snpa(DensePanels(X[:, [0, 2, 1]]), 2)) == [0, 1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_too_few_vertices_are_counted(dtype, scale):
    rng = np.random.default_rng(0)
    vertices = rng.random((5, 3))
    X = np.c_[vertices, vertices @ rng.dirichlet(np.ones(3), 40).T]
    panels = DensePanels((scale * X).astype(dtype))
    assert snpa(panels, 3).shape == (5, 3)
    with pytest.raises(StartError, match="only 3 vertices where rank 4") as caught:
        snpa(panels, 4)
    assert "Lower the rank to 3" in str(caught.value)


@pytest.mark.parametrize(
    "X",
    [np.ones((3, 1)), np.ones((3, 5)), np.outer(np.arange(1.0, 4), [1.0, 0.5, 0.0, 0.25])],
    ids=["one column", "one column repeated", "rays"],
)
def test_exactly_reproduced_columns_end_the_search(X):
    with pytest.raises(StartError, match="only 1 vert"):
        snpa(DensePanels(X), 2)


def test_duplicates_are_chosen_once():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((6, 4)), 3, axis=1)
    found = indices(X, snpa(DensePanels(X), 4))
    assert len({j // 3 for j in found}) == 4


def test_zero_columns_are_never_chosen():
    X = np.random.default_rng(0).random((5, 12))
    X[:, ::2] = 0
    W = snpa(DensePanels(X), 4)
    assert (np.linalg.norm(W, axis=0) > 0).all()


def test_many_columns_and_lazy_distances():
    """More columns than one batch: the bounds must not hide the farthest column."""
    rng = np.random.default_rng(1)
    X = rng.random((4, 400))
    chosen = []
    W = snpa(DensePanels(X, 50), 3)
    for w in W.T:
        distances = np.array([exact_distance(X[:, chosen], x) for x in X.T])
        chosen.append(int(np.argmax(distances)))
        np.testing.assert_array_equal(w, X[:, chosen[-1]])
