"""Small files that claim or unpack to much, run code, or point elsewhere: refused, untouched."""

from __future__ import annotations

import ast
import gzip
import io
import json
import socket
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import deepmf
from deepmf import Factorization, factorize
from deepmf._utils import safe_archives
from deepmf._utils.safe_archives import check_room, load_npz, room
from deepmf.io import Reading, UnreadableError, read
from deepmf.io.name_files import read_names
from deepmf.io.truth import read_truth
from deepmf.runs.config import Config, ConfigError
from deepmf.runs.store import load_run

SOURCE = Path(deepmf.__file__).parent
X = np.random.default_rng(0).random((6, 8))
MANY = 1 << 27
"""Numbers that take 1 GiB."""


def header(shape, dtype="<f8"):
    buffer = io.BytesIO()
    said = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, said)
    return buffer.getvalue()


def bomb(path, arrays, add=False):
    """An archive whose members unpack to zeros of these shapes."""
    with zipfile.ZipFile(path, "a" if add else "w", zipfile.ZIP_DEFLATED) as archive:
        for name, shape in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(header(shape))
                for _ in range(int(np.prod(shape)) // (1 << 21)):
                    file.write(bytes(1 << 24))
    assert path.stat().st_size < 2e6


def test_archives_that_unpack_to_much(tmp_path, monkeypatch):
    monkeypatch.setattr(safe_archives, "_SURELY_FINE", 1 << 20)
    path = tmp_path / "a.npz"
    bomb(path, {"X": (2, 1 << 21), "names": (1 << 22,)})
    for use in (
        lambda: read(path, Reading(variable="X")),
        lambda: load_npz(path),
        lambda: load_npz(path, ["names"]),
    ):
        with pytest.raises(UnreadableError, match="more than 250 times its own length"):
            use()
    with pytest.raises(UnreadableError, match="no list of names"):
        read_names(f"{path}:names")
    saved = factorize(X, [2], max_iter=1, tol=0, random_state=0).save(tmp_path / "f.npz")
    bomb(saved, {"history_more": (1 << 22,)}, add=True)
    with pytest.raises(ValueError, match="not a whole deepmf factorization"):
        Factorization.load(saved)


@pytest.mark.parametrize("shape", [(10**6, 10**6), (2**62,), (-1, 5)])
def test_headers_that_promise_much(tmp_path, shape):
    (tmp_path / "a.npy").write_bytes(header(shape) + b"0" * 80)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("meta.npy", header(shape) + b"0" * 80)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/factors.npz").write_bytes((tmp_path / "a.npz").read_bytes())
    np.save(tmp_path / "x.npy", X)
    for use in (
        lambda: read(tmp_path / "a.npy"),
        lambda: read_names(str(tmp_path / "a.npy")),
        lambda: read_truth(tmp_path / "a.npy", read(tmp_path / "x.npy")),
        lambda: Factorization.load(tmp_path / "a.npz"),
        lambda: load_run(tmp_path / "run"),
    ):
        with pytest.raises(ValueError, match=r"\.$"):
            use()


def test_what_a_file_may_unpack_to(tmp_path, monkeypatch):
    monkeypatch.setattr(safe_archives, "_SURELY_FINE", 1000)
    (tmp_path / "a").write_bytes(b"0" * 100)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/c").write_bytes(b"0" * 100)
    assert room(tmp_path / "a") == room(tmp_path / "b") == 25_000
    check_room(tmp_path / "a", (25_000,), "u1")
    with pytest.raises(UnreadableError, match="too short"):
        check_room(tmp_path / "a", (25_001,), "u1")


def test_packed_text_that_unpacks_to_much(tmp_path, monkeypatch):
    monkeypatch.setattr(safe_archives, "_SURELY_FINE", 10_000)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 1_000_000))
    (tmp_path / "a.mtx.gz").write_bytes(gzip.compress(b"%%MatrixMarket" + b" " * 4_000_000))
    pytest.importorskip("pandas")
    for name in ("a.csv.gz", "a.mtx.gz"):
        with pytest.raises(UnreadableError, match="unpacks to far more"):
            read(tmp_path / name)


def test_matlab_and_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.mat"
    for shapes in ({"X": (1 << 14, 1 << 14)}, {"X": (4, 5), "w": (1, 2 * MANY)}):
        with h5py.File(path, "w") as file:
            for name, shape in shapes.items():
                file.create_dataset(name, shape, "f8", chunks=(1, min(1024, shape[1])))
        with pytest.raises(UnreadableError, match="times its own length"):
            read(path)
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["MATLAB_sparse"] = 5
        group["jc"] = [0, 1, 2]
        for name in ("ir", "data"):
            group.create_dataset(name, (MANY,), "f8", chunks=(1 << 10,))
    with pytest.raises(UnreadableError, match="times its own length"):
        read(path)
    (tmp_path / "4.mat").write_bytes(struct.pack("<5i", 0, 1 << 20, 1 << 20, 0, 2) + b"X\0" * 40)
    with pytest.raises(UnreadableError, match="does not fit in memory"):
        read(tmp_path / "4.mat")


@pytest.mark.parametrize("name", ["a.mat", "a.nc", "a.h5ad"])
def test_hdf5_never_reads_other_files(tmp_path, name):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("xarray")
    pytest.importorskip("anndata")
    secret = str(tmp_path / "secret")
    Path(secret).write_bytes(bytes(range(160)))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["s"] = X
    path = tmp_path / name
    for make in (
        lambda f: f.create_dataset("X", (4, 5), "f8", external=[(secret, 0, 160)]),
        lambda f: f.__setitem__("X", h5py.ExternalLink(str(tmp_path / "other.h5"), "/s")),
        lambda f: f.create_virtual_dataset("X", _virtual(h5py, tmp_path / "other.h5")),
    ):
        with h5py.File(path, "w") as file:
            make(file)
        with pytest.raises(UnreadableError, match="keeps X in another file"):
            read(path)


def _virtual(h5py, path):
    layout = h5py.VirtualLayout(X.shape, "f8")
    layout[:] = h5py.VirtualSource(str(path), "s", X.shape)
    return layout


def zarr_store(path):
    xr = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    xr.Dataset({"X": (("band", "x"), X)}).to_zarr(path, zarr_format=2, consolidated=False)
    return path / "X/.zarray"


@pytest.mark.parametrize(
    "said",
    [
        {"shape": [1 << 40, 1 << 20]},
        {"shape": [1 << 14, 1 << 14]},
        {"chunks": [1 << 14, 1 << 14]},
        {"shape": [MANY], "chunks": [8]},
    ],
)
def test_zarr(tmp_path, said):
    file = zarr_store(tmp_path / "a.zarr")
    file.write_text(json.dumps({**json.loads(file.read_text()), **said}))
    with pytest.raises(UnreadableError, match=r"times its own length|does not fit in memory"):
        read(tmp_path / "a.zarr")


def test_zarr_never_unpickles(tmp_path):
    file = zarr_store(tmp_path / "a.zarr")
    said = {**json.loads(file.read_text()), "dtype": "|O", "filters": [{"id": "pickle"}]}
    file.write_text(json.dumps({**said, "fill_value": None}).replace("pickle", "\\u0070ickle"))
    with pytest.raises(UnreadableError, match="holds Python objects"):
        read(tmp_path / "a.zarr")


def test_parquet_and_geotiff(tmp_path, monkeypatch):
    monkeypatch.setattr(safe_archives, "_SURELY_FINE", 1000)
    pd, rasterio = pytest.importorskip("pandas"), pytest.importorskip("rasterio")
    pd.DataFrame(np.zeros((300_000, 3)), columns=list("abc")).to_parquet(tmp_path / "a.parquet")
    kind = {"width": 2048, "height": 2048, "count": 3, "dtype": "float64", "tiled": True}
    with rasterio.open(tmp_path / "a.tif", "w", "GTiff", sparse_ok=True,
                       transform=rasterio.Affine(2, 0, 0, 0, -2, 0), **kind):  # fmt: skip
        pass
    for name in ("a.parquet", "a.tif"):
        with pytest.raises(UnreadableError, match="times its own length"):
            read(tmp_path / name)


def test_sparse_matrices_of_nothing(tmp_path):
    parts = {"data": np.ones(2), "indices": [0, 1], "indptr": [0, 2], "format": b"csr"}
    np.savez(tmp_path / "a.npz", shape=[1, 10**15], **parts)
    with pytest.raises(UnreadableError, match="claims 1 x 1000000000000000 with 2 entries"):
        read(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", shape=[1, 5], **{**parts, "indices": [0, 10**8]})
    with pytest.raises(UnreadableError, match="not a whole NumPy archive"):
        read(tmp_path / "a.npz", Reading(bad_bands="1"))


@pytest.mark.parametrize("end", [" ", "[", " 4", "\0[\n", "\r"])
def test_matrix_market_files_without_a_last_end_of_line(tmp_path, end):
    """On some of these SciPy's reader ends the whole program."""
    path = tmp_path / "a.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 3\n2 2 5{end}")
    try:
        data = read(path)
    except UnreadableError:
        return
    np.testing.assert_array_equal(data.X.toarray(), np.diag([3, 5, 0]))


def test_envi_headers_of_any_length_take_no_time(tmp_path):
    """Seen by this test's not taking hours."""
    (tmp_path / "a.img").write_bytes(b"0" * 8)
    for text in ("a" + " " * 10**6, "a={\n" * 250_000, "a={\n" + "b=1\n" * 250_000):
        (tmp_path / "a.hdr").write_text("ENVI\n" + text)
        with pytest.raises(UnreadableError, match="whole number of lines"):
            read(tmp_path / "a.hdr")


@pytest.mark.parametrize("text", ["[" * 10**5, "9" * 10**5, "{a=" * 10**4, "'\\u0000'", "1e999"])
def test_settings(tmp_path, text):
    (tmp_path / "c.toml").write_text(f"[fit]\nranks = {text}")
    try:
        given = Config.from_toml(tmp_path / "c.toml").arguments()
    except ConfigError:
        pass
    else:
        with pytest.raises(ValueError, match="ranks must be"):
            factorize(X, **given)


def test_nothing_is_unpickled_or_evaluated():
    """Workers of a cluster alone unpickle, what their own client packed."""
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            assert name not in ("eval", "exec", "os.system"), path
            assert "joblib" not in name, path
            if name.endswith(("pickle.loads", "pickle.load")):
                assert path.name == "worker.py", path
            if name == "np.load":
                said = {k.arg: ast.unparse(k.value) for k in node.keywords}
                assert said.get("allow_pickle") == "False", path


def test_no_network(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError(f"asked the network for {args}")

    for name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    np.save(tmp_path / "x.npy", X)
    f = factorize(read(tmp_path / "x.npy"), [3, 2], max_iter=2, tol=0, random_state=0)
    Factorization.load(f.save(tmp_path / "f.npz")).encode(X)
    for address in ("http://example.com/x.npy", "/vsicurl/http://example.com/x.tif", "s3://b/x.nc"):
        with pytest.raises(FileNotFoundError):
            read(address)
