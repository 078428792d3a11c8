"""The order of the layer graph's nodes from left to right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepmf.core.quadratic import Array
from deepmf.factorization import Factorization

Orders = list[NDArray[np.intp]]

_ROUNDS = 8


def uncrossed_orders(f: Factorization) -> Orders:
    """Per layer an order of its components that lets few links cross.

    Layers are sorted in turn, upwards and downwards, by the mean place of what each component
    links to; of all orders seen, the one with the least weighted crossings is kept.
    """
    shares = [f.links(layer) for layer in range(2, f.depth + 1)]
    orders: Orders = [np.arange(r) for r in f.ranks]
    best, least = orders, np.inf
    for _ in range(_ROUNDS):
        orders = _sorted_downwards(_sorted_upwards(orders, shares), shares)
        crossings = _crossings(orders, shares)
        if crossings < least - 1e-12:
            best, least = orders, crossings
    return best


def _places(order: NDArray[np.intp]) -> Array:
    """Where each component stands, from 0 to 1."""
    places = np.empty(len(order))
    places[order] = (np.arange(len(order)) + 0.5) / len(order)
    return places


def _sorted_upwards(orders: Orders, shares: list[Array]) -> Orders:
    orders = list(orders)
    for k in range(len(shares) - 1, -1, -1):
        orders[k] = _by_mean_place(_places(orders[k + 1]), shares[k])
    return orders


def _sorted_downwards(orders: Orders, shares: list[Array]) -> Orders:
    orders = list(orders)
    for k in range(len(shares)):
        orders[k + 1] = _by_mean_place(_places(orders[k]), shares[k].T)
    return orders


def _by_mean_place(places: Array, shares: Array) -> NDArray[np.intp]:
    total = shares.sum(axis=0)
    mean = places @ shares / np.where(total > 0, total, 1)
    return np.argsort(np.where(total > 0, mean, 0.5), kind="stable")


def _crossings(orders: Orders, shares: list[Array]) -> float:
    """Sum of S(i, j) S(i', j') over the pairs of links with i before i' and j after j'."""
    total = 0.0
    for k, S in enumerate(shares):
        ordered = S[np.ix_(orders[k + 1], orders[k])]
        before = np.zeros_like(ordered)  # sum over i' > i, j' < j
        before[:-1, 1:] = np.cumsum(np.cumsum(ordered[::-1], axis=0)[::-1], axis=1)[1:, :-1]
        total += float((ordered * before).sum())
    return total
