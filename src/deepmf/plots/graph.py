"""Positions of components and links in a drawing of the layers.

Lengths are inches, from the lower left corner; layers and components count from 1 and from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepmf.factorization import Factorization
from deepmf.hierarchy.order import layer_orders
from deepmf.hierarchy.tree import families
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
    """Size of a component's thumbnail."""

    smallest: float
    """Width below which it cannot be read."""
    largest: float
    aspect: float
    """Height / width."""

    def box(self, cell: float) -> tuple[float, float]:
        """Width and height within a cell, which tall pictures do not fill."""
        wide = min(0.86 * cell, 1.3 * self.largest / self.aspect)
        return wide, wide * self.aspect


class Place(NamedTuple):
    """Position of a thumbnail: the middle of its lower edge."""

    x: float
    y: float


class Link(NamedTuple):
    """A share of component ``j`` of a layer that is component ``i`` of the next."""

    above: Node
    below: Node
    share: float


class Tie(NamedTuple):
    """A link on paper."""

    link: Link
    start: Place
    end: Place


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
    places: list[tuple[Node, Place]]
    ties: list[Tie]
    layers: list[tuple[int, float]]
    """Layer numbers and the height of the middle of their thumbnails."""
    forest: bool
    """Whether each component has its strongest link alone."""

    @property
    def repeats(self) -> bool:
        """Whether a component that has more than a line of others above it is shown again."""
        return len({node for node, _ in self.places}) < len(self.places)


def layer_graph(f: Factorization, size: Size, width: float, title: float) -> Graph:
    """All links of 10 % or more where a layer fits into one row, otherwise the strongest ones.

    In the second case components form families, above the one that has their largest share.
    """
    if (width - _LEFT - _RIGHT) / max(f.ranks) >= 1.12 * size.smallest:
        return _rows(f, size, width, title)
    return _forest(f, size, width, title)


# --- one row per layer ---------------------------------------------------------------------------


def _rows(f: Factorization, size: Size, width: float, title: float) -> Graph:
    widest = max(f.ranks)
    cell = min((width - _LEFT - _RIGHT) / widest, 1.25 * size.largest)
    width = _LEFT + cell * widest + _RIGHT
    box = size.box(cell)
    links = [link for link in _links(f) if link.share >= SMALLEST_LINK]
    name, gap = 0.15, max(0.45, 0.6 * min(box)) * _crowding(f, links)
    row = name + box[1] + gap
    height = title + f.depth * row - gap + _EDGE
    places, layers = {}, []
    shares = [f.links(layer) for layer in range(2, f.depth + 1)]
    for layer, order in enumerate(layer_orders(f.ranks, shares), start=1):
        y = height - title - (layer - 1) * row - name - box[1]
        layers.append((layer, y + box[1] / 2))
        for position, k in enumerate(order):
            x = _LEFT + cell * widest * (position + 0.5) / len(order)
            places[layer, int(k)] = Place(x, y)
    ties = [Tie(link, places[link.above], places[link.below]) for link in links]
    return Graph(width, height, box, cell, name, [*places.items()], ties, layers, forest=False)


def _crowding(f: Factorization, links: list[Link]) -> float:
    """Largest number of links per component of the layer above, limited to 1 to 2."""
    count = Counter(link.above[0] for link in links)
    return float(np.clip(max((n / f.ranks[k - 1] for k, n in count.items()), default=1), 1, 2))


def _links(f: Factorization) -> Iterator[Link]:
    for layer in range(2, f.depth + 1):
        for (i, j), share in np.ndenumerate(f.links(layer)):
            yield Link((layer - 1, j), (layer, i), float(share))


# --- families ------------------------------------------------------------------------------------


class Member(NamedTuple):
    """A component of a family."""

    node: Node
    x: float
    """Distance of its middle from the family's left edge, in units."""
    link: Link | None = None
    """Down to another member."""


class Family(NamedTuple):
    """A component, the last member, below those that have their largest share in it."""

    members: list[Member]
    span: int
    """Width in units, of one thumbnail each."""


def _forest(f: Factorization, size: Size, width: float, title: float) -> Graph:
    """Families in lines, like words of a text, at the largest size that fits on the page."""
    strongest = _strongest_links(f)
    largest = min(size.largest, 2 * size.smallest)
    for unit in np.linspace(1.12 * largest, 1.12 * size.smallest, _STEPS).tolist():
        room = max(1, int((width - _LEFT - _RIGHT) / unit))
        families = [
            family
            for root in range(f.ranks[-1])
            for family in _families(strongest, (f.depth, root), room)
        ]
        graph = _lines(f, families, unit, size.box(unit), width, title)
        if graph.height <= PAGE_HEIGHT and not graph.repeats:
            break
    return graph


def _strongest_links(f: Factorization) -> dict[Node, list[Link]]:
    """Links to each component from those that have their largest share in it, largest first."""
    found: dict[Node, list[Link]] = {}
    for layer in range(2, f.depth + 1):
        for i, parts in enumerate(families(f.links(layer))):
            found[layer, i] = [Link((layer - 1, j), (layer, i), share) for j, share in parts]
    return found


def _families(strongest: dict[Node, list[Link]], root: Node, room: int) -> list[Family]:
    """The family of a component, in several parts, each with the component, if it is too wide."""
    parts = [
        Family([*family.members[:-1], family.members[-1]._replace(link=link)], family.span)
        for link in strongest.get(root, [])
        for family in _families(strongest, link.above, room)
    ]
    groups: list[list[Family]] = [[]]
    for part in parts:
        if groups[-1] and sum(p.span for p in groups[-1]) + part.span > room:
            groups.append([])
        groups[-1].append(part)
    return [_joined(group, root) for group in groups]


def _joined(parts: list[Family], root: Node) -> Family:
    """Families side by side, above their common root."""
    members, span = [], 0
    for part in parts:
        members += [member._replace(x=span + member.x) for member in part.members]
        span += part.span
    return Family([*members, Member(root, max(span, 1) / 2)], max(span, 1))


def _lines(
    f: Factorization,
    families: list[Family],
    unit: float,
    box: tuple[float, float],
    width: float,
    title: float,
) -> Graph:
    widest = unit * max(family.span for family in families)
    name, gap = 0.13, float(np.clip(0.1 * widest, 0.2 if unit < ROOMY else 0.36, 0.45))
    row = name + box[1] + gap
    line_height = f.depth * row - gap + 0.15
    starts = _flow([family.span * unit for family in families], 0.3 * unit, width - _LEFT - _RIGHT)
    height = title + (1 + starts[-1][0]) * line_height + _EDGE
    places: list[tuple[Node, Place]] = []
    ties = []
    for (members, _), (line, left) in zip(families, starts):
        top = height - title - line * line_height
        own = {
            node: Place(_LEFT + left + x * unit, top - (node[0] - 1) * row - name - box[1])
            for node, x, _ in members
        }
        places += own.items()
        ties += [
            Tie(link, own[link.above], own[link.below])
            for _, _, link in members
            if link is not None and link.share > 0
        ]
    layers = sorted({(layer, place.y + box[1] / 2) for (layer, _), place in places})
    return Graph(width, height, box, unit, name, places, ties, layers, forest=True)


def _flow(widths: list[float], space: float, room: float) -> list[tuple[int, float]]:
    """Line and distance from the left of each word of a text."""
    line, left, out = 0, 0.0, []
    for wide in widths:
        if left > 0 and left + wide > room + 1e-9:
            line, left = line + 1, 0.0
        out.append((line, left))
        left += wide + space
    return out
