"""Components that are pictures themselves: faces, digits."""

from __future__ import annotations

from math import ceil, sqrt
from typing import TYPE_CHECKING

import numpy as np

from deepmf.plots.style import Picture, as_picture, new_figure
from deepmf.quadratic import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_pictures(W: Array, image: Picture, title: str = "") -> Figure:
    """Columns of W in a square grid, each scaled to its own maximum; dark is large.

    Parameters
    ----------
    W : array, m x r
        A basis whose columns are pictures.
    image : callable or (rows, columns)
        From a column to a picture, such as `deepmf.datasets.Dataset.image`.
    title : str
        Above the grid.
    """
    rank = W.shape[1]
    side = ceil(sqrt(rank))
    height, width = as_picture(image, W[:, 0]).shape
    sheet = np.zeros((side * (height + 1) + 1, side * (width + 1) + 1))
    for k in range(rank):
        top, left = k // side * (height + 1) + 1, k % side * (width + 1) + 1
        largest = float(np.max(np.abs(W[:, k]))) or 1.0
        sheet[top : top + height, left : left + width] = as_picture(image, W[:, k]) / largest
    fig = new_figure(3.4, 3.6)
    ax = fig.subplots()
    ax.imshow(
        sheet, cmap="gray_r", interpolation="nearest", vmin=min(0.0, float(sheet.min())), vmax=1
    )
    for k in range(side + 1):
        ax.axhline(k * (height + 1), color="0.7", lw=0.4)
        ax.axvline(k * (width + 1), color="0.7", lw=0.4)
    ax.set_axis_off()
    ax.set_title(title, fontsize=10)
    return fig
