"""Links of the layer graph: arrows as wide as their shares, and percentages where they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deepmf.plots.graph import ROOMY, Graph, Link, Tie
from deepmf.plots.style import SMALL, color, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ALONG = (0.35, 0.4, 0.45, 0.5, 0.3, 0.55, 0.25, 0.6, 0.65, 0.7, 0.2, 0.75)
"""Positions of a percentage along its arrow, best first."""

_HALF = (0.15, 0.055)
"""Width and height of a percentage, in inches, from its middle."""

_WIDEST = 4.5
"""Points: an arrow of 100 %."""

_PATCH = {"fc": "white", "ec": "none", "pad": 0.4, "alpha": 0.8}
"""Behind a percentage."""


class Spot(NamedTuple):
    """A point on paper, in inches."""

    x: float
    y: float


class Arrow(NamedTuple):
    """A link from the lower edge of one component to the name of another."""

    start: Spot
    end: Spot
    link: Link

    def at(self, t: float) -> Spot:
        """The point at a fraction of the way."""
        (x0, y0), (x1, y1) = self.start, self.end
        return Spot(x0 + t * (x1 - x0), y0 + t * (y1 - y0))

    def distance(self, spot: Spot) -> float:
        """Distance of a point from the nearest one of the arrow."""
        (x0, y0), (x1, y1) = self.start, self.end
        way = np.array([x1 - x0, y1 - y0])
        t = float(np.clip(np.dot([spot.x - x0, spot.y - y0], way) / np.dot(way, way), 0, 1))
        nearest = self.at(t)
        return float(np.hypot(spot.x - nearest.x, spot.y - nearest.y))

    def crosses(self, spot: Spot, widest: float) -> bool:
        """Whether the arrow, as wide as it is drawn, goes through a number at that point."""
        grid = [(x, y) for x in (-1, -0.5, 0, 0.5, 1) for y in (-1, 0, 1)]
        near = 0.035 + widest * self.link.share / 72 / 2
        across, up = _HALF
        return any(
            self.distance(Spot(spot.x + x * across, spot.y + y * up)) < near for x, y in grid
        )


def draw_arrows(ax: Axes, graph: Graph) -> None:
    """All links of the graph."""
    strongest = sorted(graph.ties, key=lambda tie: -tie.link.share)
    arrows = [_arrow(graph, tie) for tie in strongest]
    widest = 1.6 if graph.forest else _WIDEST
    for arrow in arrows:
        _draw(ax, arrow, widest)
    if graph.pitch >= ROOMY:
        for arrow, spot in percentages(arrows):
            write(ax, *spot, f"{arrow.link.share:.0%}", SMALL, va="center", bbox=_PATCH)


def percentages(arrows: list[Arrow]) -> list[tuple[Arrow, Spot]]:
    """Position of each arrow's number, clear of other numbers and arrows; None if there is none."""
    placed: list[tuple[Arrow, Spot]] = []
    for arrow in arrows:
        others = [a for a in arrows if a is not arrow]
        free = [
            spot
            for spot in map(arrow.at, _ALONG)
            if not any(_overlap(spot, taken) for _, taken in placed)
            and not any(other.crosses(spot, _WIDEST) for other in others)
        ]
        if free:
            placed.append((arrow, free[0]))
    return placed


def _overlap(a: Spot, b: Spot) -> bool:
    return abs(a.x - b.x) < 2 * _HALF[0] and abs(a.y - b.y) < 2 * _HALF[1]


def _arrow(graph: Graph, tie: Tie) -> Arrow:
    top = tie.end.y + graph.box[1] + graph.name + 0.01
    return Arrow(Spot(*tie.start), Spot(tie.end.x, top), tie.link)


def _draw(ax: Axes, arrow: Arrow, widest: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    (layer, j), (deeper, i), share = arrow.link
    patch = FancyArrowPatch(
        arrow.start,
        arrow.end,
        arrowstyle="-|>",
        mutation_scale=4 + 1.2 * widest * share,
        lw=widest * share,
        color=color(5),
        shrinkA=0,
        shrinkB=0,
        joinstyle="miter",
        capstyle="butt",
        gid=f"link-{layer}-{j + 1}-{deeper}-{i + 1}",
    )
    ax.add_patch(patch)
