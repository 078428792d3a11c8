"""Components as curves: spectra of materials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from deepmf.core.quadratic import Array
from deepmf.data.layout import Layout
from deepmf.factorization import Factorization, layer_number
from deepmf.hierarchy.names import component_names
from deepmf.plots.fits import fit_of
from deepmf.plots.style import (
    NORMAL,
    SMALL,
    TITLE,
    TWO_COLUMNS,
    Grid,
    color,
    new_figure,
    plain_axes,
)
from deepmf.plots.texts import heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepmf.estimator import DeepMF

_MANY = 24
"""Panels are smaller beyond this number."""


def plot_spectra(
    f: Factorization | DeepMF,
    layer: int,
    wavelengths: ArrayLike | None = None,
    truth: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    *,
    width: float = TWO_COLUMNS,
) -> Figure:
    """Each component in its own panel, in the data's units (see `deepmf.unmixing`).

    ``w / mean |w|`` instead where factors have negative entries, and beside the truth, which is
    dashed and scaled in the same way. Lines break where bad bands were left out.

    Parameters
    ----------
    f : Factorization or fitted DeepMF
        The fit.
    layer : int
        Which layer, from 1.
    wavelengths : array of length m, optional
        In nanometers. Default: the layout's, else the names of its bands where they are few, else
        their numbers.
    truth : array, m x r, optional
        True spectra in the order of the components (see `deepmf.metrics.match`).
    names : sequence of str, optional
        Names of the components.
    width : float
        Largest width of the figure in inches.
    """
    f = fit_of(f)
    W, number = f.basis(layer), layer_number(layer, f.depth)
    labels = component_names(names, number, W.shape[1])
    x, unit, ticks = _axis(f.layout, len(W), wavelengths)
    T = None if truth is None else _same_shape(truth, W, number)
    mixed = f.view(layer).mixture if T is None else None
    pieces = f.layout.pieces() or [slice(0, len(W))]
    many = W.shape[1] > _MANY
    grid = Grid.of(W.shape[1], width, smallest=1.15 if many else 1.7, largest=3.5)
    titles = [heading(label, grid.panel, NORMAL) for label in labels]
    lines = max(len(title.splitlines()) for title in titles)
    height = (0.7 if many else 1.1) + 0.13 * lines
    fig = new_figure(grid.columns * grid.panel, height * grid.rows + (0.7 if ticks else 0.55))
    for k, ax in enumerate(grid.axes(fig, sharex=True)):
        w = _unit_mean(W[:, k]) if mixed is None else mixed.spectra[:, k]
        _draw(ax, x, w, pieces, color=color(0), lw=1.2, label="estimate")
        if T is not None:
            _draw(ax, x, _unit_mean(T[:, k]), pieces, color="0.2", lw=0.9, ls="--", label="truth")
        ax.set_title(titles[k], fontsize=NORMAL, parse_math=False)
        if ticks is not None:
            ax.set_xticks(x, ticks, rotation=90, parse_math=False)
        if ax.dataLim.y0 >= 0:
            ax.set_ylim(bottom=0)
        ax.tick_params(labelsize=SMALL)
        plain_axes(ax)
    if T is not None:
        fig.axes[0].legend(fontsize=SMALL, frameon=False)
    fig.supxlabel(unit, fontsize=NORMAL)
    measure = "spectrum / its mean" if mixed is None else "spectrum, in the data's units"
    fig.supylabel(measure, fontsize=NORMAL)
    fig.suptitle(f"Layer {number}", fontsize=TITLE)
    return fig


def _axis(
    layout: Layout, m: int, wavelengths: ArrayLike | None
) -> tuple[Array, str, list[str] | None]:
    """Positions of the bands, their unit, and their names if these are the ticks."""
    given, unit = wavelengths, "wavelength (nm)"
    ticks = layout.band_ticks() if given is None else None
    if given is None:
        given = layout.wavelengths
    if given is None:
        numbers = layout.feature_numbers(m) + 1
        given, unit = numbers if layout.bands is None else layout.bands, "band"
    x = np.asarray(given, dtype=np.float64)
    if x.shape != (m,):
        raise ValueError(f"wavelengths has shape {x.shape}, but the spectra have {m} bands.")
    return x, unit, ticks


def _same_shape(truth: ArrayLike, W: Array, layer: int) -> Array:
    T = np.asarray(truth)
    if T.shape != W.shape:
        raise ValueError(
            f"truth has shape {T.shape}, but layer {layer} has {W.shape[1]} components of "
            f"{len(W)} bands: it must be {W.shape}, in the components' order."
        )
    return T


def _draw(ax: Axes, x: Array, y: Array, pieces: list[slice], **style: object) -> None:
    """One line with a hole, a NaN, between pieces; a piece of one band is a dot."""
    starts = [piece.start for piece in pieces[1:]]
    (line,) = ax.plot(
        np.insert(x, starts, np.nan),
        np.insert(y.astype(np.float64), starts, np.nan),
        **style,  # type: ignore[arg-type]
    )
    alone = [piece.start for piece in pieces if piece.stop - piece.start == 1]
    if alone:
        ax.plot(x[alone], y[alone], ls="none", marker=".", ms=2, color=line.get_color())


def _unit_mean(v: Array) -> Array:
    mean = float(np.mean(np.abs(v)))
    return v / mean if mean > 0 else v
