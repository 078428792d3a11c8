"""Fits of Dask arrays are those of arrays in memory, and what depends on n stays on the workers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepmf import (
    L1,
    CappedSimplex,
    DeepMF,
    Factorization,
    MinVolume,
    OneParent,
    Ridge,
    Simplex,
    factorize,
)
from deepmf.data.dask import pool, worker

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RAGGED = (12, (100, 1, 250, 349))
QUICK = {"max_iter": 5, "tol": 0, "random_state": 0}


def same(f, g, rtol=1e-10, entries=None):
    """Everything of two fits, to ten digits.

    Steps of a column end when they are short enough: where rounding decides, one entry may differ.
    """
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=rtol)
    for a, b in zip(f.W + f.H, g.W + g.H):
        b = np.asarray(b)
        atol = (entries or rtol) * np.abs(b).max()
        np.testing.assert_allclose(np.asarray(a), b, rtol=0, atol=atol)


@pytest.mark.parametrize("init", ["snpa", "hierarchical", "nndsvd", "random", None])
def test_every_start(client, X, init):
    f = factorize(da.from_array(X, chunks=RAGGED), [4, 2], init=init, **QUICK)
    same(f, factorize(X, [4, 2], init=init, **QUICK))
    assert isinstance(f.H[0], da.Array)
    assert f.H[0].chunks == ((4,), RAGGED[1])


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "data-centric", "constraint_H": ["simplex", None], "augment": 0},
        {"model": "multilayer"},
        {"model": "trigeorgis"},
        {"regularizer_H": [L1(1e-2), None], "constraint_W": "simplex"},
        {"regularizer_H": [Ridge(1e-2), None], "regularizer_W": MinVolume(1e-2)},
        {"constraint_H": [CappedSimplex(), None], "augment": 2},
        {"solver": "mu"},
        {"solver": "hals"},
        {"constraint_W": "none", "constraint_H": "none", "init": "snpa"},
        {"init": ["random", "nndsvd"]},
        {"init": ["nndsvd", "random"]},
        {"panel_size": 64},
        {"hierarchy": "codes"},
        {"hierarchy": "codes", "model": "data-centric"},
        {"hierarchy": "codes", "model": "multilayer"},
        {"constraint_H": [None, OneParent()]},
    ],
    ids=str,
)
def test_every_kind_of_model(client, X, settings):
    D = da.from_array(X, chunks=RAGGED)
    f, g = (factorize(A, [4, 2], **{**QUICK, **settings}) for A in (D, X))
    same(f, g, 1e-9, entries=1e-6)
    assert f.starts == g.starts


def test_layers_that_are_linked_after_they_settled(client, X):
    """Where links begin is no optimum, so that entries that differ show at first order."""
    settings = {"model": "data-centric", "constraint_H": ["simplex", None]}
    f, g = (factorize(A, [4, 2], **QUICK, **settings) for A in (da.from_array(X, RAGGED), X))
    same(f, g, 1e-8, entries=1e-6)


@pytest.mark.parametrize("chunks", [(12, 700), (12, 699), (12, 7)], ids=str)
def test_every_chunking(many, X, chunks):
    same(factorize(da.from_array(X, chunks=chunks), [4], **QUICK), factorize(X, [4], **QUICK))


def test_chunks_along_the_features_are_joined_with_a_warning(client, X):
    D = da.from_array(X, chunks=(5, 300))
    with pytest.warns(UserWarning, match=r"3 chunks along axis 0.*rechunk\(\{0: -1\}\)"):
        f = factorize(D, [4], **QUICK)
    same(f, factorize(X, [4], **QUICK))
    with pytest.warns(UserWarning, match=r"3 chunks along axis 1.*rechunk\(\{1: -1\}\)"):
        DeepMF([4], **QUICK).fit(D.T)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, ">f8"])
def test_every_type_of_number(client, X, dtype):
    A = (100 * X).astype(dtype)
    f = factorize(da.from_array(A, chunks=RAGGED), [4], **QUICK)
    g = factorize(A, [4], **QUICK)
    assert f.H[0].dtype == g.H[0].dtype
    same(f, g, 1e-10 if g.H[0].dtype == np.float64 else 1e-3)


def test_sparse_chunks_stay_sparse(client, X):
    A = sparse.random_array((40, 300), density=0.2, rng=np.random.default_rng(0), format="csc")
    parts = [
        da.from_delayed(
            _delayed(A[:, s]), (40, 100), dtype=float, meta=sparse.csc_array((0, 0), dtype=float)
        )
        for s in (slice(0, 100), slice(100, 200), slice(200, 300))
    ]
    D = da.concatenate(parts, axis=1)
    for init in ("nndsvd", "snpa"):
        same(factorize(D, [4], init=init, **QUICK), factorize(A, [4], init=init, **QUICK))


def _delayed(A):
    import dask

    return dask.delayed(A)


def test_tall_data_go_through_lanczos(client, monkeypatch, X):
    tall = np.random.default_rng(0).random((1600, 40))
    D = da.from_array(tall, chunks=(1600, 15))
    for init in ("nndsvd", "hierarchical"):
        f, g = (factorize(A, [3], init=init, **QUICK) for A in (D, tall))
        same(f, g, 1e-6)


def test_given_factors(client, X):
    rng = np.random.default_rng(1)
    W, H = rng.random((12, 4)), rng.random((4, 700))
    D, DH = da.from_array(X, chunks=RAGGED), da.from_array(H, chunks=(4, 300))
    same(factorize(D, [4], init=([W], [DH]), **QUICK), factorize(X, [4], init=([W], [H]), **QUICK))


# --- what stays where --------------------------------------------------------------------------


def test_codes_stay_on_their_workers(client, X):
    f = factorize(da.from_array(X, chunks=RAGGED), [4, 2], **QUICK)
    keys = f.H[0].__dask_keys__()[0]
    who = client.who_has(distributed.futures_of(f.H[0]))
    assert len(who) == len(keys)
    assert len({worker for workers in who.values() for worker in workers}) == 2
    assert isinstance(f.codes(2), da.Array)
    assert isinstance(f.reconstruct(2), da.Array)
    np.testing.assert_allclose(f.codes(2).compute(), f.H[1] @ f.H[0].compute())
    assert isinstance(f.W[0], np.ndarray)


def test_the_actors_leave_with_the_fit(client, X):
    f = factorize(da.from_array(X, chunks=RAGGED), [4], **QUICK)
    del f
    for _ in range(100):
        left = client.run(lambda dask_worker: len(dask_worker.state.actors))
        if not any(left.values()):
            break
    assert not any(left.values())


def test_persisted_chunks_are_not_moved(client, X):
    D = client.persist(da.from_array(X, chunks=(12, 100)))
    distributed.wait(D)
    before = client.who_has(distributed.futures_of(D))
    f = factorize(D, [4], **QUICK)
    assert client.who_has(distributed.futures_of(D)) == before
    same(f, factorize(X, [4], **QUICK))


def test_runs_are_equal_to_the_last_bit(client, X):
    D = da.from_array(X, chunks=(12, 90))
    f, g = (factorize(D, [4, 2], **QUICK) for _ in range(2))
    for a, b in zip(f.W + f.H, g.W + g.H):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("fan", [1, 2, 3])
def test_sums_along_a_tree(many, X, monkeypatch, fan):
    monkeypatch.setattr(pool, "_FAN", fan)
    f = factorize(da.from_array(X, chunks=(12, 50)), [4, 2], **QUICK)
    same(f, factorize(X, [4, 2], **QUICK))


def test_everyone_is_asked_once(many, X, monkeypatch):
    """The tree is one: counts of blocks add up to their number."""
    monkeypatch.setattr(worker.ColumnStore, "begin_free", lambda self, coding: len(self._parts))
    for fan in (1, 2, 3, 7, 10):
        monkeypatch.setattr(pool, "_FAN", fan)
        c = pool.WorkerPool(da.from_array(X, chunks=(12, 50)), np.dtype(float))
        assert len(c._members) == 7
        assert c.sum("begin_free", None) == 14


def test_what_a_sweep_moves_does_not_grow_with_n(client, monkeypatch):
    from distributed.comm.tcp import TCP

    sent = []
    write = TCP.write

    async def counted(self, *args, **kwargs):
        number = await write(self, *args, **kwargs)
        sent.append(number)
        return number

    monkeypatch.setattr(TCP, "write", counted)
    m, r = 60, 8
    rng = np.random.default_rng(0)
    per_sweep = []
    for n in (1_000, 10_000):
        D = da.from_array(rng.random((m, n)), chunks=(m, n // 4))
        marks = []
        factorize(D, [r], init="random", callbacks=lambda p, m=marks: m.append(sum(sent)), **QUICK)
        per_sweep.append(np.median(np.diff(marks)))
    numbers = 8 * (m * r + r * r)
    # Two workers; there: A, G; back: X H', H H'; each through the scheduler, which is here too.
    assert per_sweep[1] <= 1.05 * per_sweep[0]
    assert per_sweep[1] <= 2 * 3 * numbers + 20_000


# --- new data ----------------------------------------------------------------------------------


def test_new_data_are_coded_when_asked_for(client, X):
    f, g = (factorize(A, [4, 2], **QUICK) for A in (da.from_array(X, chunks=RAGGED), X))
    for layer in (1, 2):
        codes = f.encode(da.from_array(X, chunks=(12, 300)), layer)
        assert isinstance(codes, da.Array)
        assert codes.chunks == ((f.ranks[layer - 1],), (300, 300, 100))
        np.testing.assert_allclose(codes.compute(), g.encode(X, layer), atol=1e-6)
    np.testing.assert_allclose(f.encode(X), g.encode(X), atol=1e-6)
    D = da.from_array(X, chunks=(12, 300))
    np.testing.assert_allclose(f.squared_error(D, 2), g.squared_error(X, 2), rtol=1e-6)


def test_the_estimator(client, X):
    D = da.from_array(X.T, chunks=(300, 12))
    a, b = (DeepMF([4, 2], **QUICK).fit(A) for A in (D, X.T))
    same(a.factorization_, b.factorization_)
    codes = a.transform(D)
    assert isinstance(codes, da.Array)
    assert codes.chunks == ((300, 300, 100), (2,))
    np.testing.assert_allclose(codes.compute(), b.transform(X.T), atol=1e-6)
    np.testing.assert_allclose(a.fit_transform(D).compute(), b.transform(X.T), atol=1e-6)
    back = a.inverse_transform(codes)
    assert isinstance(back, da.Array)
    np.testing.assert_allclose(back.compute(), b.inverse_transform(b.transform(X.T)), atol=1e-5)
    np.testing.assert_allclose(a.score(D), b.score(X.T), rtol=1e-6)
    np.testing.assert_allclose(a.reconstruction_err_, b.reconstruction_err_, rtol=1e-10)
    assert a.n_features_in_ == 12


@pytest.mark.filterwarnings("ignore:Pixels that lack some bands")
@pytest.mark.parametrize("holes", [False, True])
def test_cubes_of_xarray(client, holes):
    xr = pytest.importorskip("xarray")
    rng = np.random.default_rng(0)
    values = rng.random((20, 15, 4)) @ rng.random((4, 9))
    if holes:
        values[3, 4, 2], values[10] = np.nan, np.nan
    waves = ("wavelength", np.linspace(400, 900, 9), {"units": "nm"})
    cube = xr.DataArray(values, dims=("y", "x", "wavelength"), coords={"wavelength": waves})
    lazy = cube.chunk({"y": 6})
    a, b = (DeepMF([3, 2], **QUICK).fit(c) for c in (lazy, cube))
    np.testing.assert_allclose(a.history_.objective, b.history_.objective, rtol=1e-10)
    maps, wanted = a.transform(lazy), b.transform(cube)
    assert maps.chunks is not None
    xr.testing.assert_allclose(maps.compute(), wanted, atol=1e-6)
    assert int(maps.isnull().sum()) == holes * 16 * 2
    assert a.factorization_.layout.kind == "scene"


def test_matrices_of_xarray(client, X):
    xr = pytest.importorskip("xarray")
    lazy = xr.DataArray(X, dims=("feature", "sample")).chunk({"sample": 300})
    same(factorize(lazy, [4], **QUICK), factorize(X, [4], **QUICK))
    codes = DeepMF([4], **QUICK).fit(lazy.T).transform(lazy.T)
    assert codes.chunks == ((300, 300, 100), (4,))


@pytest.mark.parametrize("init", ["snpa", "hierarchical", "nndsvd"])
def test_workers_can_work_through_pytorch(many, X, init):
    pytest.importorskip("torch")
    D = da.from_array(X, chunks=RAGGED)
    f = factorize(D, [4, 2], init=init, device="cpu", **QUICK)
    same(f, factorize(X, [4, 2], init=init, device="cpu", **QUICK))
    assert isinstance(f.H[0].compute(), np.ndarray)
    model = DeepMF([4, 2], init=init, device="cpu", **QUICK).fit(D.T)
    same(model.factorization_, f)


def test_files(client, X, tmp_path):
    f = factorize(da.from_array(X, chunks=RAGGED), [4, 2], **QUICK)
    whole = Factorization.load(f.save(tmp_path / "whole"))
    same(whole, f.numpy())
    small = Factorization.load(f.save(tmp_path / "small", codes=False))
    assert small.H[0].shape == (4, 0)
    np.testing.assert_array_equal(small.encode(X), f.encode(X))


def test_a_simplex_on_the_codes_holds(client, X):
    f = factorize(da.from_array(X, chunks=RAGGED), [4], constraint_H=Simplex(), **QUICK)
    np.testing.assert_allclose(f.H[0].sum(axis=0).compute(), 1)
