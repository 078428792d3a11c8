"""GeoTIFF, with rasterio: pictures that know where on Earth they are."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.optional import need
from deepmf._utils.safe_archives import check_room
from deepmf.data.assemble import from_cube, names_array
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.provenance import Georeference, Source
from deepmf.data.reading import Reading
from deepmf.data.wavelengths import in_nanometers, names_wavelengths, wavelength_in
from deepmf.factorization import Factorization
from deepmf.io.format import Format

_KIND: dict[str, Any] = {"driver": "GTiff", "dtype": "float32", "nodata": np.nan}
_KIND |= {"tiled": True, "compress": "deflate", "interleave": "band", "bigtiff": "if_safer"}


class GeoTiff(Format):
    """A band per picture; projection and pixel size are kept for the maps."""

    name = "GeoTIFF"
    suffixes = (".tif", ".tiff")

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`; values are scaled where the file says how, masked pixels left out."""
        rasterio = need("rasterio", "cubes", "Reading GeoTIFF files")
        with _quiet(rasterio), rasterio.open(path, driver="GTiff") as file:
            bands = [i for i, c in zip(file.indexes, file.colorinterp) if c.name != "alpha"]
            check_room(path, (len(bands), *file.shape), file.dtypes[0])
            cube, nodata = _values(file, bands)
            named = [file.descriptions[i - 1] for i in bands]
            place = Georeference(
                crs=None if file.crs is None else file.crs.to_wkt(),
                transform=None if file.transform.is_identity else tuple(file.transform)[:6],
            )
            waves = _wavelengths(file, bands)
        features = names_array(named) if all(named) else None
        return from_cube(
            path,
            cube,
            reading,
            axis="first",
            wavelengths=waves,
            nodata=nodata,
            layout=Layout(features=features, source=Source(self.name), georeference=place),
        )

    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """See `Format.write`: ``fractions-layer-l.tif``, a band per component, NaN without data."""
        for layer in range(1, f.depth + 1):
            kind, _, text = found = f.view(layer).amounts
            path = folder / f"{kind}-layer-{layer}.tif"
            self._save(path, found.maps(f.layout), names[layer - 1], f.layout, text)

    def write_map(self, folder: Path, name: str, values: Any, layout: Layout) -> None:
        """See `Format.write_map`: ``name.tif``."""
        self._save(folder / f"{name}.tif", layout.image(values)[None], [name], layout)

    def _save(
        self, path: Path, maps: NDArray, names: Sequence[str], layout: Layout, text: str = ""
    ) -> None:
        rasterio = need("rasterio", "cubes", "Writing GeoTIFF files")
        known, place = layout.georeference, dict(_KIND)
        if known.crs is not None:
            place["crs"] = rasterio.CRS.from_wkt(known.crs)
        if known.transform is not None:
            place["transform"] = rasterio.Affine(*known.transform)
        bands = maps.astype(np.float32)
        size = dict(zip(("count", "height", "width"), bands.shape))
        with _quiet(rasterio), rasterio.MemoryFile() as memory:  # GDAL is silent on full disks
            with memory.open(**place, **size) as file:
                file.write(bands)
                file.descriptions = tuple(names)
                if text:
                    file.update_tags(TIFFTAG_IMAGEDESCRIPTION=text)
            path.write_bytes(memory.getbuffer())


@contextmanager
def _quiet(rasterio: Any) -> Iterator[None]:
    """Silence the warning about an image without georeference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        yield


def _values(file: Any, bands: Sequence[int]) -> tuple[Any, float | None]:
    """Bands x rows x cols and the no-data value, after ``value * scale + offset``."""
    cube, nodata = file.read(bands), file.nodata
    scales, offsets = (
        np.array([part[i - 1] for i in bands]) for part in (file.scales, file.offsets)
    )
    if (scales != 1).any() or (offsets != 0).any():
        lost = np.isnan(cube) if nodata is None else cube == nodata
        cube = (cube * scales[:, None, None] + offsets[:, None, None]).astype(np.float32)
        if nodata is not None and (scales == scales[0]).all() and (offsets == offsets[0]).all():
            nodata = float(np.float32(nodata * scales[0] + offsets[0]))
        else:
            cube[lost], nodata = np.nan, None
    if any(flag.name == "per_dataset" for flags in file.mask_flag_enums for flag in flags):
        lost = np.broadcast_to(file.dataset_mask() == 0, cube.shape)
        cube = np.ma.masked_array(cube, lost)
    return cube, nodata


def _wavelengths(file: Any, bands: Sequence[int]) -> NDArray[np.float64] | None:
    """Wavelengths in nanometers, from the bands' tags or descriptions or from the file's tags."""
    tags = [{**file.tags(i), **file.tags(i, ns="IMAGERY")} for i in bands]
    for found in (
        [_wavelength(tag) for tag in tags],
        [wavelength_in(file.descriptions[i - 1]) for i in bands],
    ):
        if None not in found:
            return np.array(found, dtype=np.float64)
    whole = file.tags()
    for key, text in whole.items():
        numbers = re.findall(r"\d+(?:\.\d+)?", text)
        if names_wavelengths(key) and len(numbers) == len(bands):
            return in_nanometers(np.array(numbers, dtype=np.float64), _unit(whole, key))
    return None


def _wavelength(tags: Mapping[str, str]) -> float | None:
    """A band's wavelength: ``wavelength = 450``, ``CENTRAL_WAVELENGTH_UM = 0.45`` and the like."""
    for key, text in tags.items():
        if not names_wavelengths(key):
            continue
        if (value := wavelength_in(text)) is not None:
            return value
        if re.fullmatch(r"\s*\d+(\.\d+)?\s*", text) and float(text) > 0:
            return float(in_nanometers(np.array([float(text)]), _unit(tags, key))[0])
    return None


def _unit(tags: Mapping[str, str], key: str) -> str | None:
    """A unit in the tag's name, or in a tag beside it."""
    ending = key.lower().rpartition("_")[2]
    if ending in ("nm", "um"):
        return ending
    return next((text for name, text in tags.items() if "unit" in name.lower()), None)
