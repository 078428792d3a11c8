"""Data on disk: read in blocks, with the results of data in memory."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest

from deepmf import factorize
from deepmf.data import on_disk as module
from deepmf.data.on_disk import OnDisk, as_on_disk
from deepmf.data.panels import OnDiskPanels
from deepmf.data.validation import as_matrix, check_sign
from deepmf.fitting.registry import STARTS

X = np.random.default_rng(0).random((12, 700))


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 1)


@pytest.fixture(params=["npy", "fortran", "h5py", "zarr", "int16"])
def on_disk(request, tmp_path):
    """A matrix on disk, and the same in memory."""
    kind, path = request.param, tmp_path / "x"
    if kind == "h5py":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            file["x"] = X
        return h5py.File(path)["x"], X
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        array = zarr.create_array(store=str(path), shape=X.shape, chunks=(5, 90), dtype="f8")
        array[:] = X
        return array, X
    values = (100 * X).astype(np.int16) if kind == "int16" else X
    file = np.asfortranarray(values) if kind == "fortran" else values
    np.save(path, file)
    return np.load(path.with_suffix(".npy"), mmap_mode="r"), values.astype(np.float64)


def test_it_is_known_to_be_on_disk(on_disk):
    source, memory = on_disk
    S = as_on_disk(source)
    assert isinstance(S, OnDisk)
    assert isinstance(S.panels(), OnDiskPanels)
    assert (S.shape, S.dtype) == (memory.shape, memory.dtype)
    np.testing.assert_array_equal(S[:, 5:20], memory[:, 5:20])
    np.testing.assert_array_equal(S[:, np.array([9, 3, 9])], memory[:, [9, 3, 9]])
    assert S.stats[:2] == (memory.min(), memory.max())


@pytest.mark.parametrize("start", STARTS)
def test_fits_equal_those_in_memory(on_disk, start):
    source, memory = on_disk
    init = ["random", start] if start == "merged" else start
    settings = {"init": init, "max_iter": 5, "tol": 0, "random_state": 0}
    a = factorize(memory, [4, 2], **settings)
    b = factorize(source, [4, 2], panel_size=256, **settings)
    tight = 1e-9 if memory.dtype == np.float64 else 1e-3
    np.testing.assert_allclose(b.history.objective, a.history.objective, rtol=tight)
    np.testing.assert_allclose(b.W[0], a.W[0], rtol=tight, atol=tight)
    np.testing.assert_allclose(b.encode(source), a.encode(memory), rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("beta_loss", ["kullback-leibler", 1.5, ["kullback-leibler", "frobenius"]])
def test_fits_by_divergences_equal_those_in_memory(on_disk, beta_loss):
    source, memory = on_disk
    settings = {"beta_loss": beta_loss, "init": "random", "max_iter": 4, "tol": 0}
    a = factorize(memory, [4, 2], random_state=0, **settings)
    b = factorize(source, [4, 2], random_state=0, panel_size=256, **settings)
    tight = 1e-8 if source.dtype == np.float64 else 1e-4
    np.testing.assert_allclose(b.history.objective, a.history.objective, rtol=tight)
    assert b.explained(1) == pytest.approx(a.explained(1), rel=10 * tight)
    assert b.deviance(source) == pytest.approx(a.deviance(memory), rel=1e-4)


def test_small_memory_maps_are_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 1 << 28)
    np.save(tmp_path / "x.npy", X)
    small = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert as_on_disk(small) is small
    assert as_on_disk(X) is X


def test_bad_entries_are_named_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 1)
    bad = X.copy()
    bad[3, 600], bad[7, 10], bad[3, 650] = -1, -2, -3
    np.save(tmp_path / "x.npy", bad)
    S = as_matrix(np.load(tmp_path / "x.npy", mmap_mode="r"))
    with pytest.raises(ValueError, match=r"3 negative entries \(first -1 at row 3, column 600"):
        check_sign(S)
    bad[5, 300] = np.nan
    np.save(tmp_path / "y.npy", bad)
    with pytest.raises(ValueError, match=r"1 entry that is NaN.*row 5, column 300"):
        as_matrix(np.load(tmp_path / "y.npy", mmap_mode="r"))


def test_a_large_file_stays_on_disk(tmp_path):
    """A 400 MB file is fitted by a process that may not hold it."""
    code = """
        import resource, sys
        import numpy as np
        from deepmf import factorize
        X = np.load(sys.argv[1], mmap_mode="r")
        factorize(X[:, :512], [3], init="random", max_iter=1, tol=0)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        factorize(X, [3], init="random", random_state=0, max_iter=1, tol=0)
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    path = tmp_path / "big.npy"
    file = np.lib.format.open_memmap(path, "w+", np.float32, (50, 2_000_000))
    file[:] = np.random.default_rng(0).random((50, 1), np.float32)
    file.flush()
    del file
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 250, done.stdout  # H_1 is 24 MB, a block 32 MB; MB


def test_products_with_many_columns_are_taken_in_blocks():
    """As a start asks for them, which may be nearly all."""
    X = np.random.default_rng(0).random((200, 5000))
    panels, G = OnDisk(X).panels(256), np.random.default_rng(1).random((200, 3))
    index = np.arange(5000)[::-1]
    tracemalloc.start()
    try:
        found = panels.dot(G, index)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found, (G.T @ X)[:, ::-1])
    assert peak < X.nbytes / 4
