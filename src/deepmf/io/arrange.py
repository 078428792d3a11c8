"""From what a file holds to X (features x samples) and its layout: the same for all formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf.archives import times
from deepmf.dataset import Dataset
from deepmf.factorization import Factorization
from deepmf.foreign import Foreign, as_foreign
from deepmf.io.bands import band_numbers, read_wavelengths
from deepmf.io.base import Reading, UnreadableError
from deepmf.layout import Layout
from deepmf.mixture import FRACTIONS, SPECTRA, mixture
from deepmf.stored import Stored, as_stored

_PLAIN = Layout()
_BLOCK = 1 << 24
"""Entries looked at together when missing values are sought."""

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
    layout: Layout = _PLAIN,
) -> Dataset:
    """A scene from an array of rows x cols x bands (or bands x rows x cols).

    Bad bands, and bands without data in any pixel, are left out; so are pixels without data in some
    remaining band. A cube of floats with nothing to leave out is not copied, unless its bands lie
    between its rows and its columns.

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
        Of all bands, in nanometres.
    bad : array_like of bool, optional
        Bands the file marks as bad.
    nodata : float, optional
        The value of pixels without data; NaN always counts.
    layout : Layout
        Coordinates and header to keep; ``features`` are the names of all bands.
    """
    cube = np.moveaxis(cube, spectral_axis(path, cube.shape, reading, axis, wavelengths), 2)
    check_numbers(path, cube)
    rows, cols, m = cube.shape
    if reading.image not in (None, (rows, cols)):
        raise UnreadableError(
            f"{path} holds a cube of {rows} x {cols} pixels; leave out the shape of its pictures."
        )
    order: Literal["C", "F"] = "C"
    if is_lazy(cube):
        X = cube.reshape(rows * cols, m).T
    else:
        order = "F" if cube.strides[0] < cube.strides[1] else "C"
        X = cube.reshape(rows * cols, m, order=order).T  # a view, in the order that allows one
    layout = replace(layout, image_shape=(rows, cols), order=order, pixels="columns")
    return _scene(path, X, reading, wavelengths, bad, nodata, layout)


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
    X = A.T if _rows(A.shape, reading, rows, wavelengths, layout) == "samples" else A
    layout = _with_picture(path, X.shape, reading, layout)
    if layout.kind == "scene" and not sparse.issparse(X):
        return _scene(path, X, reading, wavelengths, bad, nodata, layout)
    if reading.nodata is not None or (reading.bad_bands and layout.kind == "pictures"):
        raise UnreadableError(
            f"{path} is no scene of pixels, so it has no bad bands or pixels without data to leave "
            f"out; if it is one, give the shape of its picture."
        )
    waves = _wavelengths(path, reading, wavelengths, X.shape[0])
    good = _good(X.shape[0], reading, bad)
    if not good.all():
        X = (X.tocsr() if hasattr(X, "tocsr") else X)[good]
    return Dataset(path.stem, _as_numbers(X), _of_bands(layout, good, waves))


def spectral_axis(
    path: Path,
    shape: tuple[int, ...],
    reading: Reading,
    axis: Literal["first", "last"] | None = None,
    wavelengths: Any = None,
) -> int:
    """Which axis of a cube is spectral: as said, else the only one that fits the wavelengths.

    The last one otherwise, refused where the shape shows another order.
    """
    if len(shape) != 3:
        raise UnreadableError(
            f"{path} holds an array of shape {shape}; expected a cube of rows x cols x bands."
        )
    said = axis or reading.bands
    if said is not None:
        return 0 if said == "first" else 2
    count = _listed(reading, wavelengths)
    if count is not None and shape[2] != count and shape.count(count) == 1:
        return shape.index(count)
    if count is None and shape[0] != shape[1] and shape[2] in shape[:2]:
        raise UnreadableError(
            f"{path} holds a cube of shape {shape}, which does not look like rows x cols x bands. "
            f"Say which axis is spectral: --bands first, or --bands last."
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


class Amounts(NamedTuple):
    """How much of each component every sample holds, as files tell it."""

    kind: Literal["fractions", "codes"]
    values: NDArray
    """Components x samples."""
    text: str
    """What the values are, in a sentence."""

    def maps(self, layout: Layout) -> NDArray:
        """A scene's as pictures, components x rows x cols, NaN where there is no data."""
        return np.stack([layout.image(row) for row in self.values]).astype(self.values.dtype)


def amounts(f: Factorization, layer: int) -> Amounts:
    """Fractions of the pixels of a scene, where its factors have no sign; codes of other data."""
    codes = f.codes(layer)
    mixed = mixture(f.basis(layer), codes) if f.layout.kind == "scene" else None
    if mixed is None:
        chain = " ".join(f"H_{k}" for k in range(layer, 0, -1))
        return Amounts("codes", codes, f"deepmf, layer {layer}: codes {chain}")
    return Amounts("fractions", mixed.fractions, f"deepmf, layer {layer}: {FRACTIONS}")


def components(f: Factorization, layer: int) -> tuple[NDArray, str]:
    """W_l, a scene's in the data's units where its factors have no sign; and what that is."""
    W = f.basis(layer)
    mixed = mixture(W, f.codes(layer)) if f.layout.kind == "scene" else None
    if mixed is None:
        return W, f"deepmf, layer {layer}: components W_{layer} of the fit"
    return mixed.spectra, f"deepmf, layer {layer}: {SPECTRA}"


# --- the matrix ----------------------------------------------------------------------------------


def _listed(reading: Reading, wavelengths: Any) -> int | None:
    """How many wavelengths there are."""
    if reading.wavelengths:
        return len(read_wavelengths(reading.wavelengths))
    return None if wavelengths is None else len(wavelengths)


def _rows(
    shape: tuple[int, int], reading: Reading, rows: Rows | None, wavelengths: Any, layout: Layout
) -> Rows:
    """What the rows of a matrix are."""
    if reading.rows or rows:
        return reading.rows or rows or "features"
    pixels = layout.n_pixels if reading.image is None and layout.kind == "scene" else 0
    if pixels and pixels in shape:
        return "samples" if pixels != shape[1] else "features"
    bands = _listed(reading, wavelengths)
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
            f"{size[0]} x {size[1]} = {count} pixels fits neither. Check the shape of the picture, "
            f"or say what the rows of the matrix are."
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
) -> Dataset:
    """Leave out bad bands and pixels without data."""
    m, n = X.shape
    waves = _wavelengths(path, reading, wavelengths, m)
    nodata = reading.nodata if reading.nodata is not None else nodata
    good, valid = _with_data(X, nodata, _good(m, reading, bad))
    if not good.any():
        raise UnreadableError(f"{path} has no data: all {m} bands are bad or without data.")
    if valid is not None and not valid.any():
        raise UnreadableError(
            f"{path} has no data: each of its {n} pixels lacks data in some band. "
            f"Check the no-data value ({nodata}), or leave out the bands that lack it."
        )
    if valid is not None:
        X = X[good][:, valid] if is_lazy(X) else X[np.ix_(good, valid)]
        shape = layout.image_shape or (1, n)
        layout = replace(layout, valid=valid.reshape(shape, order=layout.order))
    elif not good.all():
        X = X[good]
    return Dataset(path.stem, _as_numbers(X), _of_bands(layout, good, waves))


def _good(m: int, reading: Reading, bad: Any) -> NDArray[np.bool_]:
    """Bands that neither the file nor the user calls bad."""
    good = np.ones(m, dtype=bool)
    if reading.bad_bands == "none":
        return good
    if bad is not None:
        good &= ~np.asarray(bad, dtype=bool)
    if reading.bad_bands is not None:
        good[band_numbers(reading.bad_bands, m) - 1] = False
    return good


def _with_data(
    X: Any, nodata: float | None, good: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Good bands with data in some pixel, and pixels with data in all of these (None: all are)."""
    if X.dtype.kind != "f" and nodata is None and not np.ma.isMaskedArray(X):
        return good, None
    some, valid = _present(X, nodata, good)
    if not some[good].all() and some[good].any():
        return _with_data(X, nodata, good & some)  # pixels need no data in empty bands
    return good & some, None if valid.all() else valid


def _present(
    X: Any, nodata: float | None, good: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Bands with data in some pixel, and pixels with data in all good bands."""
    m, n = X.shape
    if is_lazy(X):
        from dask.base import compute

        lost = X.map_blocks(_lost, nodata, dtype=bool, meta=np.empty((0, 0), bool))
        some, valid = compute(~lost.all(axis=1), ~lost[good].any(axis=0))
        return some, valid
    some, valid = np.zeros(m, dtype=bool), np.ones(n, dtype=bool)
    step = max(1, _BLOCK // m)
    for start in range(0, n, step):
        cols = slice(start, start + step)
        lost = _lost(X[:, cols], nodata)
        some |= ~lost.all(axis=1)
        valid[cols] = ~lost[good].any(axis=0)
    return some, valid


def is_lazy(A: Any) -> bool:
    """Whether an array is one of Dask's, which is not loaded here."""
    kind = as_foreign(A)
    return isinstance(kind, Foreign) and kind.lazy


def _lost(X: Any, nodata: float | None) -> NDArray[np.bool_]:
    """Where entries are masked, NaN or equal to the no-data value."""
    values = np.asarray(X.data if np.ma.isMaskedArray(X) else X)
    lost = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    if nodata is not None:
        lost |= values == nodata
    return lost | np.ma.getmaskarray(X) if np.ma.isMaskedArray(X) else lost


def _of_bands(layout: Layout, good: NDArray[np.bool_], waves: NDArray[np.float64] | None) -> Layout:
    """The layout of the good bands among all of the file's."""
    if good.all():
        return replace(layout, wavelengths=waves)
    return replace(
        layout,
        features=None if layout.features is None else layout.features[good],
        wavelengths=None if waves is None else waves[good],
        bands=np.flatnonzero(good) + 1,
        header={**layout.header, "all_bands": len(good)},
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
            f"--bands (cubes) or --rows (matrices)."
        )
    return waves


def _as_numbers(X: Any) -> Any:
    """Small integers as float32, which holds them exactly; other numbers are left to the fit.

    So are those of a large file, which stays on disk and is read in blocks.
    """
    X = X.data if np.ma.isMaskedArray(X) else X
    if X.dtype.kind not in "bui" or X.dtype.itemsize > 2 or isinstance(as_stored(X), Stored):
        return X
    return (np.asarray(X) if isinstance(X, np.memmap) else X).astype(np.float32)
