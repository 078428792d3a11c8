"""xarray's arrays: named dimensions and coordinates to X and its layout, and codes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf.archives import check_room
from deepmf.dataset import Dataset
from deepmf.io.arrange import (
    check_numbers,
    from_cube,
    from_matrix,
    is_lazy,
    names_array,
    spectral_axis,
)
from deepmf.io.bands import as_wavelengths, is_length, names_wavelengths
from deepmf.io.base import Reading, UnreadableError, need
from deepmf.layout import Layout

if TYPE_CHECKING:
    import xarray

_SPECTRAL = {"band", "bands", "channel", "channels", "feature", "features", "spectral", "spectrum"}
_SPECTRAL |= {"frequency", "wavenumber", "gene", "genes", "variable"}
_X = {"x", "lon", "longitude", "col", "cols", "column", "columns", "easting", "crosstrack"}
_Y = {"y", "lat", "latitude", "row", "rows", "line", "lines", "northing", "downtrack"}
_SAMPLES = {"sample", "samples", "pixel", "pixels", "obs", "observation", "cell", "time"}
_GOOD = {"good_wavelengths", "good_bands", "bbl"}
_CRS = {"crs_wkt", "spatial_ref", "grid_mapping_name"}
_NUMBERS = "buifcmM"
_USUAL = Reading()


def from_dataarray(da: xarray.DataArray, reading: Reading = _USUAL) -> Dataset:
    """X and its layout from named dimensions.

    Parameters
    ----------
    da : DataArray
        A cube, or a matrix. The spectral dimension (a matrix's features) is known by its name or by
        a coordinate in nanometres or micrometres, else by its place as `Reading` says.
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
    H, header = codes if is_lazy(codes) else np.asarray(codes), layout.header
    scene = layout.kind == "scene"
    kept, order = header.get("samples", []), header.get("dims", [])
    if len(kept) != 1 + scene:
        kept = ["y", "x"] if scene else ["sample"]
        order = ["component", *kept]
    values = _pictures(H, layout) if scene else H
    where = (layout.y, layout.x) if scene else (_as_type(layout.samples, header.get("type")),)
    coords = {dim: place for dim, place in zip(kept, where) if place is not None}
    da = xr.DataArray(
        values,
        dims=("component", *kept),
        coords={"component": names_array(names), **coords},
        name="codes",
    )
    for dim in coords:
        da[dim].attrs.update(header.get("coords", {}).get(dim, {}))
    for name, attrs in header.get("crs_variable", {}).items():
        da = da.assign_coords({name: ((), 0, attrs)})
        da.encoding["grid_mapping"] = name
    return da.transpose(*(dim if dim in kept else "component" for dim in order))


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
    single = [dim for dim in da.dims if da.sizes[dim] == 1]
    da = da.squeeze(single[: max(0, da.ndim - 3)])
    if da.ndim not in (2, 3):
        raise UnreadableError(
            f"{path} holds {da.name or 'an array'} of dimensions {', '.join(map(str, da.dims))}; "
            f"expected a matrix or a cube."
        )
    check_numbers(path, da)
    if not da.chunks:
        check_room(path, da.shape, da.dtype)
    spectral = _spectral_dim(path, da, reading)
    kept = [dim for dim in da.dims if dim != spectral]
    if [str(dim).lower() in names for dim, names in zip(kept, (_X, _Y))] == [True, True]:
        kept.reverse()  # pictures have y down and x across, whatever the order in the file
    waves, names, bad = _bands(da, spectral)
    along = {dim: da.coords[dim] for dim in kept if dim in da.coords}
    header: dict[str, Any] = {
        "format": "xarray",
        "dims": [str(dim) for dim in da.dims],
        "samples": [str(dim) for dim in kept],
        "coords": {str(dim): plain(coord.attrs) for dim, coord in along.items()},
        "crs_variable": {
            str(name): plain(coord.attrs)
            for name, coord in da.coords.items()
            if coord.ndim == 0 and _CRS & set(coord.attrs)
        },
    }
    turned = da.transpose(spectral, *kept)
    array = turned.data if da.chunks else turned.to_numpy()
    parts: dict[str, Any] = {"wavelengths": waves, "bad": bad}
    ticks = [_labels(along.get(dim)) for dim in kept]
    if len(kept) == 2:
        parts["layout"] = Layout(features=names, y=ticks[0], x=ticks[1], header=header)
        return from_cube(path, array, reading, axis="first", **parts)
    header["type"] = None if ticks[0] is None else ticks[0].dtype.str
    parts["layout"] = Layout(features=names, samples=names_array(ticks[0]), header=header)
    return from_matrix(path, array, replace(reading, rows=None), rows="features", **parts)


def _spectral_dim(path: Path, da: xarray.DataArray, reading: Reading) -> Any:
    """The dimension of bands or features: by name, by unit, by exclusion, by place."""
    others = [dim for dim in da.dims if str(dim).lower() not in _X | _Y | _SAMPLES]
    for dim in others:
        if str(dim).lower() in _SPECTRAL or names_wavelengths(str(dim)):
            return dim
    for dim in others:
        if any(c.dims == (dim,) and is_length(c.attrs.get("units")) for c in da.coords.values()):
            return dim
    if len(others) == 1:
        return others[0]
    if da.ndim == 3:
        return da.dims[spectral_axis(path, da.shape, reading)]
    return da.dims[1 if reading.rows == "samples" else 0]


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
