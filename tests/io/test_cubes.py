"""Cubes in every format: written by the format's own library, read, fitted, written, opened."""

from __future__ import annotations

import mmap
import os
import re
import sys
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deepmf import factorize
from deepmf.data.provenance import Georeference, Source
from deepmf.io import Reading, UnreadableError, format_of, read
from deepmf.io.spectral_library import read_library, write_library
from deepmf.unmixing import mixture

ROWS, COLS, BANDS = 4, 5, 6
WAVES = np.array([450.0, 500.0, 600.0, 700.5, 850.0, 2100.0])
CUBE = np.random.default_rng(0).random((ROWS, COLS, BANDS)).astype(np.float32) + 0.1
X = CUBE.reshape(-1, BANDS).T
WKT = (
    'PROJCS["WGS_1984_UTM_Zone_33N",GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",'
    'SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0.0],'
    'UNIT["Degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],'
    'PARAMETER["False_Easting",500000.0],PARAMETER["False_Northing",0.0],'
    'PARAMETER["Central_Meridian",15.0],PARAMETER["Scale_Factor",0.9996],'
    'PARAMETER["Latitude_Of_Origin",0.0],UNIT["Meter",1.0]]'
)
MAP_INFO = "{UTM, 1, 1, 500000.0, 4000000.0, 30, 30, 33, North, WGS-84}"
NAMES = [["soil", "tree, old", "water"], ["ground", "wet"]]


def same(data, expected, **layout):
    """Equal as pictures, whatever the order of the pixels."""
    for band, wanted in zip(data.X, np.moveaxis(expected, 2, 0)):
        np.testing.assert_allclose(data.image(band), wanted, rtol=1e-6)
    assert data.X.shape[0] == expected.shape[2]


def fitted(data):
    f = factorize(np.asarray(data.X), [3, 2], max_iter=3, tol=0, random_state=0)
    return replace(f, layout=data.layout)


def written(path, folder="out"):
    """The fit of a file, and the folder its format wrote."""
    f = fitted(read(path))
    out = path.parent / folder
    out.mkdir()
    format_of(path).write(out, f, NAMES)
    return f, out


def origin(array):
    """What an array's memory belongs to in the end: the file, where it is memory-mapped."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def pictures(f, layer):
    fractions = mixture(f.basis(layer), f.codes(layer)).fractions
    return np.stack([f.layout.image(row) for row in fractions])


# --- ENVI ----------------------------------------------------------------------------------------


def save_envi(path, cube, metadata=None, **options):
    from spectral.io import envi

    envi.save_image(str(path), cube, metadata=metadata or {}, force=True, **options)
    return path


@pytest.mark.parametrize("interleave", ["bil", "bip", "bsq"])
@pytest.mark.parametrize("byteorder", [0, 1])
@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_envi_reads_what_spectral_writes(tmp_path, interleave, byteorder, dtype):
    cube = (CUBE * 100).astype(dtype)
    path = save_envi(
        tmp_path / "a.hdr", cube, dtype=dtype, interleave=interleave, byteorder=byteorder
    )
    data = read(path)
    same(data, cube)
    assert data.name == "a"
    assert data.layout.bands is data.layout.valid is None


@pytest.mark.parametrize("interleave", ["bip", "bsq"])
@pytest.mark.parametrize("byteorder", [0, 1])
def test_envi_stays_on_disk(tmp_path, interleave, byteorder):
    path = save_envi(tmp_path / "a.hdr", CUBE, interleave=interleave, byteorder=byteorder)
    data = read(path)
    assert isinstance(data.X, np.memmap)
    assert isinstance(origin(data.X), mmap.mmap)
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1
    fitted(data)


def test_envi_header(tmp_path):
    cube = CUBE.copy()
    cube[1, 2] = -9
    cube[3, 0, 2] = -9
    cube[..., 4] = -9  # a band without data in any pixel
    header = {
        "wavelength": (WAVES / 1000).tolist(),
        "wavelength units": "Micrometers",
        "bbl": [1, 0, 1, 1, 1, 1],
        "band names": [f"Band {k}" for k in range(BANDS)],
        "data ignore value": -9,
        "Sensor Type": "Unknown",
    }
    data = read(save_envi(tmp_path / "a.hdr", cube, header))
    layout = data.layout
    np.testing.assert_array_equal(layout.bands, [1, 3, 4, 6])
    np.testing.assert_allclose(layout.wavelengths, WAVES[[0, 2, 3, 5]])
    assert layout.features.tolist() == ["Band 0", "Band 2", "Band 3", "Band 5"]
    wanted = np.ones((ROWS, COLS), dtype=bool)
    wanted[1, 2] = wanted[3, 0] = False
    np.testing.assert_array_equal(layout.valid, wanted)
    assert data.X.shape == (4, ROWS * COLS - 2)
    np.testing.assert_allclose(data.image(data.X[1])[wanted], cube[..., 2][wanted])
    assert np.isnan(data.image(data.X[1])[1, 2])
    # the file's own marks and value can be overruled
    kept = read(tmp_path / "a.hdr", Reading(bad_bands="none", nodata=-8))
    assert kept.X.shape == (BANDS, ROWS * COLS)
    assert kept.layout.bands is None
    fewer = read(tmp_path / "a.hdr", Reading(bad_bands="3-4"))
    np.testing.assert_array_equal(fewer.layout.bands, [1, 6])


def test_envi_data_file_instead_of_header(tmp_path):
    save_envi(tmp_path / "a.hdr", CUBE)
    same(read(tmp_path / "a.img"), CUBE)
    (tmp_path / "a.hdr").rename(tmp_path / "a.img.hdr")
    same(read(tmp_path / "a.img"), CUBE)
    same(read(tmp_path / "a.img.hdr"), CUBE)
    (tmp_path / "a.img.hdr").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.img has no ENVI header a\.hdr beside it"):
        read(tmp_path / "a.img")


def test_envi_old_headers(tmp_path):
    """Latin letters, comments, values over several lines, no byte order, an offset."""
    (tmp_path / "a").write_bytes(b"12345678" + CUBE.astype("<f4").tobytes())
    text = f"""ENVI
description = {{ a scene at 30\xb0
 samples = not this one }}
; lines = 99
Samples = {COLS}
lines   = {ROWS}
bands = {BANDS}
header offset = 8
data type = 4
interleave = BIP
wavelength = {{
 450, 500, 600,
 700.5, 850, 2100}}
"""
    (tmp_path / "a.HDR").write_bytes(text.encode("latin-1"))
    data = read(tmp_path / "a.HDR")
    same(data, CUBE)
    np.testing.assert_array_equal(data.layout.wavelengths, WAVES)


def test_envi_maps(tmp_path):
    import rasterio
    from spectral.io import envi

    cube = CUBE.copy()
    cube[2, 1] = 0
    path = save_envi(tmp_path / "a.hdr", cube, {"data ignore value": 0})
    with path.open("a") as file:
        file.write(f"map info = {MAP_INFO}\ncoordinate system string = {{{WKT}}}\n")
    f, out = written(path)
    for layer in (1, 2):
        image = envi.open(str(out / f"fractions-layer-{layer}.hdr"))
        assert "fractions of each pixel" in image.metadata["description"]
        assert image.metadata["band names"] == [n.replace(",", "") for n in NAMES[layer - 1]]
        np.testing.assert_allclose(
            image.open_memmap(), np.moveaxis(pictures(f, layer), 0, 2), rtol=1e-6
        )
        with rasterio.open(out / f"fractions-layer-{layer}.img") as image:
            assert image.crs.to_epsg() == 32633
            assert image.transform[:6] == (30, 0, 500000, 0, -30, 4000000)
            assert np.isnan(image.nodata)
            assert np.isnan(image.read(1)[2, 1])
            assert image.dtypes[0] == "float32"


@pytest.mark.parametrize("interleave", ["bip", "bil", "bsq"])
def test_envi_scale_factor(tmp_path, interleave):
    cube = (CUBE * 1e4).astype(np.int16)
    cube[2, 1] = -1
    header = {"reflectance scale factor": 10000, "data ignore value": -1}
    data = read(save_envi(tmp_path / "a.hdr", cube, header, interleave=interleave))
    assert data.X.dtype == np.float32
    np.testing.assert_allclose(
        data.image(data.X[3]), np.where(cube[..., 3] < 0, np.nan, cube[..., 3] / 1e4), rtol=1e-6
    )
    assert "Values are divided by the file's scale factor, 10000." in data.notes
    for bad in ("0", "-1", "nan", "inf"):
        header["reflectance scale factor"] = bad
        with pytest.raises(UnreadableError, match="expected a positive number"):
            read(save_envi(tmp_path / "a.hdr", cube, header))


def test_what_is_missing_in_some_bands(tmp_path):
    """Every format keeps it as NaN where gaps are asked for, and drops the pixel where not."""
    import xarray as xr

    cube = CUBE.copy()
    cube[0, 1] = cube[3, 3, 2] = -1
    holes = np.where(cube == -1, np.nan, cube)
    save_tiff(tmp_path / "a.tif", cube, nodata=-1)
    save_envi(tmp_path / "a.hdr", cube, {"data ignore value": -1}, interleave="bil")
    grid = xr.DataArray(holes, dims=("y", "x", "band"), name="reflectance")
    grid.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    np.save(tmp_path / "a.npy", holes)
    for name in ("a.tif", "a.hdr", "a.nc", "a.npy"):
        kept = read(tmp_path / name, Reading(gaps=True))
        same(kept, holes)
        assert kept.layout.valid.sum() == ROWS * COLS - 1
        assert np.isnan(kept.X).sum() == 1
        dropped = read(tmp_path / name)
        assert dropped.layout.valid.sum() == ROWS * COLS - 2
        assert np.isfinite(dropped.X).all()


def test_spectral_library(tmp_path):
    from spectral.io import envi

    path = save_envi(tmp_path / "a.hdr", CUBE, {"wavelength": WAVES, "bbl": [1, 1, 0, 1, 1, 1]})
    f = fitted(read(path))
    write_library(tmp_path, f, NAMES)
    library = envi.open(str(tmp_path / "components-layer-2.hdr"))
    spectra = [mixture(f.basis(k), f.codes(k)).spectra for k in (1, 2)]
    np.testing.assert_allclose(library.spectra, spectra[1].T, rtol=1e-6)
    assert "data's units" in library.metadata["description"]
    assert library.names == NAMES[1]
    assert library.bands.centers == [450, 500, 700.5, 850, 2100]
    back = read_library(tmp_path / "components-layer-1.sli")
    np.testing.assert_allclose(back.W, spectra[0], rtol=1e-6)
    np.testing.assert_array_equal(back.wavelengths, f.layout.wavelengths)
    # as data, its spectra are samples
    data = read(tmp_path / "components-layer-1.sli")
    np.testing.assert_allclose(data.X, spectra[0], rtol=1e-6)
    assert data.layout.samples.tolist() == ["soil", "tree old", "water"]
    with pytest.raises(UnreadableError, match="is an ENVI image"):
        read_library(path)


# --- GeoTIFF -------------------------------------------------------------------------------------


@contextmanager
def quiet():
    import rasterio

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        yield rasterio


def save_tiff(path, cube, tags=(), descriptions=(), mask=None, **options):
    rows, cols, bands = cube.shape
    size = {"width": cols, "height": rows, "count": bands, "dtype": cube.dtype}
    with quiet() as rasterio, rasterio.open(path, "w", "GTiff", **size, **options) as file:
        file.write(np.moveaxis(cube, 2, 0))
        for k, tag in enumerate(tags, start=1):
            file.update_tags(k, **tag)
        for k, text in enumerate(descriptions, start=1):
            file.set_band_description(k, text)
        if mask is not None:
            file.write_mask(mask)
    return path


PLACE = {"crs": "EPSG:32633", "transform": (30.0, 0.0, 500000.0, 0.0, -30.0, 4000000.0)}


def place():
    import rasterio

    return {**PLACE, "transform": rasterio.Affine(*PLACE["transform"])}


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int32", "float32", "float64"])
def test_tiff_types(tmp_path, dtype):
    cube = (CUBE * 100).astype(dtype)
    data = read(save_tiff(tmp_path / "a.tif", cube))
    same(data, cube)
    assert data.layout.source == Source("GeoTIFF")
    assert data.layout.georeference == Georeference()


def test_tiff_nodata_and_mask(tmp_path):
    cube = CUBE.copy()
    cube[0, 1] = -1
    cube[3, 3, 2] = np.nan
    data = read(save_tiff(tmp_path / "a.tif", cube, nodata=-1))
    lost = ~data.layout.valid
    assert [tuple(at) for at in np.argwhere(lost)] == [(0, 1), (3, 3)]
    mask = np.full((ROWS, COLS), 255, dtype=np.uint8)
    mask[2, 4] = 0
    masked = read(save_tiff(tmp_path / "b.tif", CUBE, mask=mask))
    np.testing.assert_array_equal(masked.layout.valid, mask > 0)
    np.testing.assert_array_equal(masked.X[3], CUBE[..., 3][mask > 0])


def test_tiff_alpha_is_no_band(tmp_path):
    cube = np.full((ROWS, COLS, 4), 255, dtype=np.uint8)
    cube[..., :3] = CUBE[..., :3] * 100
    cube[1, 1, 3] = 0
    path = save_tiff(tmp_path / "a.tif", cube, photometric="rgb", alpha="yes")
    with quiet() as rasterio, rasterio.open(path) as file:
        assert file.colorinterp[3].name == "alpha"
    data = read(path)
    assert data.X.shape == (3, ROWS * COLS - 1)
    assert not data.layout.valid[1, 1]


def test_tiff_scale_and_offset(tmp_path):
    cube = (CUBE * 1000).astype(np.int16)
    cube[0, 0] = -7
    path = save_tiff(tmp_path / "a.tif", cube, nodata=-7)
    with quiet() as rasterio, rasterio.open(path, "r+") as file:
        file.scales, file.offsets = [0.001] * BANDS, [0.5] * BANDS
    data = read(path)
    assert not data.layout.valid[0, 0]
    np.testing.assert_allclose(data.X[2], cube[..., 2][data.layout.valid] * 0.001 + 0.5, rtol=1e-6)


def test_tiff_wavelengths(tmp_path):
    in_tags = [{"wavelength": str(v), "wavelength_units": "Nanometers"} for v in WAVES]
    in_um = [{"WAVELENGTH": str(v / 1000), "wavelength_units": "Micrometers"} for v in WAVES]
    in_words = [f"Band {k} ({v / 1000} um)" for k, v in enumerate(WAVES)]
    for k, options in enumerate(
        [{"tags": in_tags}, {"tags": in_um}, {"descriptions": in_words}], start=1
    ):
        data = read(save_tiff(tmp_path / f"{k}.tif", CUBE, **options))
        np.testing.assert_allclose(data.layout.wavelengths, WAVES)
    assert data.layout.features.tolist() == in_words
    plain = save_tiff(tmp_path / "plain.tif", CUBE)
    assert read(plain).layout.wavelengths is None
    with quiet() as rasterio, rasterio.open(plain, "r+") as file:
        file.update_tags(wavelengths="{" + ", ".join(map(str, WAVES)) + "}")
    np.testing.assert_allclose(read(plain).layout.wavelengths, WAVES)
    with quiet() as rasterio, rasterio.open(plain, "r+") as file:
        for k, v in enumerate(WAVES, start=1):
            file.update_tags(k, ns="IMAGERY", CENTRAL_WAVELENGTH_UM=str(v / 1000 + 0.001))
    np.testing.assert_allclose(read(plain).layout.wavelengths, WAVES + 1)


@pytest.mark.parametrize(
    "tags",
    [
        {"wavelength": "120", "wavelength_units": "Micrometers"},
        {"CENTRAL_WAVELENGTH_UM": "120"},
        {"WAVELENGTH_NM": "120000", "unit": "um"},
        {"Wavelength": "120 um"},
    ],
)
def test_tiff_units_are_not_guessed_where_they_are_said(tmp_path, tags):
    path = save_tiff(tmp_path / "a.tif", CUBE, tags=[tags] * BANDS)
    np.testing.assert_allclose(read(path).layout.wavelengths, 120000)


def test_tiff_maps(tmp_path):
    import rasterio

    cube = CUBE.copy()
    cube[2, 1] = 0
    f, out = written(save_tiff(tmp_path / "a.tif", cube, nodata=0, **place()))
    for layer in (1, 2):
        with rasterio.open(out / f"fractions-layer-{layer}.tif") as image:
            assert image.crs.to_epsg() == 32633
            assert image.transform[:6] == PLACE["transform"]
            assert image.descriptions == tuple(NAMES[layer - 1])
            assert np.isnan(image.nodata)
            assert "fractions of each pixel" in image.tags()["TIFFTAG_IMAGEDESCRIPTION"]
            assert image.profile["tiled"]
            assert image.profile["compress"] == "deflate"
            assert image.dtypes[0] == "float32"
            np.testing.assert_allclose(image.read(), pictures(f, layer), rtol=1e-6)


def test_tiff_without_a_place(tmp_path):
    """And no warning: pytest makes them errors."""
    f, out = written(save_tiff(tmp_path / "a.tif", CUBE))
    back = read(out / "fractions-layer-1.tif")
    np.testing.assert_allclose(back.X, mixture(f.basis(1), f.codes(1)).fractions, rtol=1e-6)


# --- bad files -----------------------------------------------------------------------------------


HEADER = (
    "ENVI\nsamples = 5\nlines = 4\nbands = 6\ndata type = 4\ninterleave = bip\nbyte order = 0\n"
)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (HEADER.replace("ENVI\n", "IVNE\n"), "is not an ENVI header"),
        (HEADER.replace("lines = 4\n", ""), "does not say a whole number of lines"),
        (HEADER.replace("lines = 4", "lines = four"), "lines = four; expected a number"),
        (HEADER.replace("lines = 4", "lines = 4.5"), "whole number of lines"),
        (HEADER.replace("lines = 4", "lines = nan"), "whole number of lines"),
        (HEADER.replace("lines = 4", "lines = inf"), "whole number of lines"),
        (HEADER.replace("lines = 4", "lines = -4"), "is empty"),
        (HEADER.replace("lines = 4", "lines = 0"), "is empty"),
        (HEADER.replace("type = 4", "type = 7"), "data type 7"),
        (HEADER.replace("type = 4", "type = 6"), "is too short|complex"),
        (HEADER.replace("bip", "zip"), "interleave zip"),
        (HEADER + "bbl = {1, 1}\n", "6 bands, but its list of bad bands .bbl. has 2"),
        (HEADER + "bbl = {0, 0, 0, 0, 0, 0}\n", "no data: all 6 bands"),
        (HEADER + "wavelength = {400, 500}\n", "6 bands, but 2 wavelengths"),
        (HEADER + "data ignore value = none\n", "data ignore value = none; expected a number"),
        (HEADER + "header offset = 40\n", "is too short"),
        (re.sub(r"= [456]\n(?=[lbd])", f"= {10**6}\n", HEADER), "1000000 x 1000000 x 1000000"),
    ],
)  # fmt: skip
def test_bad_envi_headers(tmp_path, header, said):
    (tmp_path / "a.img").write_bytes(CUBE.tobytes())
    (tmp_path / "a.hdr").write_text(header)
    with pytest.raises(UnreadableError, match=said) as error:
        read(tmp_path / "a.hdr")
    sentence(error)


def sentence(error):
    text = str(error.value)
    assert text.endswith("."), text
    assert "\n" not in text
    assert len(text) < 600


def test_envi_without_data(tmp_path):
    (tmp_path / "a.hdr").write_text(HEADER)
    with pytest.raises(FileNotFoundError, match="is only a header") as error:
        read(tmp_path / "a.hdr")
    sentence(error)


def test_no_data_anywhere(tmp_path):
    cube = CUBE.copy()
    cube[...] = np.nan
    with pytest.raises(UnreadableError, match="has no data: all 6 bands"):
        read(save_tiff(tmp_path / "a.tif", cube))
    cube = CUBE.copy()
    for k in range(ROWS * COLS):
        cube.reshape(-1, BANDS)[k, k % BANDS] = -1
    with pytest.raises(UnreadableError, match="each of its 20 pixels lacks data"):
        read(save_tiff(tmp_path / "a.tif", cube, nodata=-1))


def test_complex_numbers(tmp_path):
    with pytest.raises(UnreadableError, match="complex64 values; expected real"):
        read(save_tiff(tmp_path / "a.tif", CUBE.astype(np.complex64)))
    with pytest.raises(UnreadableError, match="complex64 values; expected real"):
        read(save_envi(tmp_path / "a.hdr", CUBE.astype(np.complex64)))


@pytest.mark.parametrize("name", ["a.tif", "a.hdr", "a.nc", "a.mat", "a.npy", "a.npz"])
def test_random_bytes_and_nothing(tmp_path, name):
    path = tmp_path / name
    for k, length in enumerate([0, 1, 7, 200, 5000]):
        path.write_bytes(np.random.default_rng(k).bytes(length))
        with pytest.raises(UnreadableError) as error:
            read(path)
        sentence(error)


def test_missing_files_and_unknown_suffixes(tmp_path):
    for name in ("a.tif", "a.hdr", "a.nc", "a.zarr", "a.mat", "a.npy"):
        with pytest.raises(FileNotFoundError, match=name):
            read(tmp_path / name)
    (tmp_path / "a.xyz").write_text("")
    with pytest.raises(UnreadableError, match="has no suffix that deepmf knows"):
        read(tmp_path / "a.xyz")
    for name in ("a.tif", "a.nc", "a.mat", "b.npy", "b.hdr"):
        (tmp_path / name).mkdir()
        with pytest.raises((UnreadableError, OSError)):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "library"), [("a.tif", "rasterio"), ("a.nc", "xarray"), ("a.nc", "h5netcdf"),
                          ("a.zarr", "zarr"), ("a.zarr", "xarray"), ("a.mat", "h5py")],
)  # fmt: skip
def test_a_library_that_is_not_there(tmp_path, name, library, monkeypatch):
    path = tmp_path / name
    if name == "a.zarr":
        path.mkdir()
    else:
        path.write_bytes(b"\x89HDF\r\n\x1a\n")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"needs {library}.*pip install 'deepmf\[cubes\]'"):
        read(path)


# --- real data -----------------------------------------------------------------------------------


@pytest.fixture
def scenes():
    folder = os.environ.get("DEEPMF_DATA")
    if not folder or not (Path(folder) / "samson/samson_1.mat").is_file():
        pytest.skip("DEEPMF_DATA is not set: no real data")
    return Path(folder)


def test_a_real_scene_goes_through_all_formats(scenes, tmp_path):
    import xarray as xr

    data = read(scenes / "samson/samson_1.mat")
    cube = np.moveaxis(np.stack([data.image(band) for band in data.X]), 0, 2).astype(np.float32)
    save_envi(tmp_path / "a.hdr", cube)
    save_tiff(tmp_path / "a.tif", cube)
    grid = xr.DataArray(cube, dims=("y", "x", "band"), name="reflectance")
    grid.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    np.save(tmp_path / "a.npy", cube)
    for name in ("a.hdr", "a.tif", "a.nc", "a.npy"):
        again = read(tmp_path / name)
        same(again, cube)
        assert again.layout.image_shape == (95, 95)


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.5, 0.99])
def test_a_real_scene_cut_short(scenes, tmp_path, share):
    for file in sorted(scenes.rglob("*.mat")) + sorted(scenes.rglob("*.npz")):
        whole = file.read_bytes()
        path = tmp_path / file.name
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(UnreadableError) as error:
            read(path)
        sentence(error)
