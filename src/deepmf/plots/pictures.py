"""Components that are pictures themselves: faces, digits."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.factorization import Factorization, layer_number
from deepmf.hierarchy.names import component_names
from deepmf.plots.fits import fit_of
from deepmf.plots.images import (
    Box,
    Picture,
    Scale,
    draw_frame,
    draw_image,
    to_picture,
    whole_figure,
)
from deepmf.plots.style import ONE_COLUMN, SMALL, TITLE, new_figure, write
from deepmf.plots.texts import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deepmf.estimator import DeepMF

_NOTES = {
    "gray_r": "white: 0; black: the largest value of each",
    "RdBu_r": "blue: negative; white: 0; red: positive; each to its own largest size",
}
_MARGIN, _TITLE, _NOTE, _LARGEST = 0.05, 0.25, 0.18, 1.1
"""Empty edge, room for title and note, and the largest picture, in inches."""


def plot_pictures(
    f: Factorization | DeepMF,
    layer: int,
    image: Picture | None = None,
    names: Sequence[str] | None = None,
    *,
    title: str | None = None,
    width: float = ONE_COLUMN,
) -> Figure:
    """``w / max |w|`` of each component w as a picture, in a square grid.

    Black is large; where a basis has negative values, red is positive and blue is negative.

    Parameters
    ----------
    f : Factorization or fitted DeepMF
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
    f = fit_of(f)
    W, number = f.basis(layer), layer_number(layer, f.depth)
    labels = component_names(names, number, W.shape[1]) if names is not None else []
    picture = to_picture(f, image, "rows")
    pictures = [picture(_unit_max(w)) for w in W.T]
    sheet = _Sheet.of(len(pictures), width, pictures[0].shape, named=bool(labels))
    scale = Scale.of(np.sign(W), "gray_r", percentile=100)
    fig = new_figure(width, sheet.height)
    ax = whole_figure(fig)
    for k, shown in enumerate(pictures):
        left, right, _, top = box = sheet.box(k)
        gid = f"layer-{number}-{k + 1}"
        draw_image(ax, shown, scale, extent=box, aspect="auto", gid=gid)
        draw_frame(ax, box)
        if labels:
            text = shorten(labels[k], sheet.cell, SMALL)
            write(ax, (left + right) / 2, top + 0.01, text, SMALL)
    heading = f"Layer {number}" if title is None else title
    ax.text(width / 2, sheet.height - 0.06, heading, fontsize=TITLE, ha="center", va="top")
    ax.text(width / 2, 0.05, _NOTES[scale.cmap], fontsize=SMALL, ha="center", color="0.35")
    return fig


class _Sheet(NamedTuple):
    """A square grid of pictures, in inches."""

    columns: int
    cell: float
    """Distance from one picture to the next on its right."""
    picture: tuple[float, float]
    """Width and height."""
    name: float
    """Room above each picture."""
    left: float
    height: float

    @classmethod
    def of(cls, count: int, width: float, shape: tuple[int, ...], named: bool) -> _Sheet:
        columns = ceil(sqrt(count))
        cell = min((width - 2 * _MARGIN) / columns, _LARGEST)
        wide, name = 0.92 * cell, 0.14 if named else 0.0
        tall = wide * shape[0] / shape[1]
        height = -(-count // columns) * (tall + 0.08 * cell + name) + _TITLE + _NOTE
        left = (width - columns * cell) / 2 + 0.04 * cell
        return cls(columns, cell, (wide, tall), name, left, height)

    def box(self, k: int) -> Box:
        """Position of the k-th picture."""
        row, column = divmod(k, self.columns)
        wide, tall = self.picture
        left = self.left + column * self.cell
        top = self.height - _TITLE - row * (tall + 0.08 * self.cell + self.name) - self.name
        return left, left + wide, top - tall, top


def _unit_max(w: Array) -> Array:
    return w / (float(np.max(np.abs(w))) or 1.0)
