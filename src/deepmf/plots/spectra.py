"""Components as curves: spectra of materials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from deepmf.factorization import Factorization
from deepmf.plots.style import color, component_names, new_figure, plain_axes
from deepmf.quadratic import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_spectra(
    f: Factorization,
    layer: int,
    wavelengths: Array | None = None,
    truth: Array | None = None,
    names: Sequence[str] | None = None,
) -> Figure:
    """One small panel per component, scaled to unit mean; the truth dashed, at the same scale.

    Parameters
    ----------
    f : Factorization
        The fit.
    layer : int
        Which layer, from 1.
    wavelengths : array of length m, optional
        In nanometres; without it, bands are numbered.
    truth : array, m x r, optional
        True spectra in the order of the components (see `deepmf.metrics.match`).
    names : sequence of str, optional
        Names of the components.
    """
    W = f.basis(layer)
    labels = component_names(names, W.shape[1])
    x = np.arange(1, len(W) + 1) if wavelengths is None else wavelengths
    columns = 2 if W.shape[1] in (2, 4) else min(3, W.shape[1])
    rows = -(-W.shape[1] // columns)
    fig = new_figure(3.1 * columns, 2.0 * rows + 0.5)
    axes = fig.subplots(rows, columns, squeeze=False, sharex=True)
    for k, ax in enumerate(axes.flat):
        if k >= W.shape[1]:
            ax.set_visible(False)
            continue
        ax.plot(x, _unit_mean(W[:, k]), color=color(k), lw=1.6, label="estimate")
        if truth is not None:
            ax.plot(x, _unit_mean(truth[:, k]), color="0.2", lw=1, ls="--", label="truth")
        ax.set_title(labels[k], fontsize=9)
        ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))
        plain_axes(ax)
    if truth is not None:
        axes[0, 0].legend(fontsize=7, frameon=False)
    fig.supxlabel("band" if wavelengths is None else "wavelength (nm)", fontsize=9)
    fig.supylabel("reflectance / mean", fontsize=9)
    fig.suptitle(f"Layer {layer}", fontsize=10)
    return fig


def _unit_mean(v: Array) -> Array:
    mean = float(np.mean(np.abs(v)))
    return v / mean if mean > 0 else v
