"""Assembles X (features x samples) and its layout from the arrays of a file or an object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf._utils.messages import Message, setting
from deepmf._utils.safe_archives import UnreadableError, times
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.lazy_cube import Flat, Pixels, dtype_read, is_lazy, unmasked
from deepmf.data.nodata import missing_to_nan, select
from deepmf.data.on_disk import OnDisk, is_large
from deepmf.data.reading import Reading
from deepmf.data.wavelengths import band_numbers, read_wavelengths

_PLAIN = Layout()
_SURELY_FINE = 10**6
_EMPTY = 100
"""Rows or columns per entry, above the number that is surely fine, that make a size absurd."""

Rows = Literal["features", "samples"]


def from_cube(
    path: Path,
    cube: Any,
    reading: Reading,
    *,
    axis: Literal["first", "last"] | None = None,
    wavelengths: Any = None,
    bad: Any = None,
    nodata: float | None = None,
    factor: float = 1.0,
    layout: Layout = _PLAIN,
) -> Dataset:
    """A scene from an array of rows x cols x bands (or bands x rows x cols).

    Bad bands, and bands without data in any pixel, are left out; so are pixels without data in all
    remaining bands, and unless ``reading.gaps`` those that lack some. A cube of floats with nothing
    to leave out is not copied, unless its bands lie between its rows and its columns; a large file
    stays on disk in any case.

    Parameters
    ----------
    path : Path
        The file, for messages and the name.
    cube : array, 3-D
        May be memory-mapped or masked.
    reading : Reading
        The user's answers; they win over what follows.
    axis : {"first", "last"}, optional
        The spectral axis, where the format fixes it.
    wavelengths : array_like, optional
        Of all bands, in nanometers.
    bad : array_like of bool, optional
        Bands the file marks as bad.
    nodata : float, optional
        The value of pixels without data; NaN always counts. In some bands of a pixel alone it is a
        value like any other where the data reach it, or zero, and missing where they do not.
    factor : float
        What the file's values are to be divided by.
    layout : Layout
        Coordinates and metadata to keep; ``features`` are the names of all bands.
    """
    shape = cube.shape
    place = spectral_axis(path, shape, reading, axis, wavelengths)
    cube = np.moveaxis(cube, place, 2)
    check_numbers(path, cube)
    rows, cols, m = cube.shape
    if reading.image not in (None, (rows, cols)):
        raise UnreadableError(
            f"{path} holds a cube of {rows} x {cols} pixels; leave out {setting('image')}."
        )
    order: Literal["C", "F"] = "C"
    X: Any
    if is_lazy(cube):
        X = cube.reshape(rows * cols, m).T
    else:
        order = "F" if cube.strides[0] < cube.strides[1] else "C"
        slow, fast = (0, 1) if order == "C" else (1, 0)
        if cube.strides[slow] == cube.shape[fast] * cube.strides[fast]:
            X = cube.reshape(rows * cols, m, order=order).T  # a view
        else:
            order, X = "C", Flat(cube)
    layout = replace(layout, image_shape=(rows, cols), order=order, pixels="columns")
    data = _scene(path, X, reading, wavelengths, bad, nodata, layout, factor)
    count = _wavelength_count(reading, wavelengths)
    if axis is not None or reading.bands is not None or shape.count(count) == 1:
        return data
    said = f"The {('first', 'second', 'last')[place]} axis of its {times(shape)} array is taken as"
    tie = " (another is as long)" if shape.count(m) > 1 else ""
    way = "" if place == 0 else f"; if it is the first, use {setting(bands='first')}"
    return replace(data, notes=[Message(f"{said} the spectral one{tie}{way}."), *data.notes])


def from_matrix(
    path: Path,
    A: Any,
    reading: Reading,
    *,
    rows: Rows | None = None,
    wavelengths: Any = None,
    bad: Any = None,
    nodata: float | None = None,
    layout: Layout = _PLAIN,
) -> Dataset:
    """A matrix, dense or sparse; with a picture shape its columns are a scene or its rows pictures.

    ``rows`` says what the format's rows are when the user does not; where neither does, they are
    features unless only the columns fit the file's picture or wavelengths. ``layout`` is that of
    features x samples, whichever way the file has them.
    """
    if A.ndim != 2:
        raise UnreadableError(
            f"{path} holds an array of shape {A.shape}; expected a matrix or a cube."
        )
    check_numbers(path, A)
    if sparse.issparse(A):
        _check_sparse(path, A)
    X = A.T if _meaning_of_rows(A.shape, reading, rows, wavelengths, layout) == "samples" else A
    layout = _with_picture(path, X.shape, reading, layout)
    if layout.kind == "scene" and not sparse.issparse(X):
        return _scene(path, X, reading, wavelengths, bad, nodata, layout)
    if reading.nodata is not None or (reading.bad_bands and layout.kind == "pictures"):
        raise UnreadableError(
            f"{path} is not a scene of pixels, so it has no bad bands or pixels without data to "
            f"leave out; if it is one, give the shape of its picture with {setting('image')}."
        )
    waves = _wavelengths(path, reading, wavelengths, X.shape[0])
    good = _good_bands(X.shape[0], reading, bad)
    if not good.all():
        X = (X.tocsr() if hasattr(X, "tocsr") else X)[good]
    return Dataset(path.stem, _as_numbers(X), _layout_of_bands(layout, good, waves))


def spectral_axis(
    path: Path,
    shape: tuple[int, ...],
    reading: Reading,
    axis: Literal["first", "last"] | None = None,
    wavelengths: Any = None,
) -> int:
    """The spectral axis of a cube: as given, else the only one that fits the wavelengths.

    The last one otherwise, refused where the shape shows another order.
    """
    if len(shape) != 3:
        raise UnreadableError(
            f"{path} holds an array of shape {shape}; expected a cube of rows x cols x bands."
        )
    said = axis or reading.bands
    if said is not None:
        return 0 if said == "first" else 2
    count = _wavelength_count(reading, wavelengths)
    if count is not None and shape[2] != count and shape.count(count) == 1:
        return shape.index(count)
    if count is None and shape[0] != shape[1] and shape[2] in shape[:2]:
        raise UnreadableError(
            f"{path} holds a cube of shape {shape}, which does not look like rows x cols x bands. "
            f"Say which axis is spectral: {setting(bands='first')} or {setting(bands='last')}."
        )
    return 2


def check_numbers(path: Path, A: Any) -> None:
    """Refuse text, complex numbers, objects and empty arrays."""
    if A.dtype.kind not in "buif":
        raise UnreadableError(f"{path} holds {A.dtype} values; expected real numbers.")
    if min(A.shape) == 0:
        raise UnreadableError(f"{path} is empty: its array is {times(A.shape)}.")


def check_sparse_size(path: Path, shape: Sequence[int], entries: int) -> None:
    """Refuse a sparse matrix that is nearly all empty rows or columns: each costs memory later."""
    if max(shape) > max(_SURELY_FINE, _EMPTY * entries):
        raise UnreadableError(
            f"{path} claims {times(shape)} with {entries} entries, which cannot be true of a "
            f"matrix of data. It may be damaged; get or write it again."
        )


def _check_sparse(path: Path, A: Any) -> None:
    check_sparse_size(path, A.shape, A.nnz)
    if hasattr(A, "check_format"):
        A.check_format(full_check=True)  # a damaged index would reach outside


def names_array(names: Iterable[Any] | None) -> NDArray[np.str_] | None:
    """Names as an array of str."""
    return None if names is None else np.asarray([str(name) for name in names], dtype=np.str_)


def only_counts(index: Any) -> bool:
    """Whether a pandas index is the one that tables have when nobody names their rows.

    Since pandas 3.1 names may be a RangeIndex too, where a column of consecutive numbers became
    the index; then that column's name is the index's.
    """
    return type(index).__name__ == "RangeIndex" and index.name is None


# --- the matrix ----------------------------------------------------------------------------------


def _wavelength_count(reading: Reading, wavelengths: Any) -> int | None:
    """Number of wavelengths."""
    if reading.wavelengths:
        return len(read_wavelengths(reading.wavelengths))
    return None if wavelengths is None else len(wavelengths)


def _meaning_of_rows(
    shape: tuple[int, int], reading: Reading, rows: Rows | None, wavelengths: Any, layout: Layout
) -> Rows:
    """Meaning of the rows of a matrix: features or samples."""
    if reading.rows or rows:
        return reading.rows or rows or "features"
    pixels = layout.n_pixels if reading.image is None and layout.kind == "scene" else 0
    if pixels and pixels in shape:
        return "samples" if pixels != shape[1] else "features"
    bands = _wavelength_count(reading, wavelengths)
    return "samples" if bands == shape[1] != shape[0] else "features"


def _with_picture(path: Path, shape: tuple[int, int], reading: Reading, layout: Layout) -> Layout:
    """The layout with the user's picture shape, else the file's, along the axis that it fits."""
    size = reading.image or layout.image_shape
    if size is None:
        return layout
    count = size[0] * size[1]
    if count not in shape:
        raise UnreadableError(
            f"{path} has {shape[0]} features x {shape[1]} samples, and a picture of "
            f"{size[0]} x {size[1]} = {count} pixels fits neither. Check {setting('image')}, or "
            f"say what the rows of the matrix are with {setting('rows')}."
        )
    pixels: Literal["columns", "rows"] = "columns" if shape[1] == count else "rows"
    if shape[0] == shape[1]:
        pixels = layout.pixels
    return replace(layout, image_shape=size, order=reading.order or layout.order, pixels=pixels)


# --- bands and pixels to leave out ---------------------------------------------------------------


def _scene(
    path: Path,
    X: Any,
    reading: Reading,
    wavelengths: Any,
    bad: Any,
    nodata: float | None,
    layout: Layout,
    factor: float = 1.0,
) -> Dataset:
    """Leave out bad bands and pixels without data."""
    m, n = X.shape
    waves = _wavelengths(path, reading, wavelengths, m)
    nodata = reading.nodata if reading.nodata is not None else nodata
    kept = select(X, nodata, _good_bands(m, reading, bad), bool(reading.gaps))
    if not kept.bands.any():
        raise UnreadableError(f"{path} has no data: all {m} bands are bad or without data.")
    if kept.pixels is not None:
        if not kept.pixels.any():
            raise UnreadableError(
                f"{path} has no data: each of its {n} pixels lacks data in some band. Check the "
                f"no-data value ({nodata}), leave out the bands that lack it "
                f"({setting('bad_bands')}), or fit what there is: {setting(weights='observed')}."
            )
        shape = layout.image_shape or (1, n)
        layout = replace(layout, valid=kept.pixels.reshape(shape, order=layout.order))
    if is_lazy(X):
        X = X if kept.bands.all() else X[kept.bands]
        X = X if kept.pixels is None else X[:, kept.pixels]
        X = X if kept.missing is None else X.map_blocks(missing_to_nan, kept.missing)
        X = _as_numbers(X if factor == 1 else X / factor)
    else:
        source = X if reading.gaps else unmasked(X)
        X = Pixels(source, kept.bands, kept.pixels, factor, kept.missing).matrix()
    notes = [] if factor == 1 else [f"Values are divided by the file's scale factor, {factor:g}."]
    return Dataset(
        path.stem, X, _layout_of_bands(layout, kept.bands, waves), notes=[*notes, *kept.notes]
    )


def _good_bands(m: int, reading: Reading, bad: Any) -> NDArray[np.bool_]:
    """Bands that neither the file nor the user calls bad."""
    good = np.ones(m, dtype=bool)
    said = reading.bad_bands
    if said is not None and said.partition(",")[0] == "none":
        bad, said = None, said.partition(",")[2] or None
    if bad is not None:
        good &= ~np.asarray(bad, dtype=bool)
    if said is not None:
        good[band_numbers(said, m) - 1] = False
    return good


def _layout_of_bands(
    layout: Layout, good: NDArray[np.bool_], waves: NDArray[np.float64] | None
) -> Layout:
    """The layout of the good bands among all of the file's."""
    if good.all():
        return replace(layout, wavelengths=waves)
    return replace(
        layout,
        features=None if layout.features is None else layout.features[good],
        wavelengths=None if waves is None else waves[good],
        bands=np.flatnonzero(good) + 1,
        total_bands=len(good),
    )


def _wavelengths(path: Path, reading: Reading, own: Any, m: int) -> NDArray[np.float64] | None:
    """The user's list, else the file's; one per band."""
    waves = read_wavelengths(reading.wavelengths) if reading.wavelengths else own
    if waves is None:
        return None
    waves = np.asarray(waves, dtype=np.float64)
    if waves.shape != (m,):
        raise UnreadableError(
            f"{path} has {m} bands, but {waves.size} wavelengths are listed in "
            f"{reading.wavelengths or path}. If the spectral axis is another one, say so with "
            f"{setting('bands')} (cubes) or {setting('rows')} (matrices)."
        )
    return waves


def _as_numbers(X: Any) -> Any:
    """Numbers in the type that they are read in; those of a large file stay on disk."""
    X = X.data if np.ma.isMaskedArray(X) else X
    dtype = dtype_read(X.dtype)
    if X.dtype == dtype:
        return X
    if isinstance(X, np.memmap):
        return OnDisk(X, dtype) if is_large(X) else np.asarray(X).astype(dtype)
    return X.astype(dtype)
