"""Error curves over the sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from deepmf.factorization import Factorization
from deepmf.plots.style import color, new_figure, plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_errors(fits: Factorization | Mapping[str, Factorization]) -> Figure:
    """Relative errors of both kinds (rows) at each layer (columns), one curve per fit.

    Parameters
    ----------
    fits : Factorization, or mapping of label to Factorization
        One fit, or several to the same data.
    """
    if isinstance(fits, Factorization):
        fits = {fits.problem.loss.name: fits}
    depth = max(f.depth for f in fits.values())
    fig = new_figure(3.0 * depth + 0.8, 4.6)
    axes = fig.subplots(2, depth, squeeze=False, sharex=True)
    kinds = (("layer_errors", "layer-centric"), ("data_errors", "data-centric"))
    for row, (attribute, kind) in enumerate(kinds):
        for layer in range(depth):
            ax = axes[row, layer]
            for k, (label, f) in enumerate(fits.items()):
                errors = getattr(f.history, attribute)
                if layer < errors.shape[1]:
                    ax.semilogy(
                        np.arange(len(errors)), errors[:, layer], color=color(k), label=label
                    )
            plain_axes(ax)
            ax.grid(axis="y", color="0.92", lw=0.6)
            if row == 0:
                ax.set_title(f"Layer {layer + 1}", fontsize=10)
            if layer == 0:
                ax.set_ylabel(f"relative {kind} error", fontsize=8)
    axes[0, 0].legend(fontsize=7, frameon=False)
    fig.supxlabel("sweep", fontsize=9)
    return fig
