"""Objective and errors over the sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.factorization import Factorization
from deepmf.fitting.history import DIVERGED
from deepmf.plots.fits import fit_of
from deepmf.plots.style import (
    NORMAL,
    SMALL,
    TWO_COLUMNS,
    color,
    new_figure,
    plain_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepmf.estimator import DeepMF

_DASHES = ("-", "--", "-.", ":")
_FEW = 12
"""Up to this many points, each is marked."""

_KINDS = (
    ("layer_errors", "error of each layer (%)\n" + r"$\|W_{l-1} - W_l H_l\|$"),
    ("data_errors", "error of the data (%)\n" + r"$\|X - W_l H_l \cdots H_1\|$"),
)
_DEVIANCES = (
    ("layer_errors", "unexplained of\neach layer (%)"),
    ("data_errors", "unexplained of\nthe data (%)"),
)
"""Labels of shares of deviances."""


def plot_errors(
    fits: Factorization | DeepMF | Mapping[str, Factorization | DeepMF],
    *,
    width: float = TWO_COLUMNS,
) -> Figure:
    """Relative errors of both kinds (rows) at each layer (columns), and the objective.

    ||W_{l-1} - W_l H_l|| / ||W_{l-1}^(0)|| and ||X - W_l H_l ... H_1|| / ||X|| in per cent, not
    squared, on logarithmic axes, one curve per fit. Errors above 1000 %, of fits that diverged,
    are not drawn: they would flatten all other curves. Where a fit has another ``beta_loss``, all
    curves are shares of the deviance left (of the squares, for squared errors), and those that were
    measured only at the start and the end are straight lines between.

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
    by_deviance = any(f.problem.fits for f in drawn.values())
    fig = new_figure(min(width, 1.9 * (depth + 1)), 3.4)
    grid = fig.add_gridspec(2, depth + 1)
    for row, (column, label) in enumerate(_DEVIANCES if by_deviance else _KINDS):
        for layer in range(depth):
            ax = fig.add_subplot(grid[row, layer])
            curves = {
                name: _percent(f.history[column][:, layer], by_deviance)
                for name, f in drawn.items()
                if layer < f.depth
            }
            _draw(ax, curves, list(drawn))
            if row == 0:
                ax.set_title(f"layer {layer + 1}", fontsize=NORMAL)
            if layer == 0:
                ax.set_ylabel(label, fontsize=NORMAL)
    ax = fig.add_subplot(grid[:, depth])
    power = _draw(ax, {name: f.history.objective for name, f in drawn.items()}, list(drawn))
    ax.set_title("objective" + (rf" ($10^{{{power}}}$)" if power else ""), fontsize=NORMAL)
    fig.supxlabel("sweep", fontsize=NORMAL)
    if len(drawn) > 1:
        handles, labels = ax.get_legend_handles_labels()
        fig.legend(
            handles, labels, loc="outside upper center", ncols=4, fontsize=SMALL, frameon=False
        )
    return fig


def _percent(shares: Array, by_deviance: bool) -> Array:
    """Shares, or relative errors, not squared; infinite where they say only that a fit diverged."""
    left = np.maximum(shares, 0)
    hidden = left >= DIVERGED**2
    return np.where(hidden, np.inf, 100 * (left if by_deviance else np.sqrt(left)))


def _draw(ax: Axes, curves: Mapping[str, Array], order: list[str]) -> int:
    """Curves over the sweeps, on a logarithmic axis unless an objective is negative.

    A line crosses values that are NaN, which nobody measured, but not those that are infinite.
    Gives the power of ten that the tick labels of large or small numbers leave out.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    values = np.concatenate(list(curves.values()))
    known = np.abs(values[np.isfinite(values) & (values != 0)])
    logarithmic = bool(known.size and np.nanmin(values) >= 0)
    for name, y in curves.items():
        k = order.index(name)
        measured = np.flatnonzero(~np.isnan(y))
        y = y[measured]
        hidden = ~np.isfinite(y) | (logarithmic & (y == 0))
        ax.plot(
            measured,
            np.where(hidden, np.nan, y),
            color=color(k),
            ls=_DASHES[k % len(_DASHES)],
            lw=1.2,
            marker="o" if len(y) <= _FEW else None,
            ms=2.5,
            label=name,
        )
    exponent = int(np.floor(np.log10(known.max()))) if known.size else 0
    power = exponent if not -3 < exponent < 4 else 0
    if logarithmic:
        ax.set_yscale("log")
        decades = np.log10(known.max() / known.min())
        steps = (1, 2, 5) if decades < 3 else (1,)
        ax.yaxis.set_major_locator(LogLocator(subs=steps) if decades > 0.5 else MaxNLocator(4))
        ax.yaxis.set_minor_formatter(NullFormatter())
    few = _digits(known)
    ax.yaxis.set_major_formatter(
        FuncFormatter(
            lambda y, _: np.format_float_positional(
                y / 10.0**power, precision=few, fractional=False, trim="-"
            )
        )
    )
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.tick_params(labelsize=SMALL, which="both")
    ax.grid(axis="y", color="0.93", lw=0.4)
    plain_axes(ax)
    return power


def _digits(values: Array) -> int:
    """Digits that tell ticks between the values apart: at least three."""
    if not values.size or values.max() <= values.min():
        return 3
    span = (values.max() - values.min()) / values.max()
    return int(np.clip(2 - np.floor(np.log10(span)), 3, 8))
