"""A random village: a map of six materials, seen by a sensor as area fractions and brightness.

The map is drawn on a grid finer than the pixels and then blurred and averaged, as optics and
detector do. Interiors are pure, borders are mixed, and fractions sum to 1 by construction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepmf.datasets.spectra import MATERIALS

__all__ = ["abundances", "brightness"]

Array = NDArray[np.float64]
Labels = NDArray[np.int_]

_FINE = 4  # cells of the map along one pixel
_CONIFER, _BROADLEAF, _GRASS, _SOIL, _ASPHALT, _ROOF = range(len(MATERIALS))


def abundances(rows: int, cols: int, rng: np.random.Generator) -> Array:
    """Area fraction of each material in each pixel, shape (6, rows, cols).

    ``A_k = average over the pixel of (Gaussian blur of half a pixel) * [label == k]``.
    """
    from scipy.ndimage import gaussian_filter

    labels = _map(rows * _FINE, cols * _FINE, rng)
    fractions = np.empty((len(MATERIALS), rows, cols))
    for k in range(len(MATERIALS)):
        seen = gaussian_filter((labels == k).astype(np.float64), 0.45 * _FINE, truncate=3.0)
        fractions[k] = seen.reshape(rows, _FINE, cols, _FINE).mean(axis=(1, 3))
    fractions[fractions < 1e-12] = 0  # what rounding leaves of a material that is not there
    return fractions / fractions.sum(axis=0)


def brightness(fractions: Array, rng: np.random.Generator) -> Array:
    """Light on each pixel relative to a flat open one, shape (rows, cols), within 0.63 to 1.57.

    ``b = exp(0.08 relief + t texture)``: relief is smooth; texture differs from pixel to pixel,
    with t large in forest (crowns and their shadows), small on roads; both are cut at 2.5
    standard deviations.
    """
    roughness = np.array([0.10, 0.09, 0.05, 0.05, 0.03, 0.05])
    shape = fractions.shape[1:]
    relief = _field(shape, 0.15 * min(shape), rng).clip(-2.5, 2.5)
    texture = _field(shape, 0.6, rng).clip(-2.5, 2.5)
    return np.exp(0.08 * relief + np.tensordot(roughness, fractions, axes=1) * texture)


def _map(rows: int, cols: int, rng: np.random.Generator) -> Labels:
    """Woods, meadows and bare fields first, then the roads, then the houses along them."""
    size = min(rows, cols)
    labels = np.full((rows, cols), _GRASS)
    wood = _field((rows, cols), 0.10 * size, rng) + 0.12 * _field((rows, cols), 0.015 * size, rng)
    labels[_top(wood, 0.45)] = _BROADLEAF
    stand = _field((rows, cols), 0.07 * size, rng) + 0.25 * _field((rows, cols), 0.015 * size, rng)
    labels[_top(stand, 0.45, labels == _BROADLEAF)] = _CONIFER
    bare = _field((rows, cols), 0.08 * size, rng) + 0.06 * _field((rows, cols), 0.015 * size, rng)
    labels[_top(bare, 0.45, labels == _GRASS)] = _SOIL
    road, street = _roads(rows, cols, rng)
    _build_houses(labels, road, street, rng)
    _pave(labels, road, street)
    return labels


def _roads(rows: int, cols: int, rng: np.random.Generator) -> tuple[Labels, Labels]:
    """Center lines: a road from top to bottom (a column per row), a street across it."""
    size = min(rows, cols)
    bend = 0.05 * size * _field((rows, 1), 0.2 * size, rng)[:, 0]
    road = rng.uniform(0.35, 0.65) * cols + bend
    bend = 0.03 * size * _field((cols, 1), 0.2 * size, rng)[:, 0]
    street = rng.uniform(0.35, 0.65) * rows + bend
    return road.astype(int), street.astype(int)


def _half_width(labels: Labels) -> int:
    """Half a road's width: 2.4 % of the scene, at least 1.6 pixels so that its middle is pure."""
    return int(max(1.6 * _FINE, 0.024 * min(labels.shape)))


def _pave(labels: Labels, road: Labels, street: Labels) -> None:
    rows, cols = np.ogrid[: labels.shape[0], : labels.shape[1]]
    half = _half_width(labels)
    labels[np.abs(cols - road[:, None]) <= half] = _ASPHALT
    labels[np.abs(rows - street[None, :]) <= half] = _ASPHALT


def _build_houses(labels: Labels, road: Labels, street: Labels, rng: np.random.Generator) -> None:
    """Rows of roofs on both sides of both roads, each on a plot of grass."""
    unit = max(4 * _FINE, int(0.055 * min(labels.shape)))  # a house's side
    gap = _half_width(labels) + unit // 3
    for line, grid in ((road, labels), (street, labels.T)):
        for side in (-1, 1):
            at = int(rng.integers(unit))
            while at + 2 * unit < len(line):
                along = int(unit * rng.uniform(0.9, 1.8))
                across = int(unit * rng.uniform(0.9, 1.2))
                near = int(line[at + along // 2]) + side * (gap + int(unit * rng.uniform(0, 0.4)))
                low, high = sorted((near, near + side * across))
                plot = _rectangle(grid, at, at + along, low, high, margin=unit // 4)
                plot[plot != _ROOF] = _GRASS
                _rectangle(grid, at, at + along, low, high)[:] = _ROOF
                at += along + int(unit * rng.uniform(0.5, 2.0))


def _rectangle(
    grid: Labels, top: int, bottom: int, left: int, right: int, margin: int = 0
) -> Labels:
    """A view of the part of a rectangle that is on the map."""
    return grid[
        max(top - margin, 0) : max(bottom + margin, 0),
        max(left - margin, 0) : max(right + margin, 0),
    ]


def _field(shape: tuple[int, ...], scale: float, rng: np.random.Generator) -> Array:
    """A smooth Gaussian random field of mean 0 and standard deviation 1."""
    from scipy.ndimage import gaussian_filter

    values = rng.standard_normal(shape)
    sigma = [scale if length > 1 else 0.0 for length in shape]
    values = gaussian_filter(values, sigma, mode="reflect", truncate=3.0)
    return (values - values.mean()) / values.std()


def _top(values: Array, share: float, where: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """The given share of the cells (of those in ``where``) with the largest values."""
    inside = np.ones(values.shape, dtype=bool) if where is None else where
    return inside & (values >= np.quantile(values[inside], 1 - share))
