"""Components that are pictures themselves: faces, digits."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import TYPE_CHECKING

import numpy as np

from deepmf.factorization import Factorization, layer_number
from deepmf.plots.images import Picture, Scale, draw_image, to_picture, whole_figure
from deepmf.plots.labels import component_names, shorten
from deepmf.plots.style import ONE_COLUMN, SMALL, TITLE, new_figure, write
from deepmf.quadratic import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOTES = {
    "gray_r": "white: 0; black: the largest value of each",
    "RdBu_r": "blue: negative; white: 0; red: positive; each to its own largest size",
}
_MARGIN, _TITLE, _NOTE = 0.05, 0.25, 0.18


def plot_pictures(
    f: Factorization,
    layer: int,
    image: Picture | None = None,
    names: Sequence[str] | None = None,
    *,
    title: str | None = None,
    width: float = ONE_COLUMN,
) -> Figure:
    """w / max |w| of each component w as a picture, in a square grid.

    Black is large; where a basis has negative values, red is positive and blue is negative.

    Parameters
    ----------
    f : Factorization
        The fit to pictures.
    layer : int
        Which layer, from 1.
    image : callable or (rows, columns), optional
        From a column of W to a picture. Default: the layout's.
    names : sequence of str, optional
        Names of the components, written above them; without them, nothing is.
    title : str, optional
        Above the grid. Default: the layer's number.
    width : float
        Of the figure in inches.
    """
    W = f.basis(layer)
    labels = component_names(names, W.shape[1]) if names is not None else []
    picture = to_picture(f, image, "rows")
    pictures = [picture(_unit_max(w)) for w in W.T]
    columns = ceil(sqrt(W.shape[1]))
    cell = min((width - 2 * _MARGIN) / columns, 1.1)
    margin = (width - columns * cell) / 2
    rows, cols = pictures[0].shape
    size, name = 0.92 * cell, 0.14 if labels else 0.0
    tall = size * rows / cols
    pitch = tall + 0.08 * cell + name
    height = -(-W.shape[1] // columns) * pitch + _TITLE + _NOTE
    scale = Scale.of(np.sign(W), "gray_r", percentile=100)
    fig = new_figure(width, height)
    ax = whole_figure(fig)
    for k, shown in enumerate(pictures):
        left = margin + k % columns * cell + 0.04 * cell
        top = height - _TITLE - k // columns * pitch - name
        box = (left, left + size, top - tall, top)
        draw_image(ax, shown, scale, extent=box, aspect="auto", gid=f"layer-{layer}-{k + 1}")
        ax.plot(*_frame(*box), color="0.7", lw=0.3)
        if labels:
            text = shorten(labels[k], cell, SMALL)
            write(ax, left + size / 2, top + 0.01, text, SMALL)
    heading = f"Layer {layer_number(layer, f.depth)}" if title is None else title
    ax.text(width / 2, height - 0.06, heading, fontsize=TITLE, ha="center", va="top")
    ax.text(width / 2, 0.05, _NOTES[scale.cmap], fontsize=SMALL, ha="center", color="0.35")
    return fig


def _unit_max(w: Array) -> Array:
    return w / (float(np.max(np.abs(w))) or 1.0)


def _frame(x0: float, x1: float, y0: float, y1: float) -> tuple[list[float], list[float]]:
    return [x0, x1, x1, x0, x0], [y0, y0, y1, y1, y0]
