"""The largest features of each component: words of topics, genes of programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from deepmf.core.parameters import check_integer
from deepmf.factorization import Factorization, layer_number
from deepmf.hierarchy.names import component_names, feature_names, top_rows
from deepmf.plots.fits import fit_of
from deepmf.plots.style import (
    NORMAL,
    SMALL,
    TITLE,
    TWO_COLUMNS,
    Grid,
    new_figure,
    plain_axes,
    write,
)
from deepmf.plots.texts import heading, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepmf.estimator import DeepMF

_LINE = 0.125
"""Height of a word in inches."""

_FAINT = 0.01
"""Fraction of a component's largest weight below which a bar cannot be seen."""

_POSITIVE, _NEGATIVE = "#9CCBE5", "#F2B28A"
"""Pale blue and orange, for black words upon them."""


def top_features(
    f: Factorization | DeepMF, layer: int, n: int = 10, features: Sequence[str] | None = None
) -> list[list[tuple[str, float]]]:
    """Per component, the n features of largest ``|W_l(i, k)|``, largest first, with ``W_l(i, k)``.

    Features of weight 0 are left out.

    Parameters
    ----------
    f : Factorization or fitted DeepMF
        The fit.
    layer : int
        Which layer, from 1.
    n : int
        Features per component.
    features : sequence of m str, optional
        Names of X's rows. Default: the layout's names, wavelengths or bands, else ``X[i]``.
    """
    check_integer("n", n, 1)
    f = fit_of(f)
    W = f.basis(layer)
    return top_rows(W, feature_names(f.layout, len(W), features), n)


def plot_words(
    f: Factorization | DeepMF,
    layer: int,
    n: int = 10,
    names: Sequence[str] | None = None,
    *,
    features: Sequence[str] | None = None,
    width: float = TWO_COLUMNS,
) -> Figure:
    """Bars of ``W_l(i, k) / sum_i |W_l(i, k)|``, in percent, for the n largest features of each k.

    Features below a hundredth of the largest, whose bars no one would see, are left out.

    Parameters
    ----------
    f : Factorization or fitted DeepMF
        The fit.
    layer : int
        Which layer, from 1. For all layers at once see `plot_hierarchy`.
    n : int
        Features per component.
    names : sequence of str, optional
        Names of the components.
    features : sequence of m str, optional
        Names of X's rows, see `top_features`.
    width : float
        Largest width of the figure in inches.
    """
    f = fit_of(f)
    tops = [_visible(top) for top in top_features(f, layer, n, features)]
    labels = component_names(names, layer_number(layer, f.depth), len(tops))
    totals = np.abs(f.basis(layer)).sum(axis=0)
    lines = max(map(len, tops), default=1) or 1
    grid = Grid.of(len(tops), width, smallest=1.15, largest=1.8)
    fig = new_figure(grid.columns * grid.panel, grid.rows * (_LINE * lines + 0.3) + 0.55)
    for k, ax in enumerate(grid.axes(fig, sharex=True, sharey=True)):
        _draw(ax, tops[k], float(totals[k]) or 1.0, grid.panel)
        ax.set_title(heading(labels[k], grid.panel, NORMAL), fontsize=NORMAL, parse_math=False)
        ax.set_ylim(lines - 0.4, -0.6)
    fig.supxlabel("share of the component (%)", fontsize=NORMAL)
    fig.suptitle(f"Layer {layer_number(layer, f.depth)}", fontsize=TITLE)
    return fig


def _visible(top: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(name, value) for name, value in top if abs(value) >= _FAINT * abs(top[0][1])]


def _draw(ax: Axes, top: list[tuple[str, float]], total: float, panel: float) -> None:
    """Bars from 0, with each word upon its own from the left edge on."""
    shares = [100 * value / total for _, value in top]
    colors = [_POSITIVE if share > 0 else _NEGATIVE for share in shares]
    ax.barh(range(len(top)), shares, height=0.82, color=colors)
    for line, (word, _) in enumerate(top):
        text = shorten(word, 0.85 * panel, SMALL)
        write(
            ax,
            0.02,
            line,
            text,
            SMALL,
            ha="left",
            va="center_baseline",
            transform=ax.get_yaxis_transform(),
        )
    ax.set_yticks([])
    ax.tick_params(labelsize=SMALL)
    plain_axes(ax)
