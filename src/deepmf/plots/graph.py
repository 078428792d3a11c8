"""Where the components of all layers and the links between them stand on paper.

Lengths are inches, from the lower left corner; layers and components count from 1 and from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepmf.factorization import Factorization
from deepmf.plots.style import PAGE_HEIGHT

ROOMY = 0.45
"""Percentages on links need components at least this far apart."""

SMALLEST_LINK = 0.1
"""Shares below this are not drawn, as in the paper."""

_LEFT, _RIGHT, _EDGE = 0.3, 0.05, 0.1
_STEPS = 12
"""Sizes that are tried between the largest and the smallest."""

Node = tuple[int, int]
"""Layer, component."""


class Size(NamedTuple):
    """Of a component's thumbnail."""

    smallest: float
    """Width below which it cannot be read."""
    largest: float
    aspect: float
    """Height / width."""


class Place(NamedTuple):
    """Of a thumbnail: the middle of its lower edge."""

    x: float
    y: float


class Link(NamedTuple):
    """A share of component ``j`` of a layer that is component ``i`` of the next."""

    above: Node
    below: Node
    share: float


@dataclass(frozen=True)
class Graph:
    """A drawing of layers, the first on top."""

    width: float
    height: float
    box: tuple[float, float]
    """Width and height of a thumbnail."""
    pitch: float
    """Room for a thumbnail with its gaps, from left to right."""
    name: float
    """Height of the line above a thumbnail."""
    places: dict[Node, Place]
    links: list[Link]
    layers: list[tuple[int, float]]
    """Layer numbers and the height of the middle of their thumbnails."""
    forest: bool
    """Whether each component has its strongest link alone."""


def layer_graph(f: Factorization, size: Size, width: float, title: float) -> Graph:
    """All links of 10 % or more where a layer fits into one row, otherwise the strongest ones.

    In the second case components stand in families, above the one that has their largest share.
    """
    if (width - _LEFT - _RIGHT) / max(f.ranks) >= 1.12 * size.smallest:
        return _rows(f, size, width, title)
    return _forest(f, size, width, title)


# --- one row per layer ---------------------------------------------------------------------------


def _rows(f: Factorization, size: Size, width: float, title: float) -> Graph:
    widest = max(f.ranks)
    cell = min((width - _LEFT - _RIGHT) / widest, 1.25 * size.largest)
    width = _LEFT + cell * widest + _RIGHT
    box = (0.86 * cell, 0.86 * cell * size.aspect)
    name, gap = 0.15, max(0.45, 0.6 * box[1])
    row = name + box[1] + gap
    height = title + f.depth * row - gap + _EDGE
    places, layers = {}, []
    for layer, order in enumerate(_uncrossed_orders(f), start=1):
        y = height - title - (layer - 1) * row - name - box[1]
        layers.append((layer, y + box[1] / 2))
        for position, k in enumerate(order):
            x = _LEFT + cell * widest * (position + 0.5) / len(order)
            places[layer, int(k)] = Place(x, y)
    links = [link for link in _links(f) if link.share >= SMALLEST_LINK]
    return Graph(width, height, box, cell, name, places, links, layers, forest=False)


def _uncrossed_orders(f: Factorization) -> list[NDArray[np.intp]]:
    """Order of each layer from left to right: a component stands above what it links to."""
    orders = [np.arange(f.ranks[-1])]
    for layer in range(f.depth, 1, -1):
        below = np.empty(f.ranks[layer - 1])
        below[orders[0]] = np.linspace(0, 1, len(below))
        orders.insert(0, np.argsort(below @ f.links(layer), kind="stable"))
    return orders


def _links(f: Factorization) -> Iterator[Link]:
    for layer in range(2, f.depth + 1):
        for (i, j), share in np.ndenumerate(f.links(layer)):
            yield Link((layer - 1, j), (layer, i), float(share))


# --- families ------------------------------------------------------------------------------------


def _forest(f: Factorization, size: Size, width: float, title: float) -> Graph:
    """Families in lines like words of a text, at the largest size that a page has room for."""
    strongest = _strongest_links(f)
    families = [_family(strongest, (f.depth, k)) for k in range(f.ranks[-1])]
    fits = (width - _LEFT - _RIGHT) / max(span for _, span in families)
    for unit in np.linspace(1.12 * size.largest, 1.12 * size.smallest, _STEPS):
        graph = _lines(f, families, min(float(unit), fits), size.aspect, width, title)
        if graph.height <= PAGE_HEIGHT:
            break
    return graph


def _strongest_links(f: Factorization) -> dict[Node, list[Link]]:
    """Links to each component from those that have their largest share in it, largest first."""
    found: dict[Node, list[Link]] = {}
    for layer in range(2, f.depth + 1):
        shares = f.links(layer)
        for j in np.argsort(-shares.max(axis=0), kind="stable"):
            i = int(np.argmax(shares[:, j]))
            link = Link((layer - 1, int(j)), (layer, i), float(shares[i, j]))
            found.setdefault((layer, i), []).append(link)
    return found


Family = tuple[list[tuple[Node, float, Link | None]], int]
"""Components with their distances from the left edge in units, their links down; the width."""


def _family(strongest: dict[Node, list[Link]], root: Node, link: Link | None = None) -> Family:
    members: list[tuple[Node, float, Link | None]] = []
    span = 0
    for up in strongest.get(root, []):
        above, wide = _family(strongest, up.above, up)
        members += [(node, span + x, tie) for node, x, tie in above]
        span += wide
    span = max(span, 1)
    return [*members, (root, span / 2, link)], span


def _lines(
    f: Factorization, families: list[Family], unit: float, aspect: float, width: float, title: float
) -> Graph:
    box = (0.86 * unit, 0.86 * unit * aspect)
    name, gap = 0.13 if unit > 0.2 else 0.09, 0.2 if unit < ROOMY else 0.36
    row = name + box[1] + gap
    starts = _flow([span * unit for _, span in families], 0.3 * unit, width - _LEFT - _RIGHT)
    count = 1 + max(line for line, _ in starts)
    between = 0.15
    height = title + count * (f.depth * row - gap + between) + _EDGE
    places, links, layers = {}, [], []
    for (members, _), (line, left) in zip(families, starts):
        top = height - title - line * (f.depth * row - gap + between)
        for (layer, k), x, link in members:
            y = top - (layer - 1) * row - name - box[1]
            places[layer, k] = Place(_LEFT + left + x * unit, y)
            layers.append((layer, y + box[1] / 2))
            if link is not None and link.share > 0:
                links.append(link)
    marks = sorted(set(layers))
    return Graph(width, height, box, unit, name, places, links, marks, forest=True)


def _flow(widths: list[float], space: float, room: float) -> list[tuple[int, float]]:
    """Line and distance from the left of each word of a text."""
    line, left, out = 0, 0.0, []
    for wide in widths:
        if left > 0 and left + wide > room + 1e-9:
            line, left = line + 1, 0.0
        out.append((line, left))
        left += wide + space
    return out
