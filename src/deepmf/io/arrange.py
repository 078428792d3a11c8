"""From what a file holds to X (features x samples) and its layout: the same for all formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf.dataset import Dataset
from deepmf.io.bands import band_numbers, read_wavelengths
from deepmf.io.base import Reading, UnreadableError
from deepmf.layout import Layout

_PLAIN = Layout()
_BLOCK = 1 << 24
"""Entries looked at together when missing values are sought."""


def from_cube(
    path: Path,
    cube: Any,
    reading: Reading,
    *,
    axis: Literal["first", "last"] | None = None,
    wavelengths: Any = None,
    bad: Any = None,
    nodata: float | None = None,
    layout: Layout = _PLAIN,
) -> Dataset:
    """A scene from an array of rows x cols x bands (or bands x rows x cols).

    Bad bands, and bands without data in any pixel, are left out; so are pixels without data in some
    remaining band. A cube of floats with nothing to leave out is not copied.

    Parameters
    ----------
    path : Path
        The file, for messages and the name.
    cube : array, 3-D
        May be memory-mapped or masked.
    reading : Reading
        The user's answers; they win over what follows.
    axis : {"first", "last"}, optional
        The spectral axis, where the format knows it.
    wavelengths : array_like, optional
        Of all bands, in nanometres.
    bad : array_like of bool, optional
        Bands the file marks as bad.
    nodata : float, optional
        The value of pixels without data; NaN always counts.
    layout : Layout
        Coordinates and header to keep; ``features`` are the names of all bands.
    """
    cube = _bands_last(path, cube, axis or reading.bands, reading, wavelengths)
    rows, cols, m = cube.shape
    pixels = cube.reshape(rows * cols, m)
    layout = replace(layout, image_shape=(rows, cols), order="C", pixels="columns")
    return _scene(path, pixels.T, reading, wavelengths, bad, nodata, layout)


def from_matrix(
    path: Path,
    A: Any,
    reading: Reading,
    *,
    rows: Literal["features", "samples"] = "features",
    wavelengths: Any = None,
    bad: Any = None,
    nodata: float | None = None,
    layout: Layout = _PLAIN,
) -> Dataset:
    """A matrix, dense or sparse; with a picture shape its columns are a scene or its rows pictures.

    ``rows`` says what the format's rows are when the user does not; ``layout`` is that of features
    x samples, whichever way the file has them.
    """
    if A.ndim != 2:
        raise UnreadableError(f"{path} holds an array of shape {A.shape}; expected a matrix.")
    X = A.T if (reading.rows or rows) == "samples" else A
    shape, order = reading.image or layout.image_shape, reading.order or layout.order
    if shape is not None:
        count = shape[0] * shape[1]
        if count not in X.shape:
            raise UnreadableError(
                f"{path} has {X.shape[0]} features x {X.shape[1]} samples, and a picture of "
                f"{shape[0]} x {shape[1]} = {count} pixels fits neither. Check the shape of the "
                f"picture, or say what the rows of the matrix are."
            )
        pixels = layout.pixels if reading.image is None else _pixel_axis(X.shape, count)
        layout = replace(layout, image_shape=shape, order=order, pixels=pixels)
    if layout.kind == "scene" and not sparse.issparse(X):
        return _scene(path, X, reading, wavelengths, bad, nodata, layout)
    waves = _wavelengths(path, reading, wavelengths, X.shape[0])
    return Dataset(path.stem, _as_numbers(path, X), replace(layout, wavelengths=waves))


def _pixel_axis(shape: tuple[int, int], count: int) -> Literal["columns", "rows"]:
    return "columns" if shape[1] == count else "rows"


def _bands_last(
    path: Path,
    cube: Any,
    axis: Literal["first", "last"] | None,
    reading: Reading,
    wavelengths: Any,
) -> Any:
    """The cube as rows x cols x bands, refused where its shape shows another order."""
    if cube.ndim != 3:
        raise UnreadableError(
            f"{path} holds an array of shape {cube.shape}; expected a cube of rows x cols x bands."
        )
    shape = cube.shape
    listed = reading.wavelengths and len(read_wavelengths(reading.wavelengths))
    count = listed or (None if wavelengths is None else len(wavelengths))
    place = {"first": 0, "last": 2, None: 2}[axis]
    if count is not None and shape[place] != count and axis is None and shape.count(count) == 1:
        place = shape.index(count)  # settled by the only axis that fits the list
    elif axis is None and count is None and shape[0] != shape[1] and shape[2] in shape[:2]:
        raise UnreadableError(
            f"{path} holds a cube of shape {shape}, which does not look like rows x cols x bands. "
            f"Say which axis is spectral: --bands first, or --bands last."
        )
    return np.moveaxis(cube, place, 2)


def _scene(
    path: Path,
    X: Any,
    reading: Reading,
    wavelengths: Any,
    bad: Any,
    nodata: float | None,
    layout: Layout,
) -> Dataset:
    """Leave out bad bands and pixels without data."""
    m = X.shape[0]
    waves = _wavelengths(path, reading, wavelengths, m)
    nodata = reading.nodata if reading.nodata is not None else nodata
    good = np.ones(m, dtype=bool)
    if bad is not None and reading.bad_bands != "none":
        good &= ~np.asarray(bad, dtype=bool)
    if reading.bad_bands is not None and reading.bad_bands != "none":
        good[band_numbers(reading.bad_bands, m) - 1] = False
    lost = _lost(X, nodata)
    good &= ~lost.all(axis=1) if lost is not None else True
    if not good.any():
        raise UnreadableError(f"{path} has no data: all {m} bands are bad or without data.")
    full = lost is None or not lost[good].any()
    valid = None if full or lost is None else ~lost[good].any(axis=0)
    if valid is not None and not valid.any():
        raise UnreadableError(
            f"{path} has no data: each of its {X.shape[1]} pixels lacks data in some band. "
            f"Check the no-data value ({nodata}), or leave out the bands that lack it."
        )
    X = X if good.all() else X[good]
    X = X if valid is None else X[:, valid]
    if layout.image_shape is None:
        raise UnreadableError(f"{path}: nothing says how {X.shape[1]} pixels make a picture.")
    names = layout.features
    kept = replace(
        layout,
        features=None if names is None else names[good],
        wavelengths=None if waves is None else waves[good],
        bands=None if good.all() else np.flatnonzero(good) + 1,
        valid=None if valid is None else valid.reshape(layout.image_shape, order=layout.order),
    )
    return Dataset(path.stem, _as_numbers(path, X), kept)


def _lost(X: Any, nodata: float | None) -> NDArray[np.bool_] | None:
    """Where entries are masked, NaN or equal to the no-data value; None where none is."""
    if np.ma.isMaskedArray(X):
        unmasked = _lost(X.data, nodata)
        masked = np.ma.getmaskarray(X)
        return masked if unmasked is None else masked | unmasked
    if X.dtype.kind != "f" and nodata is None:
        return None
    lost: NDArray[np.bool_] | None = None
    step = max(1, _BLOCK // X.shape[0])
    for start in range(0, X.shape[1], step):
        part = np.asarray(X[:, start : start + step])
        missing = np.isnan(part) if part.dtype.kind == "f" else np.zeros(part.shape, dtype=bool)
        if nodata is not None:
            missing |= part == nodata
        if missing.any():
            lost = np.zeros(X.shape, dtype=bool) if lost is None else lost
            lost[:, start : start + step] = missing
    return lost


def _wavelengths(path: Path, reading: Reading, own: Any, m: int) -> NDArray[np.float64] | None:
    """The user's list, else the file's; one per band."""
    waves = read_wavelengths(reading.wavelengths) if reading.wavelengths else own
    if waves is None:
        return None
    waves = np.asarray(waves, dtype=np.float64)
    if waves.shape != (m,):
        source = reading.wavelengths or path
        raise UnreadableError(
            f"{path} has {m} bands, but {waves.size} wavelengths are listed in {source}. "
            f"If the cube's bands come first, say so with --bands first."
        )
    return waves


def _as_numbers(path: Path, X: Any) -> Any:
    """Small integers as float32, which holds them exactly; other numbers are left to the fit."""
    X = X.data if np.ma.isMaskedArray(X) else X
    if X.dtype.kind not in "buif":
        raise UnreadableError(f"{path} holds {X.dtype} values; expected real numbers.")
    if min(X.shape) == 0:
        raise UnreadableError(f"{path} is empty: {X.shape[0]} features x {X.shape[1]} samples.")
    return X.astype(np.float32) if X.dtype.kind in "bui" and X.dtype.itemsize <= 2 else X


def names_array(names: Sequence[Any] | None) -> NDArray[np.str_] | None:
    """Names as an array of str."""
    return None if names is None else np.asarray([str(name) for name in names], dtype=np.str_)
