"""NumPy's files: mapped, named, sparse, broken."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from deepmf import factorize
from deepmf.data import on_disk
from deepmf.io import Reading, UnreadableError, format_of, read
from deepmf.unmixing import mixture

ROWS, COLS, BANDS = 4, 5, 6
CUBE = np.random.default_rng(0).random((ROWS, COLS, BANDS))
FLAT = CUBE.reshape(-1, BANDS).T
WAVES = np.linspace(400, 900, BANDS)


def pictures(data):
    return np.stack([data.image(band) for band in data.X], axis=2)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2"])
def test_small_integers_are_read_as_float32_whatever_the_size_of_the_file(
    tmp_path, monkeypatch, dtype
):
    np.save(tmp_path / "x.npy", (9 * CUBE).astype(dtype))
    loaded = read(tmp_path / "x.npy").X
    assert type(loaded) is np.ndarray
    assert loaded.dtype == np.float32
    monkeypatch.setattr(on_disk, "_LARGE", 0)
    mapped = read(tmp_path / "x.npy").X
    assert isinstance(mapped, on_disk.OnDisk)
    np.testing.assert_array_equal(loaded, mapped)
    fits = [factorize(X, [2], max_iter=3, tol=0, random_state=0) for X in (loaded, mapped)]
    assert [f.W[0].dtype for f in fits] == [np.float32, np.float32]
    np.testing.assert_allclose(fits[0].W[0], fits[1].W[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8", "f2"])
def test_arrays_stay_on_disk(tmp_path, order, dtype):
    for name, array in (("cube.npy", CUBE), ("flat.npy", FLAT)):
        np.save(tmp_path / name, np.asarray(array, dtype=dtype, order=order))
        data = read(tmp_path / name)
        assert isinstance(data.X, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            data.X[0, 0] = 0
        np.testing.assert_array_equal(data.X.shape, (BANDS, ROWS * COLS))
    assert data.layout.kind == "table"
    np.testing.assert_array_equal(pictures(read(tmp_path / "cube.npy")), CUBE.astype(dtype))


def test_archives(tmp_path):
    path = tmp_path / "a.npz"
    names = [f"b{k}" for k in range(BANDS)]
    np.savez(path, X=FLAT, M=np.ones((BANDS, 3)), wavelengths=WAVES, features=names,
             image_shape=(ROWS, COLS))  # fmt: skip
    data = read(path)
    np.testing.assert_array_equal(pictures(data), CUBE)
    np.testing.assert_array_equal(data.layout.wavelengths, WAVES)
    assert data.layout.features.tolist() == names
    assert [v.name for v in format_of(path).variables(path)][:2] == ["X", "M"]
    np.savez_compressed(path, cube=CUBE, wl=WAVES / 1000)
    np.testing.assert_allclose(read(path).layout.wavelengths, WAVES)
    np.savez(path, A=FLAT, B=FLAT)
    with pytest.raises(UnreadableError, match="Say which one is the data with variable"):
        read(path)
    assert read(path, Reading(variable="B")).X.shape == FLAT.shape
    np.savez(path, X=FLAT, image_shape=(3, 3))
    with pytest.raises(UnreadableError, match="image_shape must be rows and cols"):
        read(path)


def test_sparse_archives(tmp_path):
    A = sparse.random_array((6, 9), density=0.3, rng=np.random.default_rng(0), format="csr")
    sparse.save_npz(tmp_path / "a.npz", A)
    data = read(tmp_path / "a.npz")
    assert sparse.issparse(data.X)
    np.testing.assert_array_equal(data.X.toarray(), A.toarray())
    assert read(tmp_path / "a.npz", Reading(rows="samples")).X.shape == (9, 6)


def header(shape, dtype="<f8"):
    buffer = BytesIO()
    said = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, said)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((10**6, 10**6, 10**6), "too short: 1000000 x 1000000 x 1000000 values"),
        ((10**15, 10**15), "too short"),
        ((3, 4), "too short: 3 x 4 values of type float64 take 96 bytes, but it has 80"),
        ((0, 4), "is empty"),
        ((-1, 4), "is empty"),
        ((10,), "expected a matrix"),
        ((), "expected a matrix"),
    ],
)
def test_headers_that_promise_too_much(tmp_path, shape, said):
    content = header(shape) + b"\0" * 80
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(UnreadableError, match=said):
        read(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", content)
    with pytest.raises(UnreadableError, match=r"too short|is empty|no matrix"):
        read(tmp_path / "a.npz")


def test_objects_are_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    bombs = np.array([[Bomb(), Bomb()], [Bomb(), Bomb()]], dtype=object)
    np.save(tmp_path / "a.npy", bombs, allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=bombs)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(UnreadableError, match="holds Python objects"):
            read(tmp_path / name)


def test_text_complex_and_records(tmp_path):
    for array in (FLAT.astype(str), FLAT + 1j, np.zeros((3, 4), dtype="f4,i4")):
        np.save(tmp_path / "a.npy", array)
        with pytest.raises(UnreadableError, match="expected real numbers"):
            read(tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_cut_and_damaged_files(tmp_path, name):
    path = tmp_path / name
    np.save(path, FLAT) if name == "a.npy" else np.savez(path, X=FLAT, wavelengths=WAVES)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 37):
        path.write_bytes(whole[:length])
        with pytest.raises(UnreadableError) as error:
            read(path)
        assert str(error.value).endswith(".")
    rng = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(0, len(whole) if name == "a.npz" else 128)] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            data = read(path)
        except UnreadableError:
            continue
        assert data.X.ndim == 2


def test_codes(tmp_path):
    cube = CUBE.copy()
    cube[2, 2] = np.nan
    np.save(tmp_path / "a.npy", cube)
    data = read(tmp_path / "a.npy")
    f = factorize(np.asarray(data.X), [3, 2], max_iter=3, tol=0, random_state=0)
    f = replace(f, layout=data.layout)
    format_of(tmp_path / "a.npy").write(tmp_path, f, [list("abc"), list("de")])
    maps = np.load(tmp_path / "fractions-layer-2.npy")
    assert maps.shape == (2, ROWS, COLS)
    fractions = mixture(f.basis(2), f.codes(2)).fractions
    np.testing.assert_array_equal(maps[1], f.layout.image(fractions[1]))
    signed = replace(f, W=[-f.W[0], f.W[1]])
    format_of(tmp_path / "a.npy").write(tmp_path, signed, [list("abc"), list("de")])
    codes = np.load(tmp_path / "codes-layer-1.npy")
    np.testing.assert_array_equal(codes[1], f.layout.image(f.codes(1)[1]))


def test_real_files():
    given = os.environ.get("DEEPMF_DATA")
    if not given or not (Path(given) / "urban/urban_d4_77x77.npz").is_file():
        pytest.skip("DEEPMF_DATA is not set: no real data")
    urban = read(Path(given) / "urban/urban_d4_77x77.npz", Reading(order="F"))
    assert (urban.layout.image_shape, urban.X.shape) == ((77, 77), (162, 5929))
    np.testing.assert_array_equal(urban.image(urban.X[9]), urban.X[9].reshape(77, 77).T)
    counts = read(Path(given) / "text/20news_counts.npz")
    assert counts.X.shape == (7791, 15768)
    with pytest.raises(UnreadableError, match=r"only terms \(7791"):
        read(Path(given) / "text/20news_meta.npz")
