"""xarray arrays: named dimensions and coordinates to X and its layout, and codes back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf._utils.optional import need
from deepmf._utils.safe_archives import UnreadableError, check_room
from deepmf.data.assemble import (
    check_numbers,
    from_cube,
    from_matrix,
    names_array,
    spectral_axis,
)
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.lazy_cube import is_lazy
from deepmf.data.provenance import Dimensions, Georeference, Source
from deepmf.data.reading import Reading
from deepmf.data.wavelengths import as_wavelengths, is_length, names_wavelengths

if TYPE_CHECKING:
    import xarray

_SPECTRAL = {"band", "bands", "channel", "channels", "feature", "features", "spectral", "spectrum"}
_SPECTRAL |= {"frequency", "wavenumber", "gene", "genes", "variable"}
_X = {"x", "lon", "longitude", "col", "cols", "column", "columns", "easting", "crosstrack"}
_Y = {"y", "lat", "latitude", "row", "rows", "line", "lines", "northing", "downtrack"}
_SAMPLES = {"sample", "samples", "pixel", "pixels", "obs", "observation", "cell", "time"}
_PLACES = {"projection_x_coordinate", "longitude", "grid_longitude"}
_PLACES |= {"projection_y_coordinate", "latitude", "grid_latitude"}
_DEGREES = re.compile(r"degrees?_?(north|east|n|e)", re.IGNORECASE)
"""Standard names and units of coordinates of a picture."""

_GOOD = {"good_wavelengths", "good_bands", "bbl"}
_CRS = {"crs_wkt", "spatial_ref", "grid_mapping_name"}
_NUMBERS = "buifcmM"
_USUAL = Reading()


def from_dataarray(da: xarray.DataArray, reading: Reading = _USUAL) -> Dataset:
    """X and its layout from named dimensions.

    Parameters
    ----------
    da : DataArray
        A cube, or a matrix. Dimensions of a picture (y, x, lat, lon, ...) hold no features: all
        others do, and several are stacked. Where there is no picture, the spectral dimension (a
        matrix's features) is known by its name or by a coordinate in nanometers or micrometers,
        else by its place as `Reading` says.
    reading : Reading
        Answers to what the array leaves open.
    """
    return arrange(Path(str(da.name or "array")), da, reading)


def codes_to_dataarray(codes: ArrayLike, layout: Layout, names: Sequence[str]) -> xarray.DataArray:
    """Codes with the coordinates of the data they belong to, NaN at pixels without data.

    Parameters
    ----------
    codes : array_like, components x samples
    layout : Layout
        That of the data, see `from_dataarray`.
    names : sequence of str
        Of the components: they take the place of the spectral dimension.
    """
    xr = need("xarray", "cubes", "Writing NetCDF and Zarr files")
    H = codes if is_lazy(codes) else np.asarray(codes)
    scene = layout.kind == "scene"
    dims = layout.dimensions
    if dims is None or len(dims.samples) != 1 + scene:
        names_of_axes = ("y", "x") if scene else ("sample",)
        dims = Dimensions(("component", *names_of_axes), names_of_axes)
    values = _pictures(H, layout) if scene else H
    where = (layout.y, layout.x) if scene else (_as_type(layout.samples, dims.label_type),)
    coords = {dim: place for dim, place in zip(dims.samples, where) if place is not None}
    da = xr.DataArray(
        values,
        dims=("component", *dims.samples),
        coords={"component": names_array(names), **coords},
        name="codes",
    )
    for dim in coords:
        da[dim].attrs.update(dims.attrs.get(dim, {}))
    for name, attrs in layout.georeference.grid_mapping.items():
        da = da.assign_coords({name: ((), 0, attrs)})
        da.encoding["grid_mapping"] = name
    return da.transpose(*(dim if dim in dims.samples else "component" for dim in dims.order))


def _pictures(H: Any, layout: Layout) -> Any:
    """Rows of codes as pictures of their type; those of a Dask array are not computed."""
    if not is_lazy(H):
        return np.stack([layout.image(row) for row in H]).astype(H.dtype)
    if layout.valid is not None:
        valid = layout.valid.ravel()
        place = np.maximum(np.cumsum(valid) - 1, 0)
        H = np.where(valid, H[:, place], H.dtype.type(np.nan))
    return H.reshape(len(H), *(layout.image_shape or ()))


def arrange(path: Path, da: xarray.DataArray, reading: Reading) -> Dataset:
    """See `from_dataarray`; ``path`` is for messages and the name."""
    da = _squeezed(da)
    spectral = _spectral_dims(path, da, reading)
    kept = [dim for dim in da.dims if dim not in spectral]
    if len(kept) not in (1, 2):
        raise UnreadableError(
            f"{path} holds {da.name or 'an array'} of dimensions {_listed(da.dims)}; expected a "
            f"matrix, or a cube with two dimensions of a picture such as y and x: rename them."
        )
    check_numbers(path, da)
    if not da.chunks:
        check_room(path, da.shape, da.dtype)
    if [str(dim).lower() in names for dim, names in zip(kept, (_X, _Y))] == [True, True]:
        kept.reverse()  # pictures have y down and x across, whatever the order in the file
    waves, names, bad = _features(da, spectral)
    along = {dim: da.coords[dim] for dim in kept if dim in da.coords}
    stacked = "_".join(map(str, spectral))
    order = [stacked if dim == spectral[0] else str(dim) for dim in da.dims]
    ticks = [_labels(along.get(dim)) for dim in kept]
    layout = Layout(
        features=names,
        source=Source("xarray"),
        georeference=Georeference(
            grid_mapping={
                str(name): plain(coord.attrs)
                for name, coord in da.coords.items()
                if coord.ndim == 0 and _CRS & set(coord.attrs)
            }
        ),
        dimensions=Dimensions(
            order=tuple(dim for dim in order if dim not in map(str, spectral[1:])),
            samples=tuple(map(str, kept)),
            attrs={str(dim): plain(coord.attrs) for dim, coord in along.items()},
            label_type=None if len(kept) == 2 or ticks[0] is None else ticks[0].dtype.str,
        ),
    )
    ordered = da.transpose(*spectral, *kept)
    array = ordered.data if da.chunks else ordered.to_numpy()
    array = array.reshape(-1, *(da.sizes[dim] for dim in kept)) if len(spectral) > 1 else array
    parts: dict[str, Any] = {"wavelengths": waves, "bad": bad}
    if len(kept) == 2:
        parts["layout"] = replace(layout, y=ticks[0], x=ticks[1])
        data = from_cube(path, array, reading, axis="first", **parts)
    else:
        parts["layout"] = replace(layout, samples=names_array(ticks[0]))
        data = from_matrix(path, array, replace(reading, rows=None), rows="features", **parts)
    what = "pixels" if len(kept) == 2 else "samples"
    said = (
        f"Features are along {_listed(spectral)} of {da.name or 'the array'}, {what} along "
        f"{_listed(kept)}."
    )
    return replace(data, notes=[said, *data.notes])


def has_pictures(da: xarray.DataArray) -> bool:
    """Whether an array has two dimensions of a picture, and others."""
    return len(_spatial(da)) == 2 and _squeezed(da).ndim > 2


def _squeezed(da: xarray.DataArray) -> xarray.DataArray:
    """Without dimensions of one entry beyond three, none of a picture."""
    spatial = _spatial(da)
    single = [dim for dim in da.dims if da.sizes[dim] == 1 and dim not in spatial]
    return da.squeeze(single[: max(0, da.ndim - 3)])


def _spatial(da: xarray.DataArray) -> list[Any]:
    """Dimensions of a picture, by their names or by what their coordinates say."""
    found = []
    for dim in da.dims:
        said = da.coords[dim].attrs if dim in da.coords else {}
        known = str(said.get("standard_name")) in _PLACES or str(said.get("axis")) in ("X", "Y")
        degrees = _DEGREES.fullmatch(str(said.get("units", "")).strip())
        if str(dim).lower() in _X | _Y or known or degrees:
            found.append(dim)
    return found


def _spectral_dims(path: Path, da: xarray.DataArray, reading: Reading) -> list[Any]:
    """The dimensions of bands or features: all that are not of a picture, else by name or place."""
    spatial = _spatial(da)
    others = [dim for dim in da.dims if dim not in spatial]
    if others and len(spatial) == 2:
        return others
    plain_dims = [dim for dim in others if str(dim).lower() not in _SAMPLES]
    for dim in plain_dims:
        if str(dim).lower() in _SPECTRAL or names_wavelengths(str(dim)):
            return [dim]
    for dim in plain_dims:
        if any(c.dims == (dim,) and is_length(c.attrs.get("units")) for c in da.coords.values()):
            return [dim]
    for few in (plain_dims, others):
        if len(few) == 1:
            return few
    if not others:
        raise UnreadableError(
            f"{path} holds {da.name or 'an array'} of dimensions {_listed(da.dims)}, which are "
            f"those of pictures alone; expected one more, of bands or times, for the features."
        )
    if da.ndim == 3:
        place = spectral_axis(path, da.shape, reading)
    else:
        place = 1 if reading.rows == "samples" else 0
    if place >= da.ndim or da.dims[place] in spatial:
        raise UnreadableError(
            f"{path} holds {da.name or 'an array'} of dimensions {_listed(da.dims)}, of which "
            f"none is plainly that of the features; rename it to band."
        )
    return [da.dims[place]]


def _features(
    da: xarray.DataArray, spectral: Sequence[Any]
) -> tuple[NDArray[np.float64] | None, NDArray[np.str_] | None, NDArray[np.bool_] | None]:
    """Wavelengths, names and bad bands; of several dimensions, names of all combinations."""
    if len(spectral) == 1:
        waves, names, bad = _bands(da, spectral[0])
        named = names is not None or waves is not None or not _is_time(da, spectral[0])
        return waves, names if named else names_array(_ticks(da, spectral[0])), bad
    parts = [_ticks(da, dim) for dim in spectral]
    return None, names_array(" ".join(words) for words in itertools.product(*parts)), None


def _is_time(da: xarray.DataArray, dim: Any) -> bool:
    """Whether a dimension has dates."""
    coord = da.coords.get(dim)
    return coord is not None and (
        coord.dtype.kind in "mM" or " since " in str(coord.attrs.get("units", ""))
    )


def _ticks(da: xarray.DataArray, dim: Any) -> list[str]:
    """Label of each place along a dimension: its name, date, wavelength or number."""
    waves, names, _ = _bands(da, dim)
    if names is not None:
        return list(names)
    if waves is not None:
        return [f"{wave:g} nm" for wave in waves]
    letter, coord = str(dim)[0], da.coords.get(dim)
    if coord is None:
        return [f"{letter}{k}" for k in range(da.sizes[dim])]
    if _is_time(da, dim):
        return _dates(coord)
    return [f"{letter}{value:g}" for value in coord.to_numpy()]


def _dates(coord: xarray.DataArray) -> list[str]:
    """Dates as the shortest text that distinguishes them; other values as numbers."""
    xr = need("xarray", "cubes", "Reading dates")
    try:
        values = xr.decode_cf(coord.to_dataset(name="dates").reset_coords(drop=True))
        times = np.asarray(values["dates"]).astype("datetime64[s]")
    except (ValueError, TypeError, KeyError, OverflowError):
        return [str(value) for value in coord.to_numpy()]
    days = times.astype("datetime64[D]")
    return [str(v) for v in (days if len(np.unique(days)) == len(times) else times)]


def _bands(
    da: xarray.DataArray, spectral: Any
) -> tuple[NDArray[np.float64] | None, NDArray[np.str_] | None, NDArray[np.bool_] | None]:
    """Wavelengths, names and bad bands among the coordinates of the spectral dimension."""
    waves = names = bad = None
    for name, coord in da.coords.items():
        if coord.dims != (spectral,):
            continue
        values, unit = coord.to_numpy(), coord.attrs.get("units")
        if str(name).lower() in _GOOD:
            bad = values == 0
        elif values.dtype.kind not in _NUMBERS:
            names = names_array(values.tolist())
        elif names_wavelengths(str(name)) or is_length(unit):
            waves = as_wavelengths(values, unit) if waves is None else waves
    return waves, names, bad


def _listed(dims: Sequence[Any]) -> str:
    return ", ".join(map(str, dims))


def plain(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as JSON can hold them."""
    return {
        str(key): value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for key, value in attrs.items()
        if isinstance(value, str | int | float | np.ndarray | np.generic)
    }


def _labels(coord: Any) -> NDArray | None:
    """A coordinate's values: numbers, dates or text."""
    if coord is None:
        return None
    values = np.asarray(coord)
    return values if values.dtype.kind in _NUMBERS else names_array(values.tolist())


def _as_type(labels: NDArray[np.str_] | None, kind: str | None) -> NDArray | None:
    """Labels as the numbers or dates that they were."""
    return labels if labels is None or kind is None else labels.astype(kind)
