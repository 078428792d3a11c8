"""The layer graph: every component as a map, tied to those it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepmf.factorization import Factorization
from deepmf.plots.style import Picture, as_picture, component_names, new_figure
from deepmf.quadratic import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SMALLEST_LINK = 0.1
"""Shares below this are not drawn, as in the paper."""


def plot_hierarchy(
    f: Factorization,
    image: Picture,
    names: Sequence[Sequence[str] | None] | None = None,
    title: str = "",
) -> Figure:
    """Maps of every layer, first layer on top, with a line for each link of 10 % or more.

    Each map runs from its smallest value (black) to its 99th percentile (white).

    Parameters
    ----------
    f : Factorization
        The fit to a scene.
    image : callable or (rows, columns)
        From one value per pixel to a picture, such as `deepmf.datasets.Dataset.image`.
    names : per layer a sequence of str or None, optional
        Names of the components.
    title : str
        Above the figure.
    """
    fig = new_figure(1.5 * max(f.ranks) + 0.5, 1.95 * f.depth + 0.2)
    fig.set_layout_engine("none")
    orders = _uncrossed_orders(f)
    nodes = [
        _draw_layer(
            fig,
            f,
            layer,
            orders[layer - 1],
            image,
            names[layer - 1] if names and layer <= len(names) else None,
        )
        for layer in range(1, f.depth + 1)
    ]
    lines = fig.add_axes((0, 0, 1, 1), zorder=-1)
    lines.set_axis_off()
    lines.set(xlim=(0, 1), ylim=(0, 1))
    for layer in range(2, f.depth + 1):
        _draw_links(lines, f.links(layer), nodes[layer - 2], nodes[layer - 1])
    if title:
        fig.suptitle(title, fontsize=10, y=0.995)
    return fig


def _uncrossed_orders(f: Factorization) -> list[NDArray[np.intp]]:
    """Order of each layer from left to right: a component stands above what it links to."""
    orders = [np.arange(f.ranks[-1])]
    for layer in range(f.depth, 1, -1):
        below = np.empty(f.ranks[layer - 1])
        below[orders[0]] = np.linspace(0, 1, len(below))
        orders.insert(0, np.argsort(below @ f.links(layer), kind="stable"))
    return orders


def _draw_layer(
    fig: Figure,
    f: Factorization,
    layer: int,
    order: NDArray[np.intp],
    image: Picture,
    names: Sequence[str] | None,
) -> dict[int, _Place]:
    """Draw one row of maps; return where each component's map stands."""
    codes = f.codes(layer)
    labels = component_names(names, len(codes))
    left, columns, band = 0.05, max(f.ranks), 0.96 / f.depth
    size_x, size_y = 0.8 * (1 - left) / columns, 0.64 * band
    bottom = 0.96 - layer * band + 0.1 * band
    fig.text(0.01, bottom + size_y / 2, f"Layer {layer}", rotation=90, va="center", fontsize=9)
    places = {}
    for position, k in enumerate(order):
        centre = left + (1 - left) * (position + 0.5) / len(order)
        ax = fig.add_axes((centre - size_x / 2, bottom, size_x, size_y))
        brightest = float(np.percentile(codes[k], 99)) or None  # a few outliers would dim the rest
        ax.imshow(as_picture(image, codes[k]), cmap="gray", interpolation="nearest", vmax=brightest)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_title(labels[k], fontsize=8, pad=3)
        places[int(k)] = _Place(centre, bottom, bottom + size_y + 0.11 * band)
    return places


def _draw_links(ax: Any, shares: Array, upper: dict[int, _Place], lower: dict[int, _Place]) -> None:
    for i, below in lower.items():
        for j, above in upper.items():
            share = float(shares[i, j])
            if share >= _SMALLEST_LINK:
                ends = [above.centre, below.centre], [above.bottom, below.top]
                ax.plot(*ends, color="#0072B2", lw=5 * share, alpha=0.45, solid_capstyle="round")


class _Place(NamedTuple):
    """Of a map in figure coordinates; ``top`` is above its name."""

    centre: float
    bottom: float
    top: float
