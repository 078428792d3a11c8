"""Loaders against tiny files in the published form, and against the real files where present."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from deepmf.datasets import load_cbcl, load_jasper, load_moffett, load_samson, load_urban
from deepmf.metrics import match

ROWS, COLS, BANDS = 3, 4, 5
PIXELS = ROWS * COLS
COUNTS = np.arange(BANDS * PIXELS, dtype=np.uint16).reshape(BANDS, PIXELS) * 10


def cube(variable="Y", **more):
    return {variable: COUNTS, "nRow": ROWS, "nCol": COLS, **more}


def truth(names, bands=BANDS, pixels=PIXELS):
    rng = np.random.default_rng(len(names))
    cood = np.array([f"{i + 1}-{name}" for i, name in enumerate(names)], dtype=object)
    A = rng.dirichlet(np.ones(len(names)), size=pixels).T
    return {"M": rng.random((bands, len(names))), "A": A, "cood": cood[:, None]}


FOUR = truth(["Asphalt Road", "Grass", "Tree", "Roof"])
SIX = truth(["Asphalt Road", "Grass", "Tree", "Roof", "Metal", "Dirt"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DEEPMF_DATA", raising=False)
    return tmp_path


def save(path: Path, variables) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, variables)


# --- the published forms -------------------------------------------------------------------------


def test_urban(folder):
    save(folder / "a/b/Urban_R162.mat", cube(maxValue=1000))
    save(folder / "truth/end6_groundTruth.mat", SIX)
    save(folder / "truth/end4_groundTruth.mat", FOUR)
    data = load_urban(folder)
    np.testing.assert_allclose(data.X, COUNTS / 1000)
    np.testing.assert_array_equal(data.W[0], SIX["M"])
    np.testing.assert_array_equal(data.W[1], FOUR["M"])
    np.testing.assert_array_equal(data.H[0], SIX["A"])
    assert len(data.W) == 2
    assert len(data.H) == 1
    assert data.names[0] == ["Asphalt Road", "Grass", "Tree", "Roof", "Metal", "Dirt"]
    # consecutive pixels run down a column of the image
    np.testing.assert_allclose(data.image(data.X[0])[:, 0], COUNTS[0, :ROWS] / 1000)
    assert data.image(data.X[0]).shape == (ROWS, COLS)


def test_urban_with_other_numbers_of_materials(folder):
    save(folder / "Urban_R162.mat", cube(maxValue=1000))
    save(folder / "end4_groundTruth.mat", FOUR)
    assert [W.shape[1] for W in load_urban(folder, materials=4).W] == [4]
    with pytest.raises(FileNotFoundError, match=r"end6_groundTruth\.mat.*truth=False"):
        load_urban(folder)
    assert load_urban(folder, truth=False).W == []
    save(folder / "end5_groundTruth.mat", truth(list("abcde")))
    assert [W.shape[1] for W in load_urban(folder, materials=5).W] == [5, 4]
    (folder / "end4_groundTruth.mat").unlink()
    assert [W.shape[1] for W in load_urban(folder, materials=5).W] == [5]
    with pytest.raises(ValueError, match="materials=3"):
        load_urban(folder, materials=3)


def test_urban_reduced(folder):
    arrays = {"X": COUNTS / COUNTS.max(), "shape": (ROWS, COLS)}
    for k, one in ((4, FOUR), (6, SIX)):
        names = [str(cell) for cell in one["cood"].ravel()]
        arrays |= {f"M{k}": one["M"], f"A{k}": one["A"], f"names{k}": names}
    np.savez(folder / "urban_d4_77x77.npz", **arrays)
    # the full truth lies beside it and must not be mixed with the reduced scene
    save(folder / "end6_groundTruth.mat", truth(list("abcdef"), pixels=99))
    data = load_urban(folder)
    np.testing.assert_array_equal(data.X, arrays["X"])
    np.testing.assert_array_equal(data.W[1], FOUR["M"])
    np.testing.assert_array_equal(data.H[0], SIX["A"])
    assert data.names[1] == ["Asphalt Road", "Grass", "Tree", "Roof"]
    with pytest.raises(FileNotFoundError, match="end5_groundTruth"):
        load_urban(folder, materials=5)
    # the published scene is preferred once it is there
    save(folder / "Urban_R162.mat", cube(maxValue=1000))
    assert load_urban(folder, truth=False).X.max() == COUNTS.max() / 1000


def test_samson(folder):
    known = truth(["rock", "Tree", "water"])
    save(folder / "samson/samson_1.mat", {**cube("V"), "V": COUNTS / 600})
    save(folder / "samson/end3.mat", known)
    data = load_samson(folder)
    np.testing.assert_array_equal(data.X, COUNTS / 600)  # floats in [0, 1] stay as they are
    np.testing.assert_array_equal(data.W[0], known["M"])
    assert data.names == [["rock", "Tree", "water"]]
    assert data.wavelengths[[0, -1]].tolist() == [401, 889]
    assert data.image_shape == (ROWS, COLS)
    (folder / "samson/end3.mat").unlink()
    with pytest.raises(FileNotFoundError, match=r"looked for end3\.mat.*truth=False"):
        load_samson(folder)
    assert load_samson(folder, truth=False).names == []


def test_jasper(folder):
    save(folder / "jasperRidge2_R198.mat", cube(maxValue=5000))
    save(folder / "end4.mat", truth(["tree", "water", "dirt", "road"]))
    data = load_jasper(folder)
    np.testing.assert_allclose(data.X, COUNTS / 5000)
    assert data.names == [["tree", "water", "dirt", "road"]]
    assert load_jasper(folder, truth=False).H == []


@pytest.mark.parametrize("name", ["Moffet.mat", "moffett.MAT"])
def test_moffett(folder, name):
    save(folder / name, {"X": np.arange(4 * 9.0).reshape(4, 9) / 36})
    data = load_moffett(folder)
    assert data.image_shape == (3, 3)  # square where the file does not say
    assert data.W == []


def test_cbcl(folder):
    X = np.random.default_rng(0).random((361, 7))
    save(folder / "CBCL.mat", {"X": X})
    data = load_cbcl(folder)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.image(data.X[:, 2])[:, 0], X[:19, 2])


def test_counts_are_scaled_to_one_even_beyond_max_value(folder):
    save(folder / "Urban_R162.mat", cube(maxValue=100))
    assert load_urban(folder, truth=False).X.max() == 1
    save(folder / "Urban_R162.mat", cube())
    assert load_urban(folder, truth=False).X.max() == 1


def test_names_fall_back_to_numbers(folder):
    save(folder / "jasperRidge2_R198.mat", cube(maxValue=5000))
    save(folder / "end4.mat", {"M": FOUR["M"], "A": FOUR["A"]})
    assert load_jasper(folder).names == [["1", "2", "3", "4"]]


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("load", [load_urban, load_samson, load_jasper, load_moffett, load_cbcl])
def test_missing_files(folder, load, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"DEEPMF_DATA is not set; pass folder="):
        load()
    with pytest.raises(FileNotFoundError, match="nowhere is not a directory"):
        load(folder / "nowhere")
    monkeypatch.setenv("DEEPMF_DATA", str(folder))
    with pytest.raises(
        FileNotFoundError, match=r"looked for \w+\.mat.*put the published file"
    ) as e:
        load()
    assert str(folder) in str(e.value)
    assert str(e.value).endswith(".")


def test_the_environment_variable_is_the_default_folder(folder, monkeypatch):
    save(folder / "Moffet.mat", {"X": np.ones((2, 4))})
    monkeypatch.setenv("DEEPMF_DATA", str(folder))
    assert load_moffett().X.shape == (2, 4)


@pytest.mark.parametrize("cut", [0, 100, 400])
def test_truncated_mat_file(folder, cut):
    path = folder / "Moffet.mat"
    save(path, {"X": np.random.default_rng(0).random((9, 9))})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"Moffet\.mat is not a whole MATLAB file"):
        load_moffett(folder)


def test_garbage_and_hdf5(folder):
    path = folder / "Moffet.mat"
    path.write_bytes(b"<html>404 not found</html>" * 50)
    with pytest.raises(ValueError, match="not a whole MATLAB file"):
        load_moffett(folder)
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    path.write_bytes(header + b"\x89HDF\r\n\x1a\n" * 64)
    with pytest.raises(ValueError, match="not a whole MATLAB file"):
        load_moffett(folder)


def test_broken_npz(folder):
    (folder / "urban_d4_77x77.npz").write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(ValueError, match="not a whole NumPy archive"):
        load_urban(folder)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"Z": np.ones((2, 4))}, "has no variable X, only Z"),
        ({"X": np.full((2, 4), np.nan)}, "variable X of .* finite numbers"),
        ({"X": np.array(["a", "b"], dtype=object)}, "variable X of .* finite numbers"),
        ({"X": np.ones((2, 5))}, "5 pixels, which an image of 2 x 2 does not hold"),
        ({"X": np.ones((2, 6)), "nRow": 4, "nCol": 2}, "6 pixels, which an image of 4 x 2"),
    ],
)
def test_files_with_other_content(folder, variables, message):
    save(folder / "Moffet.mat", variables)
    with pytest.raises(ValueError, match=message):
        load_moffett(folder)


def test_faces_of_another_size(folder):
    save(folder / "CBCL.mat", {"X": np.ones((400, 3))})
    with pytest.raises(ValueError, match=r"400 rows.*need 361"):
        load_cbcl(folder)


def test_truth_of_another_scene(folder):
    save(folder / "jasperRidge2_R198.mat", cube(maxValue=5000))
    save(folder / "end4.mat", truth(list("abcd"), pixels=PIXELS + 1))
    with pytest.raises(ValueError, match=r"Jasper Ridge: H\[0\] has shape \(4, 13\)"):
        load_jasper(folder)
    save(folder / "end4.mat", truth(list("abcd"), bands=BANDS + 1))
    with pytest.raises(ValueError, match=r"Jasper Ridge: W\[0\] has shape \(6, 4\)"):
        load_jasper(folder)


# --- the real files ------------------------------------------------------------------------------


def real(load, **options):
    if not os.environ.get("DEEPMF_DATA"):
        pytest.skip("DEEPMF_DATA is not set: no real data")
    try:
        return load(**options)
    except FileNotFoundError as error:
        pytest.skip(str(error))


def pure_pixels(data):
    """Mean spectrum of the pixels that the truth calls pure."""
    return np.column_stack([data.X[:, a > 0.95].mean(axis=1) for a in data.H[0]])


@pytest.mark.parametrize(
    ("load", "options", "ranks", "bands"),
    [
        (load_urban, {}, [6, 4], 162),
        (load_urban, {"materials": 4}, [4], 162),
        (load_samson, {}, [3], 156),
        (load_jasper, {}, [4], 198),
    ],
)
def test_real_scene_agrees_with_its_truth(load, options, ranks, bands):
    data = real(load, **options)
    assert data.X.shape[0] == bands
    assert 0 <= data.X.min() < data.X.max() <= 1
    assert [W.shape[1] for W in data.W] == ranks
    np.testing.assert_allclose(data.H[0].sum(axis=0), 1, atol=1e-6)
    # pixels the truth calls pure look like that truth: abundances and data are aligned
    found = match(data.W[0], pure_pixels(data))
    np.testing.assert_array_equal(found.order, np.arange(ranks[0]))
    assert found.mean < 8


def test_real_moffett_and_faces():
    assert real(load_moffett).X.shape == (159, 2500)
    faces = real(load_cbcl)
    assert faces.X.shape == (361, 2429)
    mean = faces.image(faces.X.mean(axis=1))
    # an upright face is symmetric left to right, not top to bottom
    mirrored = np.corrcoef(mean.ravel(), mean[:, ::-1].ravel())[0, 1]
    flipped = np.corrcoef(mean.ravel(), mean[::-1].ravel())[0, 1]
    assert mirrored > 0.9 > flipped
