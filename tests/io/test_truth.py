"""True components from every kind of file, with the bands that the data kept."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.io import Reading, UnreadableError, read
from deepmf.io.truth import component_names, read_truth, truth_file

BANDS = 6
WAVES = np.linspace(400, 900, BANDS)
M = np.random.default_rng(0).random((BANDS, 3))
NAMES = ["Asphalt Road", "Tree", "Water"]
COOD = np.array([f"{k + 1}-{name}" for k, name in enumerate(NAMES)], dtype=object)
DATA = Dataset("scene", np.ones((BANDS, 4)))
KEPT = np.array([1, 2, 4, 6])
CUT = Dataset("scene", np.ones((4, 4)), Layout(bands=KEPT, total_bands=BANDS))


def as_mat(path):
    savemat(path, {"M": M, "A": np.ones((3, 4)), "cood": COOD[:, None]})


def as_npz(path):
    np.savez(path, M=M, names=NAMES)


def as_csv(path):
    lines = [",".join(["wavelength_nm", *NAMES])]
    lines += [",".join(map(repr, [float(w), *map(float, row)])) for w, row in zip(WAVES, M)]
    path.write_text("\n".join(lines) + "\n")


def save_library(path, spectra, waves, unit):
    from spectral.io.envi import SpectralLibrary

    header = {"wavelength": waves, "spectra names": NAMES, "wavelength units": unit}
    SpectralLibrary(spectra.T, header).save(str(path.with_suffix("")))


def as_library(path):
    save_library(path, M, WAVES, "nm")


KINDS = {"t.mat": as_mat, "t.npz": as_npz, "t.csv": as_csv, "t.sli": as_library}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(tmp_path, name):
    KINDS[name](tmp_path / name)
    (truth,) = read_truth(tmp_path / name, DATA)
    np.testing.assert_allclose(truth.W, M, rtol=1e-6)
    assert list(truth.names) == NAMES
    assert truth.W.dtype == np.float64
    (cut,) = read_truth(str(tmp_path / name), CUT)
    np.testing.assert_allclose(cut.W, M[KEPT - 1], rtol=1e-6)


def test_several_truths_in_one_file(tmp_path):
    np.savez(tmp_path / "t.npz", M2=M[:, :2], names2=NAMES[:2], M3=M, A3=np.ones((3, 4)))
    three, two = read_truth(tmp_path / "t.npz", DATA)
    assert (list(three.names), list(two.names)) == (["1", "2", "3"], NAMES[:2])
    np.testing.assert_array_equal(two.W, M[:, :2])


def test_abundances_beside_the_components(tmp_path):
    A = np.random.default_rng(1).random((3, 4))
    for name, save in (("t.npz", np.savez), ("t.mat", lambda path, **a: savemat(path, a))):
        path = tmp_path / name
        save(path, M=M, A=A)
        (truth,) = read_truth(path, DATA)
        np.testing.assert_array_equal(truth.A, A)
        assert truth.note == ""
        save(path, M3=M, M2=M[:, :2], A2=A[:2])
        three, two = read_truth(path, DATA)
        assert three.A is None
        np.testing.assert_array_equal(two.A, A[:2])
        for bad, why in (
            (A[:, :3], "they are 3 x 3, not 3 x 4"),
            (A[:2], "they are 2 x 4"),
            (-A, "not all of them are finite and nonnegative"),
            (A * np.nan, "not all of them"),
        ):
            save(path, M=M, A=bad)
            (truth,) = read_truth(path, DATA)
            assert truth.A is None
            assert truth.note.startswith(f"The abundances in {name} are not compared: {why}")


FINE = np.linspace(380, 930, 200)
FINE_M = np.column_stack([FINE, FINE**2 / 1e3, 1e6 / FINE])
SEEN = Dataset("scene", np.ones((BANDS, 4)), Layout(wavelengths=WAVES))


def test_spectra_are_interpolated_onto_the_bands(tmp_path):
    """Whatever their order and units; spectra on the data's own bands are left alone."""
    order = np.random.default_rng(1).permutation(len(FINE))
    np.savez(tmp_path / "t.npz", M=FINE_M[order], wavelengths=FINE[order], names=NAMES)
    table = np.column_stack([FINE / 1000, FINE_M])
    head = ",".join(["wavelength (um)", *NAMES])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header=head, comments="")
    save_library(tmp_path / "t.sli", FINE_M, FINE / 1000, "Micrometers")
    savemat(tmp_path / "t.mat", {"M": FINE_M, "wl": FINE[:, None], "cood": COOD[:, None]})
    for name in KINDS:
        (truth,) = read_truth(tmp_path / name, SEEN)
        wanted = np.column_stack([WAVES, WAVES**2 / 1e3, 1e6 / WAVES])
        np.testing.assert_allclose(truth.W, wanted, rtol=1e-4)
        assert list(truth.names) == NAMES
        assert f"{name} at 200 wavelengths (380 to 930 nm) were interpolated onto the 6" in (
            truth.note
        )
        KINDS[name](tmp_path / name)
        (truth,) = read_truth(tmp_path / name, SEEN)
        np.testing.assert_allclose(truth.W, M, rtol=1e-6)
        assert truth.note == ""


def test_as_many_bands_elsewhere_are_not_the_same_bands(tmp_path):
    np.savez(tmp_path / "t.npz", M=M, wavelengths=WAVES + 50)
    (truth,) = read_truth(tmp_path / "t.npz", SEEN)
    np.testing.assert_allclose(truth.W[1:], (M[1:] + M[:-1]) / 2)
    np.testing.assert_array_equal(truth.W[0], M[0])  # just beyond the end
    for waves in (WAVES + 1000, WAVES + 150):
        np.savez(tmp_path / "t.npz", M=M, wavelengths=waves)
        with pytest.raises(UnreadableError, match=r"but scene has bands from 400 to 900 nm, \d of"):
            read_truth(tmp_path / "t.npz", SEEN)


@pytest.mark.parametrize("suffix", [".mat", ".npz"])
def test_another_name_than_the_usual(tmp_path, suffix):
    def save(**arrays):
        if suffix == ".npz":
            return np.savez(path, **arrays)
        words = {k: v.astype(object)[:, None] for k, v in arrays.items() if v.dtype.kind == "U"}
        savemat(path, {**arrays, **words})

    path = tmp_path / f"t{suffix}"
    names = np.array(NAMES)
    save(endmembers=M, labels=names, abundances=np.ones((3, 4)), scene=DATA.X, tags=names[:2])
    (truth,) = read_truth(path, DATA)
    np.testing.assert_array_equal(truth.W, M)
    assert list(truth.names) == NAMES
    save(one=M, two=2 * M)
    with pytest.raises(UnreadableError, match=rf"it has one .6 x 3.*two.*t{suffix}:NAME"):
        read_truth(path, DATA)
    np.testing.assert_array_equal(read_truth(f"{path}:two", DATA)[0].W, 2 * M)
    with pytest.raises(UnreadableError, match="has no matrix 'three'; it has one"):
        read_truth(f"{path}:three", DATA)
    assert truth_file(f"{path}:two") == truth_file(str(path)) == str(path)


def test_numbers_stand_in_for_names(tmp_path):
    np.save(tmp_path / "t.npy", M)
    (truth,) = read_truth(tmp_path / "t.npy", DATA)
    assert list(truth.names) == ["1", "2", "3"]
    assert component_names(["1-a", "2. b", "c3"], 3) == ["a", "b", "c3"]


@pytest.mark.parametrize(
    "text",
    [
        "soil;tree\n1;2\n3;4\n",
        "soil\ttree\n1\t2\n3\t4\n",
        "band,nm,soil,tree\n1,400,1,2\n2,500,3,4\n",
        "\ufeffsoil,tree\r\n1,2\r\n3,4\r\n\r\n",
    ],
)
def test_tables(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    (truth,) = read_truth(tmp_path / "t.csv", Dataset("two", np.ones((2, 5))))
    np.testing.assert_array_equal(truth.W, [[1, 2], [3, 4]])
    assert list(truth.names) == ["soil", "tree"]


@pytest.mark.parametrize("name", KINDS)
def test_bands_that_do_not_agree(tmp_path, name):
    KINDS[name](tmp_path / name)
    with pytest.raises(
        UnreadableError, match=rf"{name} has true components of 6 features, but other has 5; they"
    ):
        read_truth(tmp_path / name, Dataset("other", np.ones((5, 4))))
    cut = Dataset("other", np.ones((2, 4)), Layout(bands=np.array([1, 3]), total_bands=9))
    with pytest.raises(UnreadableError, match=r"but other has 2 \(9 with bad ones\)"):
        read_truth(tmp_path / name, cut)


def test_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*none\.mat"):
        read_truth(tmp_path / "none.mat", DATA)
    (tmp_path / "t.doc").write_text("")
    with pytest.raises(UnreadableError, match=r"read from \.mat, \.npz"):
        read_truth(tmp_path / "t.doc", DATA)
    np.savez(tmp_path / "t.npz", X=M.T)
    with pytest.raises(UnreadableError, match="expected a matrix M"):
        read_truth(tmp_path / "t.npz", DATA)
    for bad in (M + 1j, M * np.nan, M.astype(str), M[None], M[:0]):
        np.save(tmp_path / "t.npy", bad)
        with pytest.raises(UnreadableError):
            read_truth(tmp_path / "t.npy", DATA)
    for text in ("", "a,b\n", "a,b\n1,2\n3\n", "a,b\nx,y\n"):
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(UnreadableError):
            read_truth(tmp_path / "t.csv", DATA)


@pytest.mark.parametrize("name", KINDS)
def test_cut_files(tmp_path, name):
    path = tmp_path / name
    KINDS[name](path)
    whole = path.read_bytes()
    for share in (0, 0.2, 0.5, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(UnreadableError) as error:
            read_truth(path, DATA)
        assert str(error.value).endswith(".")


def test_components_of_a_run_are_a_truth_for_the_next(tmp_path):
    """The table that a run's folder has, with its columns of bands."""
    (tmp_path / "components-layer-1.csv").write_text(
        "band,wavelength_nm,feature,soil\n1,400,b1,0.5\n3,600,b3,0.25\n"
    )
    (truth,) = read_truth(tmp_path / "components-layer-1.csv", Dataset("two", np.ones((2, 3))))
    np.testing.assert_array_equal(truth.W, [[0.5], [0.25]])
    assert list(truth.names) == ["soil"]


def test_real_truths():
    given = os.environ.get("DEEPMF_DATA")
    if not given or not (Path(given) / "samson/end3.mat").is_file():
        pytest.skip("DEEPMF_DATA is not set: no real data")
    folder = Path(given)
    samson = read(folder / "samson/samson_1.mat", Reading(bad_bands="1-6"))
    (truth,) = read_truth(folder / "samson/end3.mat", samson)
    assert truth.W.shape == (150, 3)
    assert [name.lower() for name in truth.names] == ["rock", "tree", "water"]
    urban = read(folder / "urban/urban_d4_77x77.npz")
    six, five, four = read_truth(folder / "urban/urban_d4_77x77.npz", urban)
    assert [t.A.shape for t in (six, five, four)] == [(6, 5929), (5, 5929), (4, 5929)]
    assert [len(t.names) for t in (six, five, four)] == [6, 5, 4]
    (published,) = read_truth(folder / "urban/end6_groundTruth.mat", urban)
    np.testing.assert_allclose(published.W, six.W)
    assert list(published.names) == list(six.names)
