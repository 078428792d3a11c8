"""Scenes from files of one's own, as a remote-sensing user would bring them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rasterio
import xarray as xr
from spectral.io import envi
from typer.testing import CliRunner

import deepmf
from deepmf import Factorization, factorize
from deepmf.cli.app import app
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.datasets import simulated_scene
from deepmf.io import read
from deepmf.runs import load_run
from deepmf.unmixing import mixture

WHOLE = simulated_scene(rows=32, cols=32, bands=12)
CUBE = np.stack([WHOLE.image(band)[:16, :16] for band in WHOLE.X], axis=2).astype(np.float32)
WAVES = WHOLE.wavelengths
SCENE = Dataset("scene", CUBE.reshape(256, 12).T, Layout(wavelengths=WAVES))
RNG = np.random.default_rng(0)
QUICK = ("--ranks", "4,2", "--max-iter", 3, "--tol", 0, "--no-report", "-q")
PLACE = {"crs": "EPSG:32633", "transform": rasterio.Affine(30, 0, 500000, 0, -30, 4000000)}


def run(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def refuse(*arguments: object) -> str:
    lines = run(*arguments, code=2).stderr.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def save(path: Path, cube: np.ndarray) -> Path:
    """A scene whose no-data value is -1, in the format of the suffix."""
    if path.suffix == ".tif":
        size = dict(zip(("height", "width", "count"), cube.shape))
        options = {**size, **PLACE, "dtype": cube.dtype, "nodata": -1}
        with rasterio.open(path, "w", "GTiff", **options) as file:
            file.write(np.moveaxis(cube, 2, 0))
    elif path.suffix == ".hdr":
        header = {
            "wavelength": WAVES.tolist(),
            "data ignore value": -1,
            "map info": "{UTM, 1, 1, 500000, 4000000, 30, 20, 33, North, WGS-84}",
        }
        envi.save_image(str(path), cube, metadata=header, force=True, interleave="bil")
    elif path.suffix in (".nc", ".zarr"):
        da = xr.DataArray(
            np.where(cube == -1, np.nan, cube),
            dims=("y", "x", "band"),
            coords={"y": np.arange(len(cube)) * -10.0, "x": np.arange(cube.shape[1]) * 10.0},
            name="reflectance",
        )
        if path.suffix == ".nc":
            da.to_netcdf(path, engine="h5netcdf")
        else:
            da.to_zarr(path, zarr_format=2)
    else:
        np.save(path, np.where(cube == -1, np.nan, cube))
    return path


KINDS = ["a.tif", "a.hdr", "a.nc", "a.zarr", "a.npy"]


def opened(path: Path) -> np.ndarray:
    """A written map as rows x cols, by the format's own library."""
    if path.suffix == ".tif":
        with rasterio.open(path) as file:
            assert file.crs.to_epsg() == 32633
            return file.read(1)
    if path.suffix == ".hdr":
        return envi.open(str(path)).open_memmap()[..., 0]
    if path.suffix in (".nc", ".zarr"):
        engine = "h5netcdf" if path.suffix == ".nc" else "zarr"
        with xr.open_dataset(path, engine=engine) as ds:
            assert ds["residual"].dims == ("y", "x")
            return ds["residual"].load().to_numpy()
    return np.load(path)


@pytest.mark.parametrize("name", KINDS)
def test_residuals_are_maps(tmp_path, name):
    cube = CUBE.copy()
    cube[3, 4] = -1
    path = save(tmp_path / name, cube)
    run("fit", path, *QUICK, "-o", tmp_path / "r")
    picture = opened(tmp_path / "r" / f"residual{path.suffix}")
    assert picture.shape == CUBE.shape[:2]
    assert np.argwhere(np.isnan(picture)).tolist() == [[3, 4]]
    again = load_run(tmp_path / "r")
    np.testing.assert_allclose(again.f.layout.image(again.residual), picture, rtol=1e-6)
    assert again.residual.shape == (255,)


def test_residuals_of_a_matrix_are_a_vector(tmp_path):
    np.save(tmp_path / "a.npy", SCENE.X)
    run("fit", tmp_path / "a.npy", *QUICK, "-o", tmp_path / "r")
    assert np.load(tmp_path / "r/residual.npy").shape == (256,)


# --- apply ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_apply_codes_a_second_scene(tmp_path, name):
    cube = CUBE.copy()
    cube[..., 5] = -1  # a band without data, which the second scene has
    cube[0, 0] = -1
    first = save(tmp_path / name, cube)
    other = CUBE[:8, 3:] * 1.1
    other[2, 2] = -1
    second = save(tmp_path / f"second{first.suffix}", other)
    run("fit", first, *QUICK, "-o", tmp_path / "r")
    said = run("apply", tmp_path / "r", second, "-o", tmp_path / "out")
    assert "Pixels without data, left out: 1 of 104." in said.stderr
    assert "relative error in %" in said.stdout
    out = {p.name for p in (tmp_path / "out").iterdir()}
    kind = "codes" if first.suffix == ".mat" else "fractions"
    assert out >= {f"{kind}-layer-{k}{first.suffix}" for k in (1, 2)}
    assert out >= {"summary.json", "residual.npy", f"residual{first.suffix}"}
    f = Factorization.load(tmp_path / "r/factors.npz")
    data = read(second, bad_bands="6")
    codes = f.encode(data)
    np.testing.assert_array_equal(codes, f.encode(data.X))
    if first.suffix == ".npy":
        maps = np.load(tmp_path / "out/fractions-layer-2.npy")
        spectra = mixture(f.basis(2), f.codes(2)).spectra  # those of the run, not of this scene
        found = mixture(f.basis(2), f.H[1] @ codes, spectra.sum(axis=0))
        np.testing.assert_allclose(found.spectra, spectra, rtol=1e-6)
        np.testing.assert_allclose(maps, [data.image(row) for row in found.fractions], rtol=1e-5)
    picture = opened(tmp_path / "out" / f"residual{first.suffix}")
    assert picture.shape == (8, 13)
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    wanted = f.squared_error(data) / np.linalg.norm(data.X) ** 2
    assert summary["layers"][0]["data_error"] == pytest.approx(wanted, rel=1e-4)
    assert summary["facts"]["run"] == str(tmp_path / "r")


def test_apply_to_the_same_data_gives_the_codes_of_the_fit(tmp_path):
    path = save(tmp_path / "a.npy", CUBE)
    run("fit", path, "--ranks", "4,2", "--no-report", "-q", "--tol", 1e-6, "-o", tmp_path / "r")
    run("apply", tmp_path / "r", path, "-o", tmp_path / "out", "-q")
    for layer in (1, 2):
        a, b = (np.load(tmp_path / x / f"fractions-layer-{layer}.npy") for x in ("r", "out"))
        np.testing.assert_allclose(a, b, atol=0.01)


@pytest.mark.parametrize("how", ["unit", "log", "tfidf"])
def test_apply_scales_as_the_run_did(tmp_path, how):
    counts = np.random.default_rng(0).poisson(3.0, (20, 40)).astype(float)
    np.save(tmp_path / "a.npy", counts)
    np.save(tmp_path / "b.npy", counts[:, :7])
    run("fit", tmp_path / "a.npy", *QUICK, "--scale", how, "-o", tmp_path / "r")
    run("apply", tmp_path / "r", tmp_path / "a.npy", "-o", tmp_path / "all", "-q")
    run("apply", tmp_path / "r", tmp_path / "b.npy", "-o", tmp_path / "few", "-q")
    few, every = (np.load(tmp_path / x / "codes-layer-1.npy") for x in ("few", "all"))
    np.testing.assert_allclose(few, every[:, :7], rtol=1e-6)


def test_apply_refuses_other_features(tmp_path):
    run("fit", save(tmp_path / "a.hdr", CUBE), *QUICK, "-o", tmp_path / "r")
    run("fit", save(tmp_path / "a.npy", CUBE), *QUICK, "-o", tmp_path / "plain")
    np.save(tmp_path / "b.npy", CUBE[..., :7])
    out = ("-o", tmp_path / "out")
    said = refuse("apply", tmp_path / "r", tmp_path / "b.npy", *out)
    assert "7 features, but the model was fitted to 12" in said
    waves = "\n".join(map(str, WAVES + 40))
    (tmp_path / "w.txt").write_text(waves)
    other = ("--wavelengths", tmp_path / "w.txt")
    said = refuse("apply", tmp_path / "r", tmp_path / "a.npy", *other, *out)
    assert "X has other bands: 12 of 12 differ" in said
    negative = np.where(np.median(CUBE) > CUBE, -CUBE, CUBE)
    np.save(tmp_path / "b.npy", negative)
    said = refuse("apply", tmp_path / "plain", tmp_path / "b.npy", *out)
    assert said.endswith("or code them as they are, as noise, with --allow-negative.")
    run("apply", tmp_path / "plain", tmp_path / "b.npy", "--allow-negative", *out)
    assert "is not empty" in refuse("apply", tmp_path / "plain", tmp_path / "a.npy", *out)
    assert "no folder" in refuse("apply", tmp_path / "none", tmp_path / "a.npy")


def test_apply_takes_the_bands_of_the_run(tmp_path):
    def marked(name, bad, cube=CUBE):
        path, flags = tmp_path / name, [int(k not in bad) for k in range(1, 13)]
        envi.save_image(str(path), cube, metadata={"bbl": flags, "data ignore value": -1})
        return path

    out = ("-o", tmp_path / "out")
    run("fit", marked("a.hdr", [3]), *QUICK, "-o", tmp_path / "r")
    run("apply", tmp_path / "r", marked("b.hdr", [5, 6]), *out)
    f = Factorization.load(tmp_path / "r/factors.npz")
    assert f.layout.bands.tolist() == [1, 2, *range(4, 13)]
    empty = CUBE.copy()
    empty[..., 6] = -1
    said = refuse("apply", tmp_path / "r", marked("c.hdr", [], empty), "--overwrite", *out)
    assert "bad or without data in" in said
    assert ": 7; leave them out" in said
    run("fit", marked("d.hdr", []), *QUICK, "-o", tmp_path / "whole")
    said = refuse("apply", tmp_path / "whole", tmp_path / "b.hdr", "--overwrite", *out)
    assert ": 5, 6; keep them with --bad-bands none" in said
    run("apply", tmp_path / "whole", tmp_path / "b.hdr", "--bad-bands", "none", "--overwrite", *out)


def test_apply_to_columns_in_another_order(tmp_path):
    table = pd.DataFrame(RNG.random((20, 5)), columns=list("abcde"))
    table.to_csv(tmp_path / "a.csv", index=False)
    table[list("cabed")].to_csv(tmp_path / "b.csv", index=False)
    run("fit", tmp_path / "a.csv", *QUICK, "-o", tmp_path / "r")
    for name in "ab":
        said = run("apply", tmp_path / "r", tmp_path / f"{name}.csv", "-o", tmp_path / name)
        assert ("order of the run" in said.stderr) == (name == "b")
    a, b = ((tmp_path / name / "codes-layer-1.csv").read_text() for name in "ab")
    assert a == b


def test_apply_to_a_data_set_refuses_what_it_is_not_asked(tmp_path):
    run("fit", "dataset:simulated", *QUICK, "-o", tmp_path / "r")
    given = ("dataset:simulated", "--rows", "samples", "-o", tmp_path / "out")
    assert "knows how it is read; leave out --rows" in refuse("apply", tmp_path / "r", *given)


def test_what_is_missing_is_named_before_a_folder_that_is_there(tmp_path):
    path = save(tmp_path / "a.npy", CUBE)
    run("fit", path, *QUICK, "-o", tmp_path / "r")
    out = ("-o", tmp_path / "r")
    assert "no folder" in refuse("apply", tmp_path / "none", path, *out)
    assert "no file" in refuse("apply", tmp_path / "r", tmp_path / "none.npy", *out)
    for option in ("--truth", "--fix-W"):
        assert "none.mat" in refuse("fit", path, *QUICK, option, tmp_path / "none.mat", *out)
    assert "is not empty" in refuse("fit", path, *QUICK, *out)


def test_apply_to_partly_observed_pixels(tmp_path):
    run("fit", save(tmp_path / "a.npy", CUBE), *QUICK, "-o", tmp_path / "r")
    cube = CUBE.copy()
    cube[1, 1, :3] = np.nan
    np.save(tmp_path / "b.npy", cube)
    for ways, kept in (((), False), (("--weights", "observed"), True)):
        out = tmp_path / f"out-{kept}"
        run("apply", tmp_path / "r", tmp_path / "b.npy", *ways, "-o", out)
        assert np.isfinite(np.load(out / "residual.npy")[1, 1]) == kept


def test_encode_takes_a_data_set():
    f = factorize(SCENE, [3], max_iter=3, tol=0)
    np.testing.assert_array_equal(f.encode(SCENE), f.encode(SCENE.X))
    assert f.squared_error(SCENE) == f.squared_error(SCENE.X)


# --- info ----------------------------------------------------------------------------------------


def test_info_says_where_a_scene_is(tmp_path):
    cube = CUBE.copy()
    cube[3, 4] = cube[5, 6, 2] = -1
    text = " ".join(run("info", save(tmp_path / "a.tif", cube)).output.split())
    assert "coordinates WGS 84 / UTM zone 33N" in text
    assert "pixel size 30 x 30" in text
    assert "Pixels without data, left out: 1 of 256." in text
    assert "Pixels that lack some bands, left out: 1 of 256" in text
    text = " ".join(run("info", save(tmp_path / "a.hdr", cube)).output.split())
    assert "coordinates UTM 33 North WGS-84" in text
    assert "pixel size 30 x 20" in text
    text = " ".join(run("info", save(tmp_path / "a.nc", cube)).output.split())
    assert "pixel size 10 x 10" in text
    assert "Features are along band of reflectance, pixels along y, x." in text


def test_info_says_which_axis_is_spectral(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((5, 5, 5)))
    text = " ".join(run("info", tmp_path / "a.npy").output.split())
    assert "The last axis of its 5 x 5 x 5 array is taken as the spectral one (another" in text
    assert "--bands first" in text
    assert "spectral one" not in run("info", tmp_path / "a.npy", "--bands", "last").output
    np.savez(tmp_path / "b.npz", X=CUBE, wavelengths=WAVES)  # which settle it
    assert "spectral one" not in run("info", tmp_path / "b.npz").output


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_info_reads_a_large_file_in_blocks(tmp_path):
    """Lines of bands, which no view turns into a matrix, without taking them into memory."""
    lines, samples, bands = 600, 1000, 200
    header = (
        f"ENVI\nsamples = {samples}\nlines = {lines}\nbands = {bands}\ndata type = 4\n"
        f"interleave = bil\nbyte order = 0\ndata ignore value = -9999\n"
    )
    (tmp_path / "a.hdr").write_text(header)
    with (tmp_path / "a.img").open("wb") as file:
        file.truncate(4 * lines * samples * bands)
    code = (
        "import sys; from deepmf.cli.app import app\n"
        "try: app(['info', sys.argv[1]])\n"
        "finally: print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    command = [sys.executable, "-c", code, tmp_path / "a.hdr"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "mapped, not loaded" in done.stdout
    assert int(done.stdout.split()[-1]) < 400 * 1024, done.stdout  # kB; the file has 458 MB


# --- words ---------------------------------------------------------------------------------------


def test_a_value_for_missing_data_is_recognised(tmp_path):
    cube = CUBE.copy()
    cube[2, 3] = -9999
    np.save(tmp_path / "a.npy", cube)
    said = refuse("fit", tmp_path / "a.npy", "--ranks", "3", "-o", tmp_path / "r")
    assert "smallest -9999)" in said
    assert "--nodata -9999" in said
    for word in ("np.", "allow_negative", "constraint_W", "weights="):
        assert word not in said
    run("fit", tmp_path / "a.npy", "--nodata", -9999, *QUICK, "-o", tmp_path / "r")
    with pytest.raises(ValueError, match=r"nodata=-9999.*weights='observed'"):
        factorize(np.load(tmp_path / "a.npy").reshape(256, 12), [2])


def test_a_fit_that_did_not_converge_names_the_option(tmp_path):
    path = save(tmp_path / "a.npy", CUBE)
    ways = ("--ranks", "3", "--max-iter", 1, "--no-report", "-o", tmp_path / "r")
    assert "Raise --max-iter or --tol" in run("fit", path, *ways).stderr


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "deepmf", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"deepmf {deepmf.__version__}\n"
