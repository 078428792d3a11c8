"""Codes as maps: where each component is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deepmf.factorization import Factorization
from deepmf.plots.style import Picture, as_picture, component_names, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_maps(
    f: Factorization,
    layer: int,
    image: Picture,
    names: Sequence[str] | None = None,
) -> Figure:
    """One map per component of a layer, each with its own colour bar.

    Parameters
    ----------
    f : Factorization
        The fit to a scene.
    layer : int
        Which layer, from 1.
    image : callable or (rows, columns)
        From one value per pixel to a picture, such as `deepmf.datasets.Dataset.image`.
    names : sequence of str, optional
        Names of the components.
    """
    codes = f.codes(layer)
    labels = component_names(names, len(codes))
    columns = min(4, len(codes))
    rows = -(-len(codes) // columns)
    fig = new_figure(2.6 * columns, 2.4 * rows)
    axes = fig.subplots(rows, columns, squeeze=False)
    for k, ax in enumerate(axes.flat):
        ax.set_axis_off()
        if k < len(codes):
            shown = ax.imshow(as_picture(image, codes[k]), cmap="viridis", interpolation="nearest")
            fig.colorbar(shown, ax=ax, shrink=0.8).ax.tick_params(labelsize=6)
            ax.set_title(labels[k], fontsize=9)
    return fig
