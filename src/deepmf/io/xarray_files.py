"""NetCDF and Zarr, with xarray: arrays with named dimensions and coordinates."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deepmf._utils.optional import need
from deepmf._utils.safe_archives import UnreadableError, check_room
from deepmf.data.dataarrays import (
    arrange,
    codes_to_dataarray,
    from_dataarray,
    has_pictures,
    plain,
)
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.provenance import Source
from deepmf.data.reading import Reading
from deepmf.factorization import Factorization
from deepmf.io.format import Format, Variable
from deepmf.io.hdf5 import check_hdf5
from deepmf.io.mat import begins, is_hdf5
from deepmf.io.variables import choose, is_numeric, several

if TYPE_CHECKING:
    import xarray

_MASKS = {"mask", "masks", "flag", "flags", "quality", "qa", "qc", "scl", "cloud", "clouds"}
"""Words in names of arrays that mark pixels."""

Groups = dict[str, "xarray.Dataset"]

__all__ = ["NetCdf", "Zarr", "codes_to_dataarray", "from_dataarray"]


class NetCdf(Format):
    """Dimensions, coordinates and fill values as the file names them."""

    name = "NetCDF"
    suffixes: ClassVar[tuple[str, ...]] = (".nc", ".nc4")
    suffix = ".nc"

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`."""
        with self._groups(path) as groups:
            name = _chosen(path, groups, reading.variable)
            da = _beside(_array(groups, name), groups)
            data = arrange(path, da, reading)
            source = Source(self.name, attrs=plain(groups["/"].attrs))
        return replace(data, layout=replace(data.layout, source=source))

    def variables(self, path: Path) -> list[Variable]:
        """See `Format.variables`."""
        with self._groups(path) as groups:
            return _variables(groups)

    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """See `Format.write`: ``fractions-layer-l``, with the input's coordinates."""
        for layer in range(1, f.depth + 1):
            kind, values, text = f.view(layer).amounts
            codes = codes_to_dataarray(values.astype(np.float32), f.layout, names[layer - 1])
            da = codes.rename(kind).assign_attrs(long_name=text)
            da.encoding = codes.encoding
            self._save(da, f.layout, folder / f"{kind}-layer-{layer}{self.suffix}")

    def write_map(self, folder: Path, name: str, values: Any, layout: Layout) -> None:
        """See `Format.write_map`."""
        codes = np.asarray(values, dtype=np.float32)[None]
        whole = codes_to_dataarray(codes, layout, [name])
        da = whole.isel(component=0, drop=True).rename(name)
        da.encoding = whole.encoding
        self._save(da, layout, folder / f"{name}{self.suffix}")

    def _save(self, da: xarray.DataArray, layout: Layout, path: Path) -> None:
        da.encoding["zlib"] = True
        self._file(da, layout).to_netcdf(path, engine="h5netcdf")

    def _file(self, da: xarray.DataArray, layout: Layout) -> xarray.Dataset:
        return da.to_dataset().assign_attrs(layout.source.attrs)

    @contextmanager
    def _groups(self, path: Path) -> Iterator[Groups]:
        """The file's groups by name, ``/`` for the root; values stay on disk."""
        xr = need("xarray", "cubes", f"Reading {self.name} files")
        with ExitStack() as stack:
            groups = self._open(path, xr, {"decode_times": False, "decode_coords": "all"})
            for ds in groups.values():
                stack.enter_context(ds)
            yield groups

    def _open(self, path: Path, xr: Any, options: Mapping[str, Any]) -> Groups:
        if path.is_file() and is_hdf5(path):
            need("h5netcdf", "cubes", "Reading NetCDF files")
            with need("h5py", "cubes", "Reading NetCDF files").File(path, "r") as file:
                check_hdf5(path, file)
            return xr.open_groups(path, engine="h5netcdf", **options)
        if path.is_file() and begins(path, b"CDF"):
            whole = BytesIO(path.read_bytes())  # SciPy leaves a broken file open
            return {"/": xr.open_dataset(whole, engine="scipy", **options)}
        raise UnreadableError(f"{path} is not a NetCDF file (unexpected signature).")


class Zarr(NetCdf):
    """A folder of chunks."""

    name = "Zarr"
    suffixes = (".zarr",)
    suffix = ".zarr"

    def _open(self, path: Path, xr: Any, options: Mapping[str, Any]) -> Groups:
        need("zarr", "cubes", "Reading Zarr stores")
        if not path.is_dir():
            raise UnreadableError(f"{path} is not a Zarr store: that is a folder.")
        _check_store(path)
        try:
            return xr.open_groups(path, engine="zarr", consolidated=False, **options)
        except (OSError, LookupError, ValueError, AssertionError) as error:
            raise UnreadableError(
                f"{path} is not a whole Zarr group of arrays with named dimensions, such as "
                f"xarray's to_zarr writes ({type(error).__name__})."
            ) from error

    def _save(self, da: xarray.DataArray, layout: Layout, path: Path) -> None:
        self._file(da, layout).to_zarr(path, mode="w", zarr_format=2, consolidated=True)


def _check_store(path: Path) -> None:
    """Refuse pickled objects, and lists and chunks too large for the store."""
    for file in (*path.rglob(".zarray"), *path.rglob("zarr.json")):
        said = json.loads(file.read_text(encoding="utf-8"))
        if 'pickle"' in json.dumps(said):
            raise UnreadableError(
                f"{path} holds Python objects, which deepmf does not load; save numbers instead."
            )
        shape = said.get("shape", ())
        grid = said.get("chunk_grid", {}).get("configuration", {}).get("chunk_shape", ())
        for size in (said.get("chunks", grid), shape if len(shape) <= 1 else ()):
            check_room(path, size, np.float64)


# --- groups and attributes -----------------------------------------------------------------------


def _variables(groups: Groups) -> list[Variable]:
    """All arrays, less dimensions of one entry that a cube has beyond three."""
    found = []
    for group, ds in groups.items():
        for name, array in ds.data_vars.items():
            shape = array.shape
            if len(shape) > 3:
                shape = tuple(size for size in shape if size > 1)
            found.append(Variable(f"{group}/{name}".lstrip("/"), shape, str(array.dtype)))
    return found


def _chosen(path: Path, groups: Groups, asked: str | None) -> str:
    """The variable asked for, the largest cube of pictures, or the only matrix; never a mask."""
    found = [v for v in _variables(groups) if asked is not None or not _is_mask(groups, v)]
    cubes = [v for v in found if is_numeric(v.dtype) and has_pictures(_array(groups, v.name))]
    if asked is None and cubes:
        largest = max(math.prod(v.shape) for v in cubes)
        found = [v for v in cubes if math.prod(v.shape) == largest]
        if len(found) > 1:
            raise several(path, found)
        return found[0].name
    return choose(path, found, asked)


def _array(groups: Groups, name: str) -> xarray.DataArray:
    group, _, variable = name.rpartition("/")
    return groups[f"/{group}"][variable]


def _is_mask(groups: Groups, variable: Variable) -> bool:
    """Whether an array holds marks of pixels rather than data."""
    flags = {"flag_values", "flag_masks", "flag_meanings"} & set(
        _array(groups, variable.name).attrs
    )
    words = re.split(r"[^a-z]+", variable.name.rpartition("/")[2].lower())
    return variable.dtype == "bool" or bool(flags) or not _MASKS.isdisjoint(words)


def _beside(da: xarray.DataArray, groups: Groups) -> xarray.DataArray:
    """The array with those along one of its dimensions, from any group, as coordinates."""
    for ds in groups.values():
        for name, array in ds.variables.items():
            fits = array.ndim == 1 and da.sizes.get(array.dims[0]) == array.size
            if fits and name not in da.coords and name != da.name:
                da = da.assign_coords({name: array})
    return da
