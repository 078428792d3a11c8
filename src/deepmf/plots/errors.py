"""Objective and errors over the sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from deepmf.factorization import Factorization
from deepmf.plots.fits import fit_of
from deepmf.plots.style import (
    NORMAL,
    SMALL,
    TWO_COLUMNS,
    color,
    new_figure,
    plain_axes,
)
from deepmf.quadratic import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepmf.estimators import DeepMF

_DASHES = ("-", "--", "-.", ":")
_FEW = 12
"""Up to this many points, each is marked."""

_KINDS = (
    ("layer_errors", "layer-centric\nrelative squared error"),
    ("data_errors", "data-centric\nrelative squared error"),
)


def plot_errors(
    fits: Factorization | DeepMF | Mapping[str, Factorization | DeepMF],
    *,
    width: float = TWO_COLUMNS,
) -> Figure:
    """Relative squared errors of both kinds (rows) at each layer (columns), and the objective.

    ||W_{l-1} - W_l H_l||^2 / ||W_{l-1}^(0)||^2 and ||X - W_l H_l ... H_1||^2 / ||X||^2 on
    logarithmic axes, one curve per fit.

    Parameters
    ----------
    fits : Factorization or fitted DeepMF, or mapping of label to such
        One fit, or several to the same data.
    width : float
        Of the figure in inches.
    """
    if not isinstance(fits, Mapping):
        fits = {fit_of(fits).problem.loss.name: fits}
    if not fits:
        raise ValueError("There is no fit to draw: fits is empty.")
    drawn = {name: fit_of(f) for name, f in fits.items()}
    depth = max(f.depth for f in drawn.values())
    fig = new_figure(min(width, 1.9 * (depth + 1)), 3.4)
    grid = fig.add_gridspec(2, depth + 1)
    for row, (column, label) in enumerate(_KINDS):
        for layer in range(depth):
            ax = fig.add_subplot(grid[row, layer])
            curves = {
                name: f.history[column][:, layer] for name, f in drawn.items() if layer < f.depth
            }
            _draw(ax, curves, list(drawn))
            if row == 0:
                ax.set_title(f"layer {layer + 1}", fontsize=NORMAL)
            if layer == 0:
                ax.set_ylabel(label, fontsize=NORMAL)
    ax = fig.add_subplot(grid[:, depth])
    _draw(ax, {name: f.history.objective for name, f in drawn.items()}, list(drawn))
    ax.set_title("objective", fontsize=NORMAL)
    fig.supxlabel("sweep", fontsize=NORMAL)
    if len(drawn) > 1:
        handles, labels = ax.get_legend_handles_labels()
        fig.legend(
            handles, labels, loc="outside upper center", ncols=4, fontsize=SMALL, frameon=False
        )
    return fig


def _draw(ax: Axes, curves: Mapping[str, Array], order: list[str]) -> None:
    """Curves over the sweeps, on a logarithmic axis unless an objective is negative."""
    from matplotlib.ticker import MaxNLocator

    logarithmic = _fit_for_logarithms(np.concatenate(list(curves.values())))
    for name, values in curves.items():
        k = order.index(name)
        hidden = ~np.isfinite(values) | (logarithmic & (values == 0))
        shown = np.where(hidden, np.nan, values)
        ax.plot(
            np.arange(len(shown)),
            shown,
            color=color(k),
            ls=_DASHES[k % len(_DASHES)],
            lw=1.2,
            marker="o" if len(shown) <= _FEW else None,
            ms=2.5,
            label=name,
        )
    if logarithmic:
        ax.set_yscale("log")
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.tick_params(labelsize=SMALL, which="both")
    ax.grid(axis="y", which="both", color="0.93", lw=0.4)
    plain_axes(ax)


def _fit_for_logarithms(values: Array) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size and known.min() >= 0 and known.max() > 0)
