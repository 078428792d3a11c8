"""MATLAB files of all versions, the published scenes among them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat, savemat

from deepmf import factorize
from deepmf.data.provenance import Source
from deepmf.io import Reading, UnreadableError, format_of, read
from deepmf.io.mat import load
from deepmf.unmixing import mixture

ROWS, COLS, BANDS = 3, 4, 5
CUBE = np.random.default_rng(0).random((ROWS, COLS, BANDS)) + 0.1
FLAT = CUBE.reshape(-1, BANDS, order="F").T  # pixels down the columns
WAVES = np.linspace(400, 900, BANDS)


def save73(path, variables):
    """As MATLAB does: a header of 512 bytes, dimensions reversed, classes in attributes."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            value = np.atleast_2d(value)
            if value.dtype == object:
                cells = [
                    file.create_dataset(
                        f"#refs#/{name}{k}", data=[[ord(c)] for c in text], dtype="u2"
                    )
                    for k, text in enumerate(value.ravel())
                ]
                node = file.create_dataset(name, (1, len(cells)), dtype=h5py.ref_dtype)
                node[0] = [cell.ref for cell in cells]
                node.attrs["MATLAB_class"] = np.bytes_("cell")
                continue
            node = file.create_dataset(name, data=value.T)
            kinds = {"float64": "double", "float32": "single", "bool": "logical"}
            node.attrs["MATLAB_class"] = np.bytes_(kinds.get(str(value.dtype), str(value.dtype)))
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def save4(path, variables):
    savemat(path, {k: v for k, v in variables.items() if v.dtype != object}, format="4")


SAVE = {
    "4": save4,
    "5": savemat,
    "7": lambda p, v: savemat(p, v, do_compression=True),
    "7.3": save73,
}
LATER = ["5", "7", "7.3"]


def scene(**more):
    return {"Y": FLAT, "nRow": np.array([[ROWS]]), "nCol": np.array([[COLS]]), **more}


def same(data, cube=CUBE):
    pictures = np.stack([data.image(band) for band in data.X], axis=2)
    np.testing.assert_allclose(pictures, cube)


@pytest.mark.parametrize("version", SAVE)
def test_published_scenes(tmp_path, version):
    SAVE[version](tmp_path / "a.mat", scene(maxValue=np.array([[7.0]]), wavelength=WAVES[None]))
    data = read(tmp_path / "a.mat")
    same(data)
    np.testing.assert_array_equal(data.layout.wavelengths, WAVES)
    assert data.layout.source == Source("MATLAB")


@pytest.mark.parametrize("version", SAVE)
def test_the_other_way_round(tmp_path, version):
    SAVE[version](tmp_path / "a.mat", scene(Y=FLAT.T))
    same(read(tmp_path / "a.mat"))
    SAVE[version](tmp_path / "b.mat", {"A": FLAT.T, "wl": WAVES[:, None] / 1000})
    data = read(tmp_path / "b.mat")
    np.testing.assert_array_equal(data.X, FLAT)
    np.testing.assert_allclose(data.layout.wavelengths, WAVES)


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint16", "int16", "uint8", "int32"])
def test_cubes(tmp_path, version, dtype):
    cube = (CUBE * 100).astype(dtype)
    text = np.array(["a", "bc"], dtype=object)
    SAVE[version](tmp_path / "a.mat", {"indian_pines": cube, "names": text})
    data = read(tmp_path / "a.mat")
    same(data, cube)
    if dtype == "float64":  # MATLAB's order of pixels needs no copy
        assert data.X.flags.c_contiguous
        assert data.layout.order == "F"


@pytest.mark.parametrize("version", LATER)
def test_which_variable(tmp_path, version):
    path = tmp_path / "a.mat"
    SAVE[version](path, {"A": FLAT, "B": FLAT + 1})
    with pytest.raises(UnreadableError, match=r"A \(5 x 12 float64\), B .* with variable"):
        read(path)
    np.testing.assert_array_equal(read(path, Reading(variable="B")).X, FLAT + 1)
    with pytest.raises(UnreadableError, match="has no variable 'C'; it has A"):
        read(path, Reading(variable="C"))
    SAVE[version](path, {"A": FLAT, "X": FLAT + 1})
    np.testing.assert_array_equal(read(path).X, FLAT + 1)
    SAVE[version](path, {"n": np.array([[3.0]]), "t": np.array(["ab"], dtype=object)})
    with pytest.raises(UnreadableError, match=r"no matrix or cube of numbers, only .*1 x 1"):
        read(path)
    with pytest.raises(UnreadableError, match="t is a cell of MATLAB's; expected numbers"):
        read(path, Reading(variable="t"))


@pytest.mark.parametrize("version", LATER)
def test_empty_and_complex(tmp_path, version):
    path = tmp_path / "a.mat"
    SAVE[version](path, {"X": np.zeros((0, 3))})
    with pytest.raises(UnreadableError):
        read(path)
    SAVE[version](path, {"X": FLAT + 1j})
    with pytest.raises(UnreadableError, match=r"real numbers|no matrix or cube of numbers"):
        read(path)


def test_sparse(tmp_path):
    A = sparse.random_array((6, 8), density=0.4, rng=np.random.default_rng(0), format="csc")
    savemat(tmp_path / "a.mat", {"X": A})
    with h5py.File(tmp_path / "b.mat", "w") as file:
        group = file.create_group("X")
        group.attrs["MATLAB_sparse"] = np.uint64(6)
        for name, part in (("data", A.data), ("ir", A.indices), ("jc", A.indptr)):
            group[name] = part
    for name in ("a.mat", "b.mat"):
        X = read(tmp_path / name).X
        assert sparse.issparse(X)
        np.testing.assert_array_equal(X.toarray(), A.toarray())


def test_structs_and_functions_are_not_data(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"s": {"X": FLAT}, "c": np.array([FLAT, "x"], dtype=object)})
    with pytest.raises(UnreadableError, match=r"only s \(1 x 1 struct\), c \(1 x 2 cell\)"):
        read(path)
    with h5py.File(path, "w") as file:
        file.create_group("s")["X"] = FLAT
        node = file.create_dataset("f", data=np.zeros((4, 4), dtype="u4"))
        node.attrs["MATLAB_class"] = np.bytes_("function_handle")
        refs = file.create_dataset("r", (3, 3), dtype=h5py.ref_dtype)
        refs[...] = file["f"].ref
    with pytest.raises(UnreadableError, match=r"f \(4 x 4 function_handle\), r \(3 x 3 object\)"):
        read(path)
    for name in ("f", "r", "s"):
        with pytest.raises(UnreadableError, match="expected numbers"):
            read(path, Reading(variable=name))


def test_two_variables_of_one_name_need_no_warning(tmp_path):
    savemat(tmp_path / "a.mat", {"X": FLAT})
    one = (tmp_path / "a.mat").read_bytes()
    (tmp_path / "b.mat").write_bytes(one + one[128:])
    np.testing.assert_array_equal(read(tmp_path / "b.mat").X, FLAT)
    assert list(load(tmp_path / "b.mat")) == ["X"]


def test_a_variable_that_scipy_only_warns_of(tmp_path, monkeypatch):
    savemat(tmp_path / "a.mat", {"X": FLAT})
    monkeypatch.setattr("scipy.io.loadmat", lambda *_, **__: {"X": "Read error: ..."})
    with pytest.raises(UnreadableError, match="damaged: its variable X cannot be read"):
        read(tmp_path / "a.mat")


def test_names_in_cells(tmp_path):
    names = np.array(["1-Road", "2-Tree"], dtype=object)
    for version in LATER:
        SAVE[version](tmp_path / "a.mat", {"M": FLAT[:, :2], "cood": names})
        cells = load(tmp_path / "a.mat")["cood"].ravel()
        assert [str(np.ravel(cell)[0]) for cell in cells] == ["1-Road", "2-Tree"]


def outcome(path):
    """``data``, or ``refused`` with a sentence; anything else is a failure."""
    try:
        read(path)
    except UnreadableError as error:
        return "refused" if str(error).endswith(".") else str(error)
    return "data"


@pytest.mark.parametrize("version", SAVE)
def test_cut_files(tmp_path, version):
    path = tmp_path / "a.mat"
    SAVE[version](path, {"Y": FLAT})
    whole = path.read_bytes()
    for length in {*range(0, len(whole) - 8, max(1, len(whole) // 60)), 1, 100, 127, 128, 136}:
        path.write_bytes(whole[:length])
        assert outcome(path) == "refused", length


@pytest.mark.parametrize("seed", range(20))
def test_damaged_files(tmp_path, seed):
    """Some bytes changed: a sentence or data, nothing else; SciPy alone crashes on a few."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "a.mat"
    for save in SAVE.values():
        save(path, scene(names=np.array(["a", "bc"], dtype=object)))
        whole = bytearray(path.read_bytes())
        for at in rng.integers(0, len(whole), 8):
            whole[at] = rng.integers(0, 256)
        path.write_bytes(whole)
        assert outcome(path) in ("data", "refused")


def test_tags_that_crash_scipy(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"X": FLAT, "Z": FLAT})
    whole = path.read_bytes()
    tag = whole.index(b"\x09\0\0\0")  # the type of X's values: doubles
    for at, byte in ((tag, 14), (tag, 15), (tag, 99), (128 + 16 + 1, 8)):  # the last: complex
        path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        with pytest.raises(UnreadableError, match=r"its part at byte \d+ is cut or damaged"):
            read(path)


def test_codes(tmp_path):
    cube = CUBE.copy()
    cube[1, 1] = np.nan
    savemat(tmp_path / "a.mat", {"cube": cube, "wavelength": WAVES})
    data = read(tmp_path / "a.mat")
    f = factorize(np.asarray(data.X), [3, 2], max_iter=3, tol=0, random_state=0)
    f = replace(f, layout=data.layout)
    kind = format_of(tmp_path / "a.mat")
    kind.write(tmp_path, f, [["soil", "tree", "water"], ["dry", "wet"]])
    one, two = (loadmat(tmp_path / f"codes-layer-{layer}.mat") for layer in (1, 2))
    np.testing.assert_array_equal(one["H"], f.H[0])
    np.testing.assert_array_equal(two["W"], f.W[1])
    np.testing.assert_array_equal(two["links"], f.links(2))
    np.testing.assert_array_equal(one["wavelengths"].ravel(), WAVES)
    assert [str(cell[0]) for cell in one["names"].ravel()] == ["soil", "tree", "water"]
    for k, row in enumerate(mixture(f.basis(2), f.codes(2)).fractions):
        np.testing.assert_array_equal(two["fractions"][:, :, k], f.layout.image(row))
    assert np.isnan(one["fractions"][1, 1]).all()
    assert "fractions of each pixel" in str(one["about"])
    kind.write(
        tmp_path, replace(f, layout=data.layout.of_samples(None)), [["a", "b", "c"], ["d", "e"]]
    )
    np.testing.assert_array_equal(loadmat(tmp_path / "codes-layer-2.mat")["codes"], f.codes(2))


# --- real data -----------------------------------------------------------------------------------


@pytest.fixture
def folder():
    given = os.environ.get("DEEPMF_DATA")
    if not given or not (Path(given) / "faces/CBCL.mat").is_file():
        pytest.skip("DEEPMF_DATA is not set: no real data")
    return Path(given)


def test_real_files(folder):
    samson = read(folder / "samson/samson_1.mat")
    assert samson.X.shape == (156, 9025)
    assert samson.layout.kind == "scene"
    smooth = np.abs(np.diff(samson.image(samson.X[80]), axis=0)).mean()
    assert smooth < 0.1 * np.abs(samson.image(samson.X[80])).max()
    moffett = read(folder / "moffett/Moffet.mat", Reading(image=(50, 50)))
    assert (moffett.layout.kind, moffett.layout.order) == ("scene", "F")
    faces = read(folder / "faces/CBCL.mat", Reading(image=(19, 19), order="F"))
    assert faces.layout.kind == "pictures"
    np.testing.assert_array_equal(faces.image(faces.X[:, 3])[:, 0], faces.X[:19, 3])
    with pytest.raises(UnreadableError, match=r"several matrices: A .* M "):
        read(folder / "samson/end3.mat")
    maps = read(folder / "urban/end6_groundTruth.mat", Reading(variable="A"))
    assert maps.layout.image_shape == (307, 307)
    assert read(folder / "urban/end6_groundTruth.mat", Reading(variable="M")).X.shape == (162, 6)


def test_answers_by_name(tmp_path):
    """The same as those of the command line."""
    cube = np.random.default_rng(0).random((6, 4, 4))
    savemat(tmp_path / "a.mat", {"myscene": cube, "other": cube})
    data = read(tmp_path / "a.mat", variable="myscene", bands="first", bad_bands="1", nodata=-1)
    assert data.X.shape == (5, 16)
    assert read(tmp_path / "a.mat", Reading(variable="myscene"), bands="last").X.shape == (4, 24)
    with pytest.raises(TypeError, match="not read by 'band'; there are variable, rows, bands"):
        read(tmp_path / "a.mat", band="first")
    with pytest.raises(UnreadableError, match="bands must be first or last"):
        read(tmp_path / "a.mat", bands="middle")
