"""A cluster of one's own, threads, devices, and blocks that are read again."""

from __future__ import annotations

import os

import numpy as np
import pytest

from deepmf import FastProjectedGradient, Nonnegative, factorize
from deepmf._utils.threads import thread_count
from deepmf.data.dask import placement, pool, worker
from deepmf.data.dask.recompute import RecomputedPanels
from deepmf.data.in_memory import Dense
from deepmf.data.panels import Coding
from deepmf.data.validation import as_matrix

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")

RAGGED = (12, (100, 1, 250, 349))
QUICK = {"max_iter": 5, "tol": 0, "random_state": 0}


def test_without_a_client_a_cluster_is_started_and_ended(X):
    D = da.from_array(X, chunks=RAGGED)
    before = os.environ.copy(), thread_count()
    data = as_matrix(D)
    f = factorize(D, [4, 2], **QUICK)
    g = factorize(X, [4, 2], **QUICK)
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=1e-10)
    assert isinstance(f.H[0], da.Array)
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()
    assert (os.environ.copy(), thread_count()) == before
    assert data.stats.largest == X.max()  # starts one and keeps its facts
    data.panels().close()
    assert data.stats.norm2 == pytest.approx(np.sum(X**2))


def test_a_worker_uses_its_own_threads(X):
    from threadpoolctl import threadpool_info

    for threads in (1, 2):
        s = worker.ColumnStore("x", {0: X}, {}, worker.WorkerOptions(threads, alone=True))
        with s._threads():
            assert thread_count() == threads
            blas = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
            assert {lib["num_threads"] for lib in blas} == {1}


def test_a_worker_with_a_gpu_works_there(X, monkeypatch, new_cluster):
    """A worker that declares one is asked to send its blocks to it; here the device is a list."""
    sent = []
    monkeypatch.setattr(Dense, "on", lambda block, device: sent.append(device) or block)
    settings = {"n_workers": 1, "processes": False, "resources": {"GPU": 1}}
    with new_cluster(**settings) as client, client.as_current():
        factorize(da.from_array(X, chunks=RAGGED), [4], **QUICK)
    assert sent == ["cuda"] * 4


def test_what_came_in_a_message_is_aligned(X):
    """Else Numba compiles once more, and BLAS sums in another order."""
    off = np.frombuffer(b"." + X.tobytes(), offset=1).reshape(X.shape)
    assert not off.flags.aligned
    s = worker.ColumnStore("x", {0: off}, {}, worker.WorkerOptions(1, alone=False))
    block = s._readers[0]().numpy()
    assert block.flags.aligned
    np.testing.assert_array_equal(block, X)


# --- blocks that do not fit --------------------------------------------------------------------


@pytest.fixture
def nothing_fits(monkeypatch):
    monkeypatch.setattr(placement, "_HOLD", 0.0)


@pytest.fixture
def on_disk(X, tmp_path):
    zarr = pytest.importorskip("zarr")
    store = zarr.create_array(store=str(tmp_path / "x"), shape=X.shape, chunks=(12, 90), dtype="f8")
    store[:] = X
    return da.from_zarr(str(tmp_path / "x"))


@pytest.mark.parametrize("init", ["snpa", "hierarchical", "nndsvd", "random"])
def test_blocks_are_computed_again_for_every_pass(client, X, on_disk, nothing_fits, init):
    f, g = (factorize(A, [4, 2], init=init, **QUICK) for A in (on_disk, X))
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=1e-10)
    np.testing.assert_allclose(f.H[0].compute(), g.H[0], atol=1e-8)


def test_nothing_of_them_stays(X):
    """Between passes a share of recipes has codes alone; every pass reads each block once."""
    reads = []

    def read(block):
        reads.append(block)
        return X[:, 350 * block : 350 * (block + 1)]

    recipes = {j: cloudpickle.dumps(({"key": (_indirect, j)}, "key")) for j in (0, 1)}
    _reader.append(read)
    try:
        s = worker.ColumnStore("x", {}, recipes, worker.WorkerOptions(1, False))
        assert sorted(reads) == [0, 1]
        W = np.random.default_rng(0).random((12, 4))
        coding = Coding.of(W, Nonnegative())
        s.begin(coding)
        sums = s.update(1, coding, FastProjectedGradient(), 10, 0.01)
        assert len(reads) == 6
        assert all(isinstance(part, RecomputedPanels) for part in s._parts.values())
        H = np.hstack(list(s.codes().values()))
        np.testing.assert_allclose(sums[0], X @ H.T)
        np.testing.assert_allclose(s.residuals2([W]), np.linalg.norm(X - W @ H) ** 2)
        held = [v for part in s._parts.values() for v in vars(part).values()]
        assert not [v for v in held if getattr(v, "shape", None) == (12, 350)]
    finally:
        _reader.clear()


_reader: list = []


def _indirect(block):
    return _reader[0](block)


def test_some_fit_and_some_do_not(client, X, on_disk, monkeypatch):
    """Each worker holds as many of its blocks as it has room for."""
    kinds = []
    submit = client.submit

    def watched(*args, **kwargs):
        if kwargs.get("actor"):
            kinds.append((len(args[2]), len(args[3])))
        return submit(*args, **kwargs)

    monkeypatch.setattr(client, "submit", watched)
    monkeypatch.setattr(pool, "memory_used", lambda c: dict.fromkeys(c.nthreads(), 0))
    limit = next(iter(client.scheduler_info()["workers"].values()))["memory_limit"]
    room = 2.5 * 12 * 90 * 8 + placement._CODES * 4 * 12 * 90 * 8
    monkeypatch.setattr(placement, "_HOLD", room / limit)
    f, g = (factorize(A, [4], **QUICK) for A in (on_disk, X))
    assert kinds == [(2, 2), (2, 2)]
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=1e-10)


def test_a_chunk_larger_than_a_worker(client, on_disk, monkeypatch):
    monkeypatch.setattr(placement, "_ROOM", 1e-9)
    with pytest.raises(ValueError, match=r"A chunk of X takes .*MiB as float64.*X\.rechunk"):
        factorize(on_disk, [4])


def test_shared_work_is_pointed_out(client, on_disk, nothing_fits):
    with pytest.warns(UserWarning, match=r"every sweep.*share work.*to_zarr"):
        factorize(on_disk / on_disk.mean(axis=1, keepdims=True), [4], **QUICK)


def test_a_store_larger_than_each_worker(new_cluster, tmp_path):
    """880 MB, for two workers that may have 700 MB each with all of Python in it."""
    zarr = pytest.importorskip("zarr")
    m, n, width = 100, 2_200_000, 20_000
    path = str(tmp_path / "x")
    store = zarr.create_array(
        store=path, shape=(m, n), chunks=(m, width), dtype="f4", fill_value=0.25, compressors=None
    )
    rng = np.random.default_rng(0)
    basis = rng.random((m, 3), dtype=np.float32)
    for start in range(0, n, 20 * width):  # the others hold the fill value and take no disk
        store[:, start : start + width] = basis @ rng.random((3, width), dtype=np.float32)
    settings = {**QUICK, "init": "random", "max_iter": 2}
    factorize(store[:, :width], [4], **settings)  # compiled here, which takes memory of its own
    with new_cluster(n_workers=2, memory_limit="700MB") as client, client.as_current():
        pids = client.run(os.getpid)
        f = factorize(da.from_zarr(path), [4], **settings)
        assert client.run(os.getpid) == pids  # none was ended for using too much
        assert f.H[0].shape == (4, n)
        error = [f.squared_error(store[:, s : s + width]) for s in (0, width)]
        assert error[0] / np.sum(store[:, :width] ** 2) < 0.1
        assert error[1] / np.sum(store[:, width : 2 * width] ** 2) < 0.1
