"""The order of components in drawings of the layer graph."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from deepmf.hierarchy.order import crossings, layer_orders

rng = np.random.default_rng(0)


def random_links(ranks):
    weights = [rng.random((r, s)) ** 4 for s, r in pairwise(ranks)]
    return [M / M.sum(axis=0) for M in weights]


def test_crossings_are_counted_pair_by_pair():
    (S,) = links = random_links([5, 4])
    orders = [rng.permutation(5), rng.permutation(4)]
    ordered = S[np.ix_(orders[1], orders[0])]
    pairs = product(np.ndindex(ordered.shape), repeat=2)
    expected = sum(ordered[a] * ordered[b] for a, b in pairs if a[0] < b[0] and a[1] > b[1])
    assert crossings(orders, links) == pytest.approx(expected)


@pytest.mark.parametrize("ranks", [[6, 4, 2], [10, 6, 4, 2], [20, 10, 5]])
def test_no_order_seen_on_the_way_is_better(ranks):
    for _ in range(20):
        links = random_links(ranks)
        orders = layer_orders(ranks, links)
        assert [sorted(order) for order in orders] == [list(range(rank)) for rank in ranks]
        upwards = [np.arange(rank) for rank in ranks]
        assert crossings(orders, links) <= crossings(upwards, links)
        for k in range(len(links) - 1, -1, -1):
            positions = np.argsort(upwards[k + 1])
            upwards[k] = np.argsort(positions @ links[k], kind="stable")
        assert crossings(orders, links) <= crossings(upwards, links) + 1e-9


def test_a_shuffled_tree_is_put_in_order():
    tree = [np.kron(np.eye(3), np.ones(2)), np.array([[1.0, 1, 0], [0, 0, 1]])]
    shuffles = [rng.permutation(rank) for rank in (6, 3, 2)]
    links = [T[np.ix_(shuffles[k + 1], shuffles[k])] for k, T in enumerate(tree)]
    assert crossings(layer_orders([6, 3, 2], links), links) == 0


def test_one_layer_stays_as_it_is():
    assert layer_orders([3], [])[0].tolist() == [0, 1, 2]
