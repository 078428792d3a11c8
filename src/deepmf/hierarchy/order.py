"""Left-to-right order of the components in drawings of the layer graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from deepmf.core.quadratic import Array

Orders = list[NDArray[np.intp]]

_ROUNDS = 8


def layer_orders(ranks: Sequence[int], links: Sequence[Array]) -> Orders:
    """Per layer an order of its components with few crossings between links.

    Barycenter heuristic: layers are sorted in turn, upwards and downwards, by the mean position of
    the components that each one links to. Of all orders seen, the one with the least weighted
    crossings is returned.

    Parameters
    ----------
    ranks : sequence of int
        r_1, ..., r_L.
    links : sequence of arrays
        Of layers 2, ..., L, as `Factorization.links` returns them.
    """
    return min(_candidates(ranks, links), key=lambda orders: round(crossings(orders, links), 12))


def crossings(orders: Orders, links: Sequence[Array]) -> float:
    """Sum of S(i, j) S(i', j') over all pairs of links with i before i' and j after j'."""
    total = 0.0
    for k, S in enumerate(links):
        ordered = S[np.ix_(orders[k + 1], orders[k])]
        crossing = np.zeros_like(ordered)  # sum over i' > i, j' < j
        crossing[:-1, 1:] = np.cumsum(np.cumsum(ordered[::-1], axis=0)[::-1], axis=1)[1:, :-1]
        total += float((ordered * crossing).sum())
    return total


def _candidates(ranks: Sequence[int], links: Sequence[Array]) -> Iterator[Orders]:
    orders: Orders = [np.arange(rank) for rank in ranks]
    yield list(orders)
    for _ in range(_ROUNDS):
        for k in range(len(links) - 1, -1, -1):
            orders[k] = _by_mean_position(orders[k + 1], links[k])
        yield list(orders)
        for k in range(len(links)):
            orders[k + 1] = _by_mean_position(orders[k], links[k].T)
        yield list(orders)


def _by_mean_position(order: NDArray[np.intp], weights: Array) -> NDArray[np.intp]:
    """Order of the columns of `weights` by the mean position of its rows, which have an order."""
    positions = np.empty(len(order))
    positions[order] = (np.arange(len(order)) + 0.5) / len(order)
    total = weights.sum(axis=0)
    mean = positions @ weights / np.where(total > 0, total, 1)
    return np.argsort(np.where(total > 0, mean, 0.5), kind="stable")
