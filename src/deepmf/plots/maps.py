"""Maps of components: fractions of pixels, or codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from deepmf.factorization import Factorization, layer_number
from deepmf.hierarchy.names import component_names
from deepmf.plots.fits import fit_of
from deepmf.plots.images import Picture, Scale, draw_bar, draw_image, is_flat, to_picture
from deepmf.plots.style import NORMAL, TITLE, TWO_COLUMNS, Grid, new_figure, note
from deepmf.plots.texts import heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deepmf.estimator import DeepMF

_KINDS = {"fractions": "fractions of each pixel", "codes": "codes"}
_SCALES = {
    "own": "each map has its own color scale",
    "shared": "all maps have one color scale",
}
_LINE = 0.13
"""Height of a title's line in inches."""


def plot_maps(
    f: Factorization | DeepMF,
    layer: int,
    image: Picture | None = None,
    names: Sequence[str] | None = None,
    *,
    show: Literal["fractions", "codes"] = "fractions",
    scale: Literal["own", "shared"] = "own",
    width: float = TWO_COLUMNS,
) -> Figure:
    """One map per component of a layer: how much of it every pixel holds. No data is gray.

    Colors run from 0 to the 99.5th percentile, and on both sides of 0 where codes are signed.

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
    show : {"fractions", "codes"}
        Fractions of the pixel, which sum to 1 (see `deepmf.unmixing`), or codes as they are. Where
        factors have negative entries there are codes only.
    scale : {"own", "shared"}
        Whether each map has its own color scale or all have one.
    width : float
        Largest width of the figure in inches.
    """
    if scale not in _SCALES:
        raise ValueError(f"scale must be 'own' or 'shared', got {scale!r}.")
    if show not in ("fractions", "codes"):
        raise ValueError(f"show must be 'fractions' or 'codes', got {show!r}.")
    f = fit_of(f)
    kind, values, _ = f.view(layer).codes if show == "codes" else f.view(layer).fractions
    labels = component_names(names, layer_number(layer, f.depth), len(values))
    picture = to_picture(f, image, "columns")
    pictures = [picture(row) for row in values]
    grid = Grid.of(len(values), width, smallest=1.4, largest=2.4)
    rows, cols = pictures[0].shape
    bar = (0.0, 0.25) if is_flat(pictures[0]) else (0.4, 0.0)
    titles = [heading(label, grid.panel, NORMAL) for label in labels]
    lines = max(len(title.splitlines()) for title in titles)
    height = min((grid.panel - bar[0]) * rows / cols, 2 * grid.panel) + bar[1] + 0.15
    fig = new_figure(grid.columns * grid.panel, grid.rows * (height + _LINE * lines) + 0.4)
    axes = list(grid.axes(fig))
    for k, ax in enumerate(axes):
        colors = Scale.of(values if scale == "shared" else values[k])
        shown = draw_image(ax, pictures[k], colors)
        ax.set_axis_off()
        ax.set_title(titles[k], fontsize=NORMAL, parse_math=False)
        if scale == "own":
            draw_bar(fig, shown, colors, [ax])
    if scale == "shared":
        draw_bar(fig, shown, colors, axes)
    fig.suptitle(f"Layer {layer_number(layer, f.depth)}", fontsize=TITLE)
    note(fig, f"{_KINDS[kind]}; {_SCALES[scale]}")
    return fig
