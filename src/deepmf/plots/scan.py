"""Figures of a scan of ranks and depths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf.plots.style import NORMAL, SMALL, TWO_COLUMNS, color, new_figure, plain_axes
from deepmf.selection.rule import stable_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepmf.selection.scan import Scan

_CHOICE, _HOLLOW = "ranks to take, or to choose between", "duplicate or empty components"

_WIDE = 5.5
"""Inches: a legend in one line needs them."""

_INCHES = 0.45
"""Inches for each candidate."""


def plot_scan(scan: Scan, *, width: float = TWO_COLUMNS) -> Figure:
    """Error on hidden features, agreement of halves, and volume of every candidate in three panels.

    Errors with their standard errors, agreement with its standard deviation over the splits.
    Shaded are the candidates that the choice is about, hollow those with duplicates or empty
    components.

    Parameters
    ----------
    scan : Scan
        What `deepmf.scan` gave.
    width : float
        Largest width of the figure in inches.
    """
    from matplotlib.lines import Line2D

    order = sorted(scan.candidates, key=lambda c: (len(c.ranks), c.ranks))
    x = np.arange(len(order))
    fig = new_figure(min(width, max(3.5, 1 + _INCHES * len(order))), 4.6)
    axes = list(fig.subplots(3, 1, sharex=True))
    hollow = [bool(c.duplicates or c.empty) for c in order]
    faces = [["white" if bare else color(k) for bare in hollow] for k in range(3)]
    _points(axes[0], x, [100 * c.error for c in order], [100 * c.spread for c in order], faces[0])
    axes[0].set_ylabel("error on hidden\nfeatures in %", fontsize=NORMAL)
    _points(
        axes[1],
        x,
        [c.agreement for c in order],
        [float(c.agreements[:, 0].std()) for c in order],
        faces[1],
    )
    level = axes[1].axhline(stable_level(order), color="0.6", lw=0.8, ls=":")
    axes[1].set_ylim(-0.05, 1.1)
    axes[1].set_ylabel("agreement\nof halves", fontsize=NORMAL)
    _points(axes[2], x, [c.smallest for c in order], None, faces[2])
    axes[2].set_ylim(0, 1.1 * max(c.smallest for c in order) or 1)
    axes[2].set_ylabel("smallest\nsingular value", fontsize=NORMAL)
    labels = [c.label for c in order]
    rotated = max(map(len, labels)) > 3 and len(labels) > 4
    axes[2].set_xticks(x, labels, fontsize=SMALL, rotation=90 if rotated else 0)
    axes[2].set_xlabel("ranks", fontsize=NORMAL)
    plausible = range(scan.choice.between[0], scan.choice.between[-1] + 1)
    favored = {scan.choice.ranks, *((r,) for r in plausible)}
    legend: dict[str, Any] = {}
    for ax in axes:
        for k, c in enumerate(order):
            if c.ranks in favored:
                legend[_CHOICE] = ax.axvspan(k - 0.4, k + 0.4, color="0.92", zorder=0)
        ax.tick_params(labelsize=SMALL)
        plain_axes(ax)
    legend["agreement that counts as reproduced"] = level
    if any(hollow):
        legend[_HOLLOW] = Line2D([], [], marker="o", ms=4, mfc="white", mec="0.3", ls="none")
    fig.legend(
        list(legend.values()),
        list(legend),
        loc="outside upper center",
        ncols=3 if fig.get_figwidth() > _WIDE else 1,
        fontsize=SMALL,
        frameon=False,
    )
    fig.align_ylabels(axes)
    return fig


def _points(
    ax: Axes, x: NDArray[Any], values: ArrayLike, spreads: ArrayLike | None, faces: list[str]
) -> None:
    """Marks with error bars; none where fits diverged."""
    known = np.isfinite(values)
    x, values, faces = x[known], np.asarray(values)[known], list(np.asarray(faces)[known])
    spreads = None if spreads is None else np.asarray(spreads)[known]
    own = next((face for face in faces if face != "white"), "0.3")
    ax.errorbar(x, values, spreads, fmt="none", ecolor=own, elinewidth=0.8, capsize=2)
    ax.scatter(x, values, s=18, c=faces, edgecolors=own, linewidths=0.9, zorder=3)
