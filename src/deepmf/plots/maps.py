"""Codes as maps: where each component is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from deepmf.factorization import Factorization, layer_number
from deepmf.labels import component_names
from deepmf.plots.fits import fit_of
from deepmf.plots.images import Picture, Scale, draw_bar, draw_image, is_flat, to_picture
from deepmf.plots.style import NORMAL, TITLE, TWO_COLUMNS, Grid, new_figure, note
from deepmf.plots.texts import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deepmf.estimators import DeepMF

_NOTES = {
    "own": "codes; each map has its own colour scale",
    "shared": "codes; all maps have one colour scale",
}


def plot_maps(
    f: Factorization | DeepMF,
    layer: int,
    image: Picture | None = None,
    names: Sequence[str] | None = None,
    *,
    scale: Literal["own", "shared"] = "own",
    width: float = TWO_COLUMNS,
) -> Figure:
    """One map per component of a layer: how much of it every pixel holds. No data is grey.

    Colours run from 0 to the 99.5th percentile, and on both sides of 0 where codes are signed.

    Parameters
    ----------
    f : Factorization or fitted DeepMF
        The fit to a scene.
    layer : int
        Which layer, from 1.
    image : callable or (rows, columns), optional
        From one value per pixel to a picture. Default: the layout's.
    names : sequence of str, optional
        Names of the components.
    scale : {"own", "shared"}
        Whether each map has its own colour scale or all have one.
    width : float
        Largest width of the figure in inches.
    """
    if scale not in _NOTES:
        raise ValueError(f"scale must be 'own' or 'shared', got {scale!r}.")
    f = fit_of(f)
    codes = f.codes(layer)
    labels = component_names(names, len(codes))
    picture = to_picture(f, image, "columns")
    pictures = [picture(row) for row in codes]
    grid = Grid.of(len(codes), width, smallest=1.4, largest=2.4)
    rows, cols = pictures[0].shape
    bar = (0.0, 0.3) if is_flat(pictures[0]) else (0.45, 0.0)
    height = min((grid.panel - bar[0]) * rows / cols, 2 * grid.panel) + bar[1] + 0.3
    fig = new_figure(grid.columns * grid.panel, grid.rows * height + 0.4)
    axes = list(grid.axes(fig))
    for k, ax in enumerate(axes):
        colours = Scale.of(codes if scale == "shared" else codes[k])
        shown = draw_image(ax, pictures[k], colours)
        ax.set_axis_off()
        ax.set_title(shorten(labels[k], grid.panel, NORMAL), fontsize=NORMAL, parse_math=False)
        if scale == "own":
            draw_bar(fig, shown, colours, [ax])
    if scale == "shared":
        draw_bar(fig, shown, colours, axes)
    fig.suptitle(f"Layer {layer_number(layer, f.depth)}", fontsize=TITLE)
    note(fig, _NOTES[scale])
    return fig
