"""The layer graph: every component as a small picture, tied to those it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deepmf.factorization import Factorization
from deepmf.hierarchy.names import layer_names
from deepmf.plots.arrows import draw_arrows
from deepmf.plots.fits import fit_of
from deepmf.plots.graph import Graph, layer_graph
from deepmf.plots.images import Picture, whole_figure
from deepmf.plots.style import NORMAL, SMALL, TITLE, TWO_COLUMNS, new_figure, write
from deepmf.plots.texts import shorten, wrap
from deepmf.plots.thumbnails import Thumbnails

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepmf.estimator import DeepMF

_SMALLEST = 4.5
"""Points of the smallest names."""

_LINE = 0.11
"""Height of a line of the note below."""


def plot_hierarchy(
    f: Factorization | DeepMF,
    image: Picture | None = None,
    names: Sequence[Sequence[str] | None] | None = None,
    title: str = "",
    *,
    features: Sequence[str] | None = None,
    width: float = TWO_COLUMNS,
) -> Figure:
    """All layers, the first on top, with an arrow of the width of each link's share.

    The arrows that leave a component of one layer show its shares in those of the next, which add
    up to 100 %. Links of 10 % or more are drawn. Where a layer has too many components for one
    row, they form families, above the component that has their largest share, with that one
    link each.

    A component is shown as its map (scenes), as a picture (faces), by its four largest features
    (tables with names) or as a curve.

    Parameters
    ----------
    f : Factorization or fitted DeepMF
        The fit.
    image : callable or (rows, columns), optional
        From one value per pixel to a picture. Default: the layout's.
    names : per layer a sequence of str or None, optional
        Names of the components.
    title : str
        Above the figure.
    features : sequence of m str, optional
        Names of X's rows, such as ``vectorizer.get_feature_names_out()``: components are then shown
        by their largest features. Default: the layout's.
    width : float
        Largest width of the figure in inches.
    """
    f = fit_of(f)
    labels = layer_names(names, f.problem.ranks)
    thumbnails = Thumbnails(f, image, features)
    graph = layer_graph(f, thumbnails.size, width, 0.3 if title else 0.05)
    note = wrap(_note(f, graph, thumbnails), graph.width - 0.1, SMALL)
    below = 0.06 + _LINE * len(note.splitlines())
    fig = new_figure(graph.width, graph.height + below)
    ax = whole_figure(fig, bottom=-below)
    draw_arrows(ax, graph)
    _draw_nodes(ax, graph, thumbnails, labels)
    for layer, y in graph.layers:
        ax.text(0.12, y, f"layer {layer}", rotation=90, va="center", ha="center", fontsize=SMALL)
    middle = graph.width / 2
    ax.text(middle, graph.height - 0.08, title, fontsize=TITLE, ha="center", va="top")
    ax.text(middle, 0.0, note, fontsize=SMALL, ha="center", va="top", color="0.35")
    return fig


def _note(f: Factorization, graph: Graph, thumbnails: Thumbnails) -> str:
    if f.depth == 1:
        return thumbnails.note
    which = "the largest share of each component" if graph.forest else "shares of 10 % or more"
    again = "; a component is repeated where a line is full" if graph.repeats else ""
    return f"arrows: {which}, as wide as the share; {thumbnails.note}{again}"


def _draw_nodes(ax: Axes, graph: Graph, thumbnails: Thumbnails, labels: list[list[str]]) -> None:
    wide, tall = graph.box
    longest = max(len(name.split(" ")[0]) for names in labels for name in names)
    fitting = 72 * graph.pitch / (0.62 * longest)  # where the numbers of components still do
    points = min(NORMAL, 72 * 0.75 * graph.name, max(_SMALLEST, fitting))
    for (layer, k), (x, y) in graph.places:
        thumbnails.draw(ax, (x - wide / 2, x + wide / 2, y, y + tall), layer, k)
        name = shorten(labels[layer - 1][k], graph.pitch, points)
        write(ax, x, y + tall + 0.015, name, points)
