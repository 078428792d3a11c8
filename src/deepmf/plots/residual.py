"""Relative residuals of the samples: a map of a scene, a histogram of other data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from deepmf.core.quadratic import Array
from deepmf.data.preparation import prepared_alike
from deepmf.factorization import Factorization, layer_number
from deepmf.hierarchy.names import sample_names
from deepmf.metrics import relative_residuals
from deepmf.plots.fits import data_of, fit_of
from deepmf.plots.images import Picture, Scale, draw_bar, draw_image, is_flat, to_picture
from deepmf.plots.style import (
    NORMAL,
    ONE_COLUMN,
    SMALL,
    TITLE,
    TWO_COLUMNS,
    color,
    new_figure,
    plain_axes,
)
from deepmf.plots.texts import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepmf.estimator import DeepMF

_WORST = 10
"""Samples that are named."""


def relative_residual(f: Factorization | DeepMF, X: Any, layer: int = 1) -> Array:
    """||x_j - W_l h_j|| / ||x_j|| of every sample x_j and its codes h_j in the layer.

    Parameters
    ----------
    f : Factorization or fitted DeepMF
        The fit.
    X : array or SciPy sparse matrix, m x n
        The data it was fitted to, as they came; NaN are missing entries, which are left out.
    layer : int
        Which layer, from 1.

    Returns
    -------
    array of n floats
        See `deepmf.metrics.relative_residuals`.
    """
    data, f = data_of(f, X), fit_of(f)
    return relative_residuals(prepared_alike(data, f.layout), f.basis(layer), f.codes(layer))


def plot_residual(
    f: Factorization | DeepMF,
    X: Any = None,
    layer: int = 1,
    *,
    residual: ArrayLike | None = None,
    image: Picture | None = None,
    samples: Sequence[str] | None = None,
) -> Figure:
    """Relative residuals: of a scene as a map, of other data as a histogram with the worst named.

    Parameters
    ----------
    f : Factorization or fitted DeepMF
        The fit.
    X : array or SciPy sparse matrix, m x n
        The data it was fitted to; NaN are missing entries, which are left out.
    layer : int
        Which layer, from 1.
    residual : array of n floats, optional
        What `relative_residual` gave for this layer, instead of X.
    image : callable or (rows, columns), optional
        From one value per pixel of a scene to a picture. Default: the layout's.
    samples : sequence of n str, optional
        Names of the samples. Default: the layout's, else ``X[:, j]``.
    """
    X, f = data_of(f, X), fit_of(f)
    number = layer_number(layer, f.depth)
    values = _values(f, X, number, residual)
    label = rf"relative residual $\|x - W_{number} h\| / \|x\|$"
    if image is not None or f.layout.kind == "scene":
        fig = _map(to_picture(f, image, "columns")(values), label)
    else:
        fig = _histogram(values, sample_names(f.layout, len(values), samples), label)
    fig.suptitle(f"What layer {number} leaves unexplained", fontsize=TITLE)
    return fig


def _values(f: Factorization, X: Any, layer: int, residual: ArrayLike | None) -> Array:
    if residual is None:
        if X is None:
            raise ValueError("Pass X, the data of the fit, or residual=relative_residual(f, X).")
        return relative_residual(f, X, layer)
    values, n = np.asarray(residual, dtype=np.float64), f.H[0].shape[1]
    if values.shape != (n,):
        raise ValueError(f"residual has shape {values.shape}, but the fit has {n} samples.")
    return values


def _map(picture: Array, label: str) -> Figure:
    rows, cols = picture.shape
    bar = (0.0, 0.55) if is_flat(picture) else (0.8, 0.0)
    tall = min((ONE_COLUMN - bar[0]) * rows / cols, 5.0)
    fig = new_figure(max(tall * cols / rows + bar[0], 2.0), tall + bar[1] + 0.35)
    ax = fig.subplots()
    scale = Scale.of(picture, "magma")
    shown = draw_image(ax, picture, scale)
    ax.set_axis_off()
    draw_bar(fig, shown, scale, [ax]).set_label(label, fontsize=NORMAL)
    return fig


def _histogram(values: Array, names: list[str], label: str) -> Figure:
    known = np.isfinite(values)
    fig = new_figure(TWO_COLUMNS, 2.2)
    left, right = fig.subplots(1, 2)
    left.hist(values[known], bins="auto", color=color(0), alpha=0.85)
    left.set_xlabel(label, fontsize=NORMAL)
    left.set_ylabel("samples", fontsize=NORMAL)
    for ax in (left, right):
        ax.tick_params(labelsize=SMALL)
        plain_axes(ax)
    right.set_xlabel(label, fontsize=NORMAL)
    _draw_worst(right, values, names)
    return fig


def _draw_worst(ax: Axes, values: Array, names: list[str]) -> None:
    worst = np.argsort(-values, kind="stable")[:_WORST]
    lengths = np.where(np.isfinite(values[worst]), values[worst], 0)
    ax.barh(range(len(worst)), lengths, height=0.7, color=color(1))
    ax.set_yticks(
        range(len(worst)), [shorten(names[j], 2.0, SMALL) for j in worst], parse_math=False
    )
    ax.invert_yaxis()
    ax.set_title(f"the {len(worst)} worst of {len(values)} samples", fontsize=NORMAL)
