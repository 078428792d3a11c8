"""Bands, pixels and axes: what is the same for all formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import deepmf.data.lazy_cube as module
from deepmf._utils.safe_archives import check_length, check_room
from deepmf.data.assemble import from_cube, from_matrix, names_array
from deepmf.data.layout import Layout
from deepmf.data.wavelengths import (
    as_wavelengths,
    band_numbers,
    find_wavelengths,
    in_nanometers,
    names_wavelengths,
    read_wavelengths,
    wavelength_in,
)
from deepmf.io import Reading, UnreadableError, Variable
from deepmf.io.variables import choose

FILE = Path("scene.raw")
ROWS, COLS, BANDS = 4, 5, 6
CUBE = np.random.default_rng(0).random((ROWS, COLS, BANDS))
WAVES = np.array([450.0, 500.0, 600.0, 700.5, 850.0, 2100.0])
USUAL = Reading()


def pictures(data):
    return np.stack([data.image(band) for band in data.X], axis=2)


# --- cubes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cube",
    [
        CUBE,
        np.asfortranarray(CUBE),
        np.ascontiguousarray(CUBE.transpose(2, 0, 1)).transpose(1, 2, 0),
        CUBE[::1, ::1].astype(">f4"),
    ],
    ids=["bip", "matlab", "bsq", "other bytes"],
)
def test_whole_cubes_are_not_copied(cube):
    data = from_cube(FILE, cube, USUAL)
    assert np.shares_memory(data.X, cube)
    np.testing.assert_array_equal(pictures(data), cube)


def test_lines_of_bands_are_copied():
    cube = np.ascontiguousarray(CUBE.transpose(0, 2, 1)).transpose(0, 2, 1)
    np.testing.assert_array_equal(pictures(from_cube(FILE, cube, USUAL)), cube)


def test_small_integers_become_float32():
    for dtype, kind in (("u1", "f4"), ("i2", "f4"), ("u2", "f4"), ("?", "f4"), ("i4", "i4")):
        cube = (CUBE * 100).astype(dtype)
        X = from_cube(FILE, cube, USUAL).X
        assert X.dtype == kind
        np.testing.assert_array_equal(X, cube.reshape(-1, BANDS).T)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("block", [1, 7, 1 << 24])
def test_what_is_left_out(order, block, monkeypatch):
    """NaN, a value and a mask, against a plain loop, in blocks of any size."""
    monkeypatch.setattr(module, "_BLOCK", block)
    rng = np.random.default_rng(1)
    values = rng.random((ROWS, COLS, BANDS))
    values[rng.random(values.shape) < 0.02] = np.nan
    values[rng.random(values.shape) < 0.02] = -1
    values[..., 3] = -1  # a band of nothing
    bad = [False, True, False, False, False, False]
    cube = np.ma.masked_array(np.asarray(values, order=order), mask=False, order=order)
    cube[0, 0, 5] = np.ma.masked
    values[1, 1] = -1
    values[2, 2] = np.nan
    cube = np.ma.masked_array(np.asarray(values, order=order), mask=cube.mask)
    kept = [0, 2, 4, 5]
    for gaps in (None, True):
        reading = Reading(gaps=gaps)
        data = from_cube(FILE, cube, reading, bad=bad, nodata=-1, wavelengths=WAVES)
        np.testing.assert_array_equal(data.layout.bands, np.array(kept) + 1)
        np.testing.assert_array_equal(data.layout.wavelengths, WAVES[kept])
        assert data.layout.total_bands == BANDS
        assert not np.ma.isMaskedArray(data.X)
        shown = pictures(data)
        for i in range(ROWS):
            for j in range(COLS):
                pixel = np.where(values[i, j, kept] == -1, np.nan, values[i, j, kept])
                if (i, j) == (0, 0):
                    pixel[-1] = np.nan
                lost = np.isnan(pixel)
                assert data.layout.valid[i, j] == (not lost.all() if gaps else not lost.any())
                wanted = pixel if data.layout.valid[i, j] else np.nan
                np.testing.assert_array_equal(shown[i, j], wanted)


@pytest.mark.parametrize(
    ("value", "least", "kept"),
    [(0, 0.1, True), (-1, 0.1, False), (-1, -5, True), (9, 0.1, False), (0.5, 0.1, True)],
)
def test_a_value_of_no_data_in_some_bands_alone(value, least, kept):
    """Dark water has zeros in the infrared; no reflectance is negative."""
    cube = CUBE + 0.1
    cube[0, 0, 0] = least
    cube[3, 3, 1] = 0.9
    cube[1, 1] = value
    cube[2, 2, 4] = value
    data = from_cube(FILE, cube, Reading(bands="last"), nodata=value)
    assert not data.layout.valid[1, 1]
    assert data.layout.valid[2, 2] == kept
    said = " ".join(data.notes)
    assert "Pixels without data, left out: 1 of 20." in said
    way = f"the no-data value {value:g} in some bands only, kept as a value there: 1 of 20."
    assert (way in said) == kept
    assert ("Pixels that lack some bands, left out: 1 of 20" in said) == (not kept)
    gaps = from_cube(FILE, cube, Reading(gaps=True), nodata=value)
    assert gaps.layout.valid.sum() == 19
    shown = pictures(gaps)[2, 2]
    np.testing.assert_array_equal(np.isnan(shown), (np.arange(BANDS) == 4) & (not kept))


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (2, 0, 1)], ids=["bip", "bil", "bsq"])
@pytest.mark.parametrize("factor", [1.0, 100.0])
def test_a_large_file_stays_on_disk(tmp_path, monkeypatch, axes, factor):
    """Whatever its order, and whatever is left out or scaled."""
    monkeypatch.setattr(module.OnDisk, "width", 7)
    monkeypatch.setattr("deepmf.data.on_disk._LARGE", 1)
    cube = (CUBE * 1000).astype(np.int16) + 1
    cube[1, 1] = cube[3] = cube[2, 2, 4] = -99
    stored = np.memmap(tmp_path / "x", np.int16, "w+", shape=tuple(np.shape(cube)[k] for k in axes))
    stored[...] = cube.transpose(axes)
    mapped = stored.transpose(np.argsort(axes))
    reading = Reading(gaps=True, bad_bands="2")
    data = from_cube(FILE, mapped, reading, axis="last", nodata=-99, factor=factor)
    assert isinstance(data.X, module.OnDisk)
    assert data.X.dtype == np.float32
    wanted = np.where(cube == -99, np.nan, np.float32(cube) / np.float32(factor))
    wanted = wanted[data.layout.valid][:, [0, 2, 3, 4, 5]].T
    np.testing.assert_array_equal(np.asarray(data.X), wanted)
    np.testing.assert_array_equal(np.hstack([block for _, block in data.X.blocks()]), wanted)
    some = np.array([5, 0, 3])
    np.testing.assert_array_equal(data.X[:, some], wanted[:, some])


def test_which_axis_is_spectral():
    first = np.moveaxis(CUBE, 2, 0)
    np.testing.assert_array_equal(pictures(from_cube(FILE, first, Reading(bands="first"))), CUBE)
    np.testing.assert_array_equal(pictures(from_cube(FILE, first, USUAL, axis="first")), CUBE)
    for place in (0, 1, 2):  # settled by the wavelengths
        moved = np.moveaxis(CUBE, 2, place)
        np.testing.assert_array_equal(
            pictures(from_cube(FILE, moved, USUAL, wavelengths=WAVES)), CUBE
        )
    square = np.ones((6, 4, 4))
    with pytest.raises(UnreadableError, match=r"\(6, 4, 4\).*bands='first' or bands='last'"):
        from_cube(FILE, square, USUAL)
    assert from_cube(FILE, square, Reading(bands="first")).X.shape == (6, 16)
    assert from_cube(FILE, square, Reading(bands="last")).X.shape == (4, 24)
    assert from_cube(FILE, np.ones((4, 4, 4)), USUAL).X.shape == (4, 16)
    with pytest.raises(UnreadableError, match="expected a cube"):
        from_cube(FILE, np.ones((2, 2, 2, 2)), USUAL)


@pytest.mark.parametrize(
    ("cube", "said"),
    [
        (CUBE + 1j, "complex128 values; expected real numbers"),
        (CUBE.astype(str), "expected real numbers"),
        (CUBE.astype(object), "object values; expected real numbers"),
        (CUBE[:0], "is empty: its array is 0 x 5 x 6"),
        (np.full_like(CUBE, np.nan), "all 6 bands are bad or without data"),
    ],
)
def test_bad_cubes(cube, said):
    with pytest.raises(UnreadableError, match=said):
        from_cube(FILE, cube, USUAL)


def test_no_pixel_is_whole():
    cube = CUBE.copy()
    cube.reshape(-1, BANDS)[np.arange(20), np.arange(20) % BANDS] = 9
    with pytest.raises(UnreadableError, match=r"each of its 20 pixels lacks data.*\(9\.0\)"):
        from_cube(FILE, cube, USUAL, nodata=9.0)


def test_lists_that_do_not_fit(tmp_path):
    with pytest.raises(
        UnreadableError, match=r"has 6 bands, but 7 wavelengths are listed in scene"
    ):
        from_cube(FILE, CUBE, USUAL, wavelengths=np.arange(1, 8))
    listed = tmp_path / "waves.txt"
    listed.write_text("400 500 600")
    with pytest.raises(UnreadableError, match=r"but 3 wavelengths are listed in .*waves\.txt"):
        from_cube(FILE, CUBE, Reading(wavelengths=str(listed)))
    with pytest.raises(UnreadableError, match="has '7', outside the file's bands, 1 to 6"):
        from_cube(FILE, CUBE, Reading(bad_bands="2,7"))


def test_the_users_answers_win(tmp_path):
    np.save(tmp_path / "waves.npy", WAVES / 1000)
    reading = Reading(wavelengths=str(tmp_path / "waves.npy"), bad_bands="none", nodata=5)
    cube = CUBE.copy()
    cube[1, 1] = 5
    data = from_cube(FILE, cube, reading, wavelengths=WAVES + 1, bad=[1] * BANDS, nodata=6)
    np.testing.assert_allclose(data.layout.wavelengths, WAVES)
    assert data.layout.bands is None
    assert not data.layout.valid[1, 1]
    named = Layout(features=names_array(range(BANDS)))
    fewer = from_cube(FILE, CUBE, Reading(bad_bands="1-2 5"), layout=named)
    assert fewer.layout.features.tolist() == ["2", "3", "5"]


# --- matrices ------------------------------------------------------------------------------------

FLAT = CUBE.reshape(-1, BANDS).T


def test_rows_of_a_matrix():
    assert from_matrix(FILE, FLAT, USUAL).X.shape == (6, 20)
    assert from_matrix(FILE, FLAT, Reading(rows="samples")).X.shape == (20, 6)
    # settled by the wavelengths or by the file's own picture, unless the user says otherwise
    np.testing.assert_array_equal(from_matrix(FILE, FLAT.T, USUAL, wavelengths=WAVES).X, FLAT)
    shaped = Layout(image_shape=(ROWS, COLS))
    np.testing.assert_array_equal(from_matrix(FILE, FLAT.T, USUAL, layout=shaped).X, FLAT)
    with pytest.raises(UnreadableError, match="20 bands, but 6 wavelengths"):
        from_matrix(FILE, FLAT.T, Reading(rows="features"), wavelengths=WAVES)


def test_pictures_of_a_matrix():
    scene = from_matrix(FILE, FLAT, Reading(image=(ROWS, COLS)))
    assert scene.layout.kind == "scene"
    np.testing.assert_array_equal(pictures(scene), CUBE)
    down = from_matrix(FILE, FLAT, Reading(image=(ROWS, COLS), order="F"))
    np.testing.assert_array_equal(down.image(down.X[0])[:, 0], FLAT[0, :ROWS])
    faces = from_matrix(FILE, FLAT.T, Reading(image=(ROWS, COLS)))
    assert faces.layout.kind == "pictures"
    with pytest.raises(UnreadableError, match="3 x 3 = 9 pixels fits neither"):
        from_matrix(FILE, FLAT, Reading(image=(3, 3)))
    with pytest.raises(UnreadableError, match=r"expected a matrix"):
        from_matrix(FILE, FLAT[0], USUAL)


def test_a_flat_scene_leaves_out_the_same():
    flat = FLAT.copy()
    flat[2, 7] = np.nan
    data = from_matrix(FILE, flat, Reading(image=(ROWS, COLS), order="F", bad_bands="1"))
    assert data.X.shape == (5, 19)
    assert [tuple(at) for at in np.argwhere(~data.layout.valid)] == [(7 % ROWS, 7 // ROWS)]


def test_bad_bands_without_a_picture():
    data = from_matrix(FILE, FLAT, Reading(bad_bands="2-3"), wavelengths=WAVES)
    np.testing.assert_array_equal(data.X, FLAT[[0, 3, 4, 5]])
    np.testing.assert_array_equal(data.layout.bands, [1, 4, 5, 6])
    thin = from_matrix(FILE, sparse.coo_array(FLAT), Reading(bad_bands="2-3"))
    np.testing.assert_array_equal(thin.X.toarray(), data.X)
    with pytest.raises(UnreadableError, match="is not a scene of pixels"):
        from_matrix(FILE, FLAT, Reading(nodata=0))
    with pytest.raises(UnreadableError, match="is not a scene of pixels"):
        from_matrix(FILE, FLAT.T, Reading(image=(ROWS, COLS), bad_bands="1"))


# --- lists of bands ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"), [("1", [1]), ("1-3,7", [1, 2, 3, 7]), (" 7 1-2, 2 ", [1, 2, 7])]
)
def test_band_numbers(text, numbers):
    assert band_numbers(text, 7).tolist() == numbers


@pytest.mark.parametrize("text", ["", "a", "1;2", "0", "8", "3-1", "1-99", "-1", "1.5"])
def test_bad_band_numbers(text):
    with pytest.raises(UnreadableError, match="bad_bands"):
        band_numbers(text, 7)


@pytest.mark.parametrize(
    ("text", "waves"),
    [
        ("400\n500\n600\n", [400, 500, 600]),
        ("0.4, 0.5, 0.6", [400, 500, 600]),
        ("band,nm,fwhm\n1,400,5\n2,500,5\n", [400, 500]),
        ("0 400\n1 500\n", [400, 500]),
        ("name;wavelength\nB1;400.5\nB2;500\n", [400.5, 500]),
        ("\ufeffwavelength\n1.0\n2.0\n", [1000, 2000]),
    ],
)
def test_wavelength_files(tmp_path, text, waves):
    (tmp_path / "w.csv").write_text(text, encoding="utf-8")
    np.testing.assert_allclose(read_wavelengths(str(tmp_path / "w.csv")), waves)


@pytest.mark.parametrize(
    "content", [b"", b"a\nb\n", b"nan\n400\n", b"-1\n400\n", b"\xff\xfe\x00", b"1,a\n2,b,3\nx"]
)
def test_bad_wavelength_files(tmp_path, content):
    path = tmp_path / "w.txt"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match="holds no list of wavelengths"):
        read_wavelengths(str(path))
    path = tmp_path / "w.npy"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match="holds no list of wavelengths"):
        read_wavelengths(str(path))
    with pytest.raises(FileNotFoundError, match="with wavelengths"):
        read_wavelengths(str(tmp_path / "none.txt"))


def test_units():
    for unit in ("nm", "Nanometers", None, "unknown"):
        np.testing.assert_array_equal(in_nanometers(WAVES, unit), WAVES)
    for unit in ("um", "µm", "Micrometers", "microns", None):
        np.testing.assert_allclose(in_nanometers(WAVES / 1000, unit), WAVES)
    np.testing.assert_allclose(in_nanometers(1e7 / WAVES, "cm-1"), WAVES)
    assert as_wavelengths([1, np.nan]) is None
    assert as_wavelengths([0, 1]) is None
    assert as_wavelengths(["a"]) is None
    assert as_wavelengths([]) is None


def test_names():
    for name in ("wavelength", "Wavelengths", "wl", "lambda", "bands_wavelengths", "WAVELENGTH_nm"):
        assert names_wavelengths(name), name
    for name in ("band", "wlx", "x", "fwhm", ""):
        assert not names_wavelengths(name), name
    arrays = {"x": WAVES, "wl": WAVES[:3], "Wavelength": WAVES / 1000}
    np.testing.assert_allclose(find_wavelengths(arrays, (6, 20)), WAVES)
    assert find_wavelengths(arrays, (7, 20)) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("450 nm", 450),
        ("Band 3 (0.45 um)", 450),
        ("B1: 450.5nm wide", 450.5),
        ("2.1 Micrometers", 2100),
        *((text, None) for text in ("Band 450", "", None, "450 nmi", "B450nm")),
    ],
)
def test_wavelengths_in_words(text, value):
    assert wavelength_in(text) == (None if value is None else pytest.approx(value))


# --- choosing and sizes --------------------------------------------------------------------------


def test_choosing():
    a, b = Variable("a", (3, 4), "float64"), Variable("b", (3, 4, 5), ">f4")
    others = [
        Variable("t", (3, 4), "<U5"),
        Variable("v", (9,), "int64"),
        Variable("c", (2, 2), "cell"),
    ]
    assert choose(FILE, [*others, a], None) == "a"
    assert choose(FILE, [a, b], None, preferred=("z", "b")) == "b"
    assert choose(FILE, [a, b], "a") == "a"
    assert choose(FILE, [a, b, *others], None) == "b"  # one cube among matrices
    with pytest.raises(UnreadableError, match=r"several matrices: a \(3 x 4 float64\), t"):
        choose(FILE, [a, Variable("t", (3, 4), "i4"), *others[1:]], None)
    with pytest.raises(
        UnreadableError, match=r"no matrix or cube of numbers, only t \(3 x 4 <U5\)"
    ):
        choose(FILE, others, None)
    with pytest.raises(UnreadableError, match="only nothing"):
        choose(FILE, [], None)
    with pytest.raises(UnreadableError, match=r"b18 .*, 12 more"):
        choose(FILE, [Variable(f"b{k + 7}", (3, 3), "f4") for k in range(24)], None)


def test_sizes():
    check_length(FILE, (3, 4), "f4", 48)
    with pytest.raises(UnreadableError, match="too short: 3 x 4 values of type float32 take 48"):
        check_length(FILE, (3, 4), "f4", 47)
    with pytest.raises(UnreadableError, match="is empty"):
        check_length(FILE, (3, 0), "f4", 48)
    check_room(FILE, (3, 4), "f4")
    with pytest.raises(UnreadableError, match="does not fit in memory"):
        check_room(FILE, (10**6, 10**6, 10**6), "f4")
