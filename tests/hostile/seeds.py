"""A small sound file of every kind that deepmf reads, and how each is read."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.io import mmwrite, netcdf_file, savemat

from deepmf import Factorization, factorize
from deepmf.data.dataset import Dataset, Truth
from deepmf.data.layout import Layout
from deepmf.data.wavelengths import read_wavelengths
from deepmf.io import read
from deepmf.io.name_files import read_names
from deepmf.io.truth import read_truth
from deepmf.runs.config import Config
from deepmf.runs.run import Run
from deepmf.runs.store import load_run, save_run

RNG = np.random.default_rng(0)
CUBE = RNG.random((4, 5, 6))
FLAT = CUBE.reshape(-1, 6).T
COUNTS = sparse.csc_array(np.where(RNG.random((6, 9)) < 0.4, 3.0, 0.0))
WAVES = np.linspace(400, 900, 6)
NAMES = np.array([f"b{k}" for k in range(6)])
DATA = Dataset("data", FLAT)

Reader = Callable[[Path], object]


def make_seeds(folder: Path) -> dict[str, tuple[Path, Path, Reader]]:
    """By kind: the file to damage, the path to read, and its reader."""
    found: dict[str, tuple[Path, Path, Reader]] = {}

    def seed(kind: str, name: str, reader: Reader = read, damaged: str | None = None) -> Path:
        path = folder / kind / name
        path.parent.mkdir()
        found[kind] = (path if damaged is None else path.parent / damaged, path, reader)
        return path

    np.save(seed("npy", "a.npy"), FLAT)
    np.savez(seed("npz", "a.npz"), X=FLAT, wavelengths=WAVES, features=NAMES, image_shape=(4, 5))
    np.savez_compressed(seed("npz packed", "a.npz"), X=FLAT, wavelengths=WAVES)
    sparse.save_npz(seed("npz sparse", "a.npz"), COUNTS)
    _matlab(seed)
    header = seed("envi header", "a.hdr")
    _envi(header)
    _envi(seed("envi data", "a.hdr", damaged="a.img"))
    _envi(seed("library", "a.hdr", lambda p: read_truth(p, DATA)), "ENVI Spectral Library")
    _scenes(seed)
    _tables(seed)
    _matrices(seed)
    _beside(seed)
    _results(seed)
    return found


def _matlab(seed: Callable[..., Path]) -> None:
    parts = {"X": FLAT, "nRow": [[4]], "nCol": [[5]], "wavelength": WAVES[None]}
    savemat(seed("mat 4", "a.mat"), parts, format="4")
    savemat(seed("mat 5", "a.mat"), {**parts, "s": {"a": 1}, "c": np.array(["x"], dtype=object)})
    savemat(seed("mat 7", "a.mat"), parts, do_compression=True)
    savemat(seed("mat sparse", "a.mat"), {"X": COUNTS})
    import h5py

    with h5py.File(seed("mat 7.3", "a.mat"), "w") as file:
        file["X"] = FLAT.T
        file["X"].attrs["MATLAB_class"] = np.bytes_("double")


def _envi(path: Path, kind: str = "ENVI Standard") -> None:
    spectra = kind != "ENVI Standard"
    shape = (6, 3, 1) if spectra else (5, 4, 6)
    text = "".join(f"{k} = {n}\n" for k, n in zip(("samples", "lines", "bands"), shape))
    text += f"header offset = 0\nfile type = {kind}\ndata type = 5\ninterleave = bip\n"
    text += "byte order = 0\nband names = {" + ", ".join(NAMES) + "}\nwavelength = {"
    text += ", ".join(map(str, WAVES)) + "}\nbbl = {1, 1, 1, 1, 1, 0}\n"
    path.write_text("ENVI\n" + text)
    (CUBE[:3, 0] if spectra else CUBE).tofile(path.with_suffix(".img"))


def _scenes(seed: Callable[..., Path]) -> None:
    import rasterio
    import xarray as xr

    kind = {"driver": "GTiff", "width": 5, "height": 4, "count": 6, "dtype": "float64"}
    transform = rasterio.Affine(2, 0, 0, 0, -2, 0)
    for name, packed in (("tif", {}), ("tif packed", {"compress": "deflate"})):
        with rasterio.open(seed(name, "a.tif"), "w", transform=transform, **kind, **packed) as file:
            file.write(np.moveaxis(CUBE, 2, 0))
    coords = {"wavelength": ("wavelength", WAVES, {"units": "nm"}), "y": range(4), "x": range(5)}
    cube = xr.DataArray(CUBE, dims=("y", "x", "wavelength"), coords=coords).to_dataset(name="X")
    cube.to_netcdf(seed("netcdf 4", "a.nc"), engine="h5netcdf")
    cube.to_zarr(seed("zarr array", "a.zarr", damaged="a.zarr/X/.zarray"), zarr_format=2)
    cube.to_zarr(seed("zarr chunk", "a.zarr", damaged="a.zarr/X/0.0.0"), zarr_format=2)
    cube.to_zarr(seed("zarr 3", "a.zarr", damaged="a.zarr/X/zarr.json"), zarr_format=3)
    with netcdf_file(seed("netcdf 3", "a.nc"), "w") as file:
        for name, size in zip("yxb", CUBE.shape):
            file.createDimension(name, size)
        file.createVariable("X", "d", ("y", "x", "b"))[:] = CUBE


def _tables(seed: Callable[..., Path]) -> None:
    import pandas as pd

    frame = pd.DataFrame(FLAT.T, columns=NAMES, index=[f"s{k}" for k in range(20)])
    frame.to_csv(seed("csv", "a.csv"))
    frame.to_csv(seed("csv packed", "a.csv.gz"))
    frame.to_parquet(seed("parquet", "a.parquet"))


def _matrices(seed: Callable[..., Path]) -> None:
    import anndata

    mmwrite(seed("mtx", "a.mtx"), COUNTS)
    packed = seed("mtx packed", "a.mtx.gz")
    mmwrite(packed.with_suffix(""), COUNTS)
    packed.write_bytes(gzip.compress(packed.with_suffix("").read_bytes()))
    anndata.AnnData(sparse.csr_matrix(COUNTS.T)).write_h5ad(seed("h5ad", "a.h5ad"))


def _beside(seed: Callable[..., Path]) -> None:
    def truth(path: Path) -> object:
        return read_truth(path, DATA)

    np.savez(seed("truth npz", "t.npz", truth), M=FLAT[:, :3], names=["a", "b", "c"])
    np.save(seed("truth npy", "t.npy", truth), FLAT[:, :3])
    savemat(seed("truth mat", "t.mat", truth), {"M": FLAT[:, :3]})
    table = seed("truth csv", "t.csv", truth)
    table.write_text("band,a,b\n" + "".join(f"{k},{k}.5,1\n" for k in range(6)))
    np.save(seed("names npy", "n.npy", lambda p: read_names(str(p))), NAMES)
    seed("wavelengths", "w.txt", lambda p: read_wavelengths(str(p))).write_text(
        "nm\n" + "\n".join(map(str, WAVES))
    )


def _results(seed: Callable[..., Path]) -> None:
    config = seed("config", "c.toml", Config.from_toml)
    config.write_text(
        '[input]\npath = "x.npy"\nimage = [4, 5]\n[fit]\nranks = [3, 2]\n'
        'model = { name = "layer-centric", lam = 1.0 }\nconstraint_W = ["simplex", "none"]\n'
    )
    f = factorize(FLAT, [3, 2], max_iter=2, tol=0, random_state=0)
    f.save(seed("factorization", "f.npz", Factorization.load))
    run = Run("run", f, "[fit]\n", {"file": "x"}, {1: Truth(FLAT[:, :3], list("abc"))}, FLAT[0])
    for part in ("summary.json", "truth.npz", "residual.npy", "factors.npz"):
        folder = seed(f"run {part}", "run", load_run, damaged=f"run/{part}")
        folder.mkdir()
        save_run(folder, run)


def evil_run(name: str) -> Run:
    """A run in which every text that comes from a file is the given one."""
    layout = Layout(
        features=np.array([f"{name}{k}" for k in range(6)]),
        samples=np.array([f"{name}{k}" for k in range(20)]),
        wavelengths=WAVES,
    )
    f = factorize(Dataset(name, FLAT, layout), [3, 2], max_iter=2, tol=0, random_state=0)
    truth = {1: Truth(FLAT[:, :3], [name] * 3)}
    return Run(name, f, name, {name: name}, truth, FLAT[0], [name])
