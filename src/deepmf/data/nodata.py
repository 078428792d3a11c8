"""Bands and pixels of a scene that hold no data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import Message, setting
from deepmf.data.lazy_cube import blocks, is_lazy, is_masked

Bools = NDArray[np.bool_]


class Selection(NamedTuple):
    """The part of a scene that holds data."""

    bands: Bools
    """Good bands with data in at least one pixel."""
    pixels: Bools | None = None
    """Pixels to keep; None: all."""
    missing: float | None = None
    """Value of the missing entries of these pixels, where it is not NaN."""
    notes: tuple[str, ...] = ()


def select(X: Any, nodata: float | None, bands: Bools, gaps: bool) -> Selection:
    """Choose the bands and pixels to keep.

    A pixel without data in all bands is dropped, and one that lacks some bands is dropped unless
    ``gaps``. The no-data value in some bands of a pixel is an ordinary value if it lies within the
    range of the data (a dark pixel, say), and a missing one otherwise.

    Parameters
    ----------
    X : bands x pixels
        May be mapped, masked or a Dask array.
    nodata : float, optional
        The no-data value; NaN and masked entries always count as missing.
    bands : array of bools
        Good bands, to choose from.
    gaps : bool
        Keep pixels that lack some bands.
    """
    if X.dtype.kind != "f" and nodata is None and not is_masked(X):
        return Selection(bands)
    found = _scan(X, nodata, bands)
    filled = bands & found.bands
    if filled.any() and (filled != bands).any():
        found = _scan(X, nodata, filled)  # a pixel needs no data in bands that are empty everywhere
    if not (found.nan | found.marked).any():
        return Selection(filled)
    partly = found.marked & ~found.empty
    ordinary = bool(partly.any()) and nodata is not None and _is_within(X, nodata, filled)
    lacking = (found.nan if ordinary else found.nan | found.marked) & ~found.empty
    n, notes = len(partly), []
    if found.empty.any():
        notes.append(f"Pixels without data, left out: {found.empty.sum()} of {n}.")
    if ordinary:
        notes.append(
            f"Pixels with the no-data value {nodata:g} in some bands only, kept as a value there: "
            f"{partly.sum()} of {n}."
        )
    if lacking.any():
        count = f"{lacking.sum()} of {n}"
        notes.append(
            f"Pixels that lack some bands, kept: {count}."
            if gaps
            else Message(
                f"Pixels that lack some bands, left out: {count}; {setting(weights='observed')} "
                f"keeps them."
            )
        )
    pixels = ~found.empty if gaps else ~(found.empty | lacking)
    missing = nodata if gaps and not ordinary and partly.any() else None
    return Selection(filled, None if pixels.all() else pixels, missing, tuple(notes))


def missing_to_nan(X: NDArray, missing: float) -> NDArray:
    """A copy of X with NaN where an entry has the value of missing ones."""
    return np.where(_is_marked(X, missing), np.float32(np.nan), X)


class _Scan(NamedTuple):
    """Bands with data in some pixel; and pixels by what they hold in the chosen bands."""

    bands: Bools
    empty: Bools
    """Pixels without any data."""
    nan: Bools
    """Pixels with a NaN or a masked entry."""
    marked: Bools
    """Pixels with an entry of the no-data value."""


def _scan(X: Any, nodata: float | None, bands: Bools) -> _Scan:
    """Look for entries without data, in one pass over X."""
    m, n = X.shape
    if is_lazy(X):
        from dask.base import compute

        as_bools: dict[str, Any] = {"dtype": bool, "meta": np.empty((0, 0), bool)}
        nan = X.map_blocks(_is_nan, **as_bools)
        marked = X.map_blocks(_is_marked, nodata, **as_bools)
        lost = nan | marked
        parts = (~lost.all(axis=1), lost[bands].all(axis=0), nan[bands].any(axis=0))
        return _Scan(*compute(*parts, marked[bands].any(axis=0)))
    found = _Scan(np.zeros(m, dtype=bool), *(np.zeros(n, dtype=bool) for _ in range(3)))
    for columns, block in blocks(X):
        nan, marked = _is_nan(block), _is_marked(block, nodata)
        lost = nan | marked
        np.logical_or(found.bands, ~lost.all(axis=1), out=found.bands)
        found.empty[columns] = lost[bands].all(axis=0)
        found.nan[columns] = nan[bands].any(axis=0)
        found.marked[columns] = marked[bands].any(axis=0)
    return found


def _is_nan(X: Any) -> Bools:
    """Entries that are NaN or masked."""
    values = np.asarray(X)
    nan = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    return nan | np.ma.getmaskarray(X) if np.ma.isMaskedArray(X) else nan


def _is_marked(X: Any, nodata: float | None) -> Bools:
    """Entries that have the no-data value."""
    values = np.asarray(X)
    return np.zeros(values.shape, dtype=bool) if nodata is None else values == nodata


def _is_within(X: Any, nodata: float, bands: Bools) -> bool:
    """Whether the no-data value lies between zero and the extremes of the data."""
    if nodata == 0:
        return True
    parts = [X[bands].compute()] if is_lazy(X) else (block[bands] for _, block in blocks(X))
    for block in parts:
        values = np.asarray(block)
        beyond = values < nodata if nodata < 0 else values > nodata
        if np.any(beyond & ~_is_nan(block)):
            return True
    return False
