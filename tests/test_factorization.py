"""The result: codes, links, new data, and a file that is whole or absent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls

import deepmf.factorization as module
from deepmf import (
    L1,
    Box,
    Constraint,
    DataCentric,
    Factorization,
    GroupedSparse,
    LayerCentric,
    Loss,
    MinVolume,
    Multilayer,
    Quadratic,
    Regularizer,
    Ridge,
    Simplex,
    Solver,
    factorize,
)
from deepmf.solvers import ProjectedGradient


def data(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.random((8, 5)) @ rng.random((5, 25)) + 0.05 * rng.random((8, 25))
    return X.astype(dtype)


X = data()
SHORT = {"max_iter": 4, "tol": 0, "random_state": 0}


@pytest.fixture(scope="module")
def f():
    return factorize(X, [5, 3, 2], **SHORT)


# --- what it says --------------------------------------------------------------------------------


def test_shapes(f):
    assert f.depth == 3
    assert f.ranks == [5, 3, 2]
    assert f.n_iter == 4
    assert [W.shape for W in f.W] == [(8, 5), (8, 3), (8, 2)]
    assert [H.shape for H in f.H] == [(5, 25), (3, 5), (2, 3)]
    lines = str(f).splitlines()
    assert lines[:3] == [
        "layer-centric factorization, ranks [5, 3, 2]",
        "4 sweeps, stopped by max_iter",
        "relative squared data errors:",
    ]
    errors = f.history.data_errors[-1]
    assert lines[3:] == [f"  layer {k + 1}: {errors[k]:.3g}" for k in range(3)]


def test_codes_and_reconstruction(f):
    H1, H2, H3 = f.H
    for layer, codes in ((1, H1), (2, H2 @ H1), (3, H3 @ H2 @ H1)):
        np.testing.assert_allclose(f.codes(layer), codes)
        np.testing.assert_allclose(f.reconstruct(layer), f.W[layer - 1] @ codes)
        np.testing.assert_array_equal(f.basis(layer), f.W[layer - 1])


def test_links_are_shares(f):
    for layer in (2, 3):
        H = f.H[layer - 1]
        np.testing.assert_allclose(f.links(layer), H / H.sum(axis=0))
    with pytest.raises(ValueError, match="codes"):
        f.links(1)


@pytest.mark.parametrize("layer", [0, 4, -4, 1.5, True, "2"])
@pytest.mark.parametrize("method", ["basis", "codes", "links", "reconstruct"])
def test_a_layer_out_of_range_is_refused(f, method, layer):
    with pytest.raises(ValueError, match="layer must be between 1 and 3"):
        getattr(f, method)(layer)
    with pytest.raises(ValueError, match="layer must be between 1 and 3"):
        f.encode(X, layer)


def test_negative_layers_count_from_the_end(f):
    np.testing.assert_array_equal(f.basis(-1), f.W[2])
    np.testing.assert_array_equal(f.codes(-3), f.H[0])
    np.testing.assert_array_equal(f.links(-1), f.links(3))


# --- new data ------------------------------------------------------------------------------------


def test_encode_is_nonnegative_least_squares():
    rng = np.random.default_rng(1)
    Ws = [rng.dirichlet(np.ones(8), r).T for r in (5, 3, 2)]
    Hs = [rng.random(shape) for shape in ((5, 25), (3, 5), (2, 3))]
    f = factorize(X, [5, 3, 2], init=(Ws, Hs), max_iter=0, tol=0)
    new = rng.random((8, 12))
    expected = np.column_stack([nnls(Ws[0], x)[0] for x in new.T])
    assert (expected == 0).any()
    np.testing.assert_allclose(f.encode(new), expected, atol=1e-5)
    np.testing.assert_allclose(f.encode(new, 2), Hs[1] @ expected, atol=1e-5)
    np.testing.assert_allclose(f.encode(new, 3), Hs[2] @ Hs[1] @ expected, atol=1e-5)


def test_encode_is_least_squares_on_an_ill_conditioned_basis(f):
    """Codes are hardly determined there; the residual is."""
    new = np.random.default_rng(1).random((8, 12))
    best = [nnls(f.W[0], x)[1] for x in new.T]
    np.testing.assert_allclose(
        np.linalg.norm(new - f.W[0] @ f.encode(new), axis=0), best, rtol=1e-4
    )


def test_encode_uses_the_models_own_problem():
    """Data-centric codes must serve all layers at once: stack W_1, W_2 H_2 with their weights."""
    f = factorize(X, [4, 2], model=DataCentric(3.0), **SHORT)
    stacked = np.vstack([f.W[0], np.sqrt(3) * f.W[1] @ f.H[1]])
    new = np.random.default_rng(1).random((8, 12))
    expected = np.column_stack([nnls(stacked, np.r_[x, np.sqrt(3) * x])[0] for x in new.T])
    np.testing.assert_allclose(f.encode(new), expected, atol=1e-5)


@pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer", "trigeorgis"])
def test_some_rows_code_as_data_with_the_others_missing(model):
    f = factorize(X, [4, 2], model=model, **SHORT)
    new, rows = np.random.default_rng(1).random((8, 12)), np.array([0, 2, 3, 5, 6, 7])
    seen = np.isin(np.arange(8), rows)[:, None] & np.ones(new.shape, dtype=bool)
    part = f.of_rows(rows)
    np.testing.assert_allclose(part.encode(new[rows]), f.encode(new, weights=seen), atol=1e-4)
    np.testing.assert_array_equal(part.basis(2), f.W[1][rows])
    np.testing.assert_array_equal(f.of_rows(slice(None)).encode(new), f.encode(new))


def test_encode_with_a_penalty_and_a_set():
    f = factorize(X, [4], regularizer_H=Ridge(0.5, relative=False), **SHORT)
    new = np.random.default_rng(1).random((8, 12))
    stacked = np.vstack([f.W[0], np.sqrt(0.5) * np.eye(4)])
    expected = np.column_stack([nnls(stacked, np.r_[x, np.zeros(4)])[0] for x in new.T])
    np.testing.assert_allclose(f.encode(new), expected, atol=1e-5)
    g = factorize(X, [4], constraint_H="simplex", **SHORT)
    codes = g.encode(new)
    assert Simplex().violation(codes) < 1e-10
    rng = np.random.default_rng(2)
    for _ in range(50):
        other = rng.dirichlet(np.ones(4), 12).T
        better = np.linalg.norm(new - g.W[0] @ other, axis=0)
        assert (np.linalg.norm(new - g.W[0] @ codes, axis=0) <= better + 1e-9).all()


def test_encode_codes_each_column_by_itself(f):
    new = np.random.default_rng(1).random((8, 12))
    together = f.encode(new)
    apart = np.hstack([f.encode(new[:, [j]]) for j in range(12)])
    np.testing.assert_allclose(together, apart, atol=1e-12)


def test_encode_accepts_zero_columns_and_refuses_other_shapes(f):
    np.testing.assert_allclose(f.encode(np.zeros((8, 2))), 0, atol=1e-12)
    with pytest.raises(ValueError, match=r"7 rows.*fitted to 8"):
        f.encode(np.ones((7, 3)))
    with pytest.raises(ValueError, match="NaN"):
        f.encode(np.full((8, 2), np.nan))


def test_encode_keeps_the_type():
    f = factorize(data(np.float32), [4, 2], **SHORT)
    assert f.encode(data(np.float32)).dtype == np.float32
    assert f.encode(data(np.float32), 2).dtype == np.float32


# --- files ---------------------------------------------------------------------------------------

FITS = {
    "plain": {},
    "data-centric": {"model": DataCentric([0.5])},
    "sparse": {"constraint_W": [GroupedSparse(0.3), None], "solver": "pg"},
    "min-volume": {"regularizer_W": MinVolume(0.1, delta=0.2), "regularizer_H": L1(0.01)},
    "unbounded box": {"constraint_H": Box(0, np.inf)},
    "multilayer": {"model": "multilayer", "solver": "hals"},
    "trigeorgis": {"model": "trigeorgis", "solver": "mu"},
    "NumPy numbers": {
        "model": LayerCentric(np.array([2.0])),
        "regularizer_H": Ridge(np.float32(0.5)),
        "constraint_W": Box(np.float64(0), np.int64(3)),
    },
}


def assert_same(f, g):
    for name in ("W", "H"):
        assert len(getattr(f, name)) == len(getattr(g, name))
        for a, b in zip(getattr(f, name), getattr(g, name)):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
    for name, column in f.history.to_dict().items():
        np.testing.assert_array_equal(getattr(g.history, name), column)
    assert g.stop_reason == f.stop_reason
    assert g.n_iter == f.n_iter
    np.testing.assert_array_equal(g.weights, f.weights)
    assert g.strength == f.strength
    assert g.problem.spec() == f.problem.spec()
    assert (
        repr(g.problem) == repr(f.problem) or "array" in repr(f.problem) or "np." in repr(f.problem)
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FITS)
def test_round_trip(name, dtype, tmp_path):
    f = factorize(data(dtype), [4, 2], **SHORT, **FITS[name])
    path = f.save(tmp_path / "fit.npz")
    g = Factorization.load(path)
    assert_same(f, g)
    np.testing.assert_array_equal(g.encode(X), f.encode(X))
    # and once more
    assert_same(g, Factorization.load(g.save(tmp_path / "again")))


def test_the_suffix_is_added_and_the_path_returned(f, tmp_path):
    assert f.save(tmp_path / "a") == tmp_path / "a.npz"
    assert f.save(str(tmp_path / "b.c")) == tmp_path / "b.c.npz"
    assert f.save(tmp_path / "d.npz") == tmp_path / "d.npz"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz", "b.c.npz", "d.npz"]


def test_a_file_needs_no_pickle(f, tmp_path):
    with np.load(f.save(tmp_path / "fit.npz"), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    assert all(a.dtype != object for a in arrays.values())
    np.testing.assert_array_equal(arrays["W2"], f.W[1])
    assert json.loads(str(arrays["meta"]))["settings"]["ranks"] == [5, 3, 2]


def test_saving_replaces_the_old_file(f, tmp_path):
    target = tmp_path / "fit.npz"
    target.write_bytes(b"old")
    f.save(target)
    assert_same(f, Factorization.load(target))


class Full(OSError):
    pass


@pytest.mark.parametrize("before", [None, b"precious"], ids=["new file", "existing file"])
@pytest.mark.parametrize("moment", ["writing", "half-way", "replacing"])
def test_a_failed_save_leaves_nothing_behind(f, tmp_path, monkeypatch, before, moment):
    target = tmp_path / "fit.npz"
    if before is not None:
        target.write_bytes(before)

    def fail(*args, **kwargs):
        if moment == "half-way":
            args[0].write(b"PK half a file")
        raise Full("disk full")

    if moment == "replacing":
        monkeypatch.setattr(os, "replace", fail)
    else:
        monkeypatch.setattr(module.np, "savez_compressed", fail)
    with pytest.raises(Full, match="disk full"):
        f.save(target)
    names = [p.name for p in tmp_path.iterdir()]
    assert names == ([] if before is None else ["fit.npz"])
    if before is not None:
        assert target.read_bytes() == before


def one_sentence(error):
    text = str(error)
    assert "\n" not in text
    assert len(text) < 400
    return text


def refused(path):
    with pytest.raises(ValueError, match="not a whole deepmf factorization") as caught:
        Factorization.load(path)
    assert os.fspath(path) in one_sentence(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file") as caught:
        Factorization.load(tmp_path / "nothing.npz")
    assert "nothing.npz" in one_sentence(caught.value)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(f, tmp_path, share):
    path = f.save(tmp_path / "fit.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refused(path)


def test_corrupt_files(f, tmp_path):
    """20 bytes overwritten anywhere: an error of the one kind, or the same factors."""
    path = f.save(tmp_path / "fit.npz")
    whole = path.read_bytes()
    messages = []
    for offset in range(0, len(whole) - 20, 101):
        path.write_bytes(whole[:offset] + b"\xff" * 20 + whole[offset + 20 :])
        try:
            g = Factorization.load(path)
        except ValueError as error:
            messages.append(one_sentence(error))
        else:
            np.testing.assert_array_equal(g.W[0], f.W[0])
    assert len(messages) > 10
    assert all("not a whole deepmf factorization" in message for message in messages)


def test_files_of_another_kind(f, tmp_path):
    text = tmp_path / "text.npz"
    text.write_text("name,value\na,1\n")
    refused(text)
    foreign = tmp_path / "foreign.npz"
    np.savez(foreign, X=np.ones(3))
    refused(foreign)
    with np.load(f.save(tmp_path / "whole.npz")) as file:
        arrays = dict(file)
    arrays["meta"] = np.array(str(arrays["meta"]).replace("factorization 1", "factorization 99"))
    later = tmp_path / "later.npz"
    np.savez(later, **arrays)
    refused(later)
    listed = tmp_path / "list.npz"
    np.savez(listed, meta=np.array("[1, 2]"))
    refused(listed)
    single = tmp_path / "single.npy"
    np.save(single, np.ones(3))
    refused(single)
    refused(tmp_path)


def test_pickled_arrays_are_never_read(f, tmp_path):
    path = tmp_path / "bad.npz"
    meta = np.array(json.dumps({"format": "deepmf factorization 1"}), dtype=object)
    np.savez(path, meta=meta)
    refused(path)


# --- classes of the user's own -------------------------------------------------------------------


class Smooth(Regularizer):
    def __init__(self, weight=0.1, relative=True, order=1):
        super().__init__(weight, relative)
        self.order = order

    def value(self, M):
        return 0.5 * np.sum(np.diff(M, self.order, axis=0) ** 2)

    def majorize(self, M):
        D = np.diff(np.eye(len(M)), self.order, axis=0)
        return Quadratic.of(A=D.T @ D)


class UnitBall(Constraint):
    separable = "columns"
    bounded = True

    def project(self, M):
        return M / np.maximum(np.linalg.norm(M, axis=0), 1)


class Mine(ProjectedGradient):
    name = "mine"


class Own(Multilayer):
    name = "own"
    joint = True


def test_own_classes_need_to_be_named(tmp_path):
    settings = {
        "regularizer_W": Smooth(0.3, order=2),
        "constraint_W": UnitBall(),
        "solver": Mine(),
        "model": Own(),
    }
    f = factorize(X, [4, 2], init="random", **SHORT, **settings)
    path = f.save(tmp_path / "fit.npz")
    own = [Smooth, UnitBall, Mine, Own]
    g = Factorization.load(path, custom=own)
    assert_same(f, g)
    layer = g.problem.layers[1]
    assert layer.regularizer_W == Smooth(0.3, order=2)
    assert isinstance(layer.constraint_W, UnitBall)
    assert isinstance(g.problem.solver, Mine)
    assert isinstance(g.problem.loss, Own)
    assert issubclass(Own, Loss)
    assert issubclass(Mine, Solver)
    for missing in own:
        name = missing.name or missing.__name__
        with pytest.raises(ValueError, match=name) as caught:
            Factorization.load(path, custom=[c for c in own if c is not missing])
        assert "custom" in one_sentence(caught.value)


def test_the_folder_must_exist(f, tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        f.save(Path(tmp_path) / "nowhere" / "fit.npz")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no device that never ends")
def test_a_device_is_not_a_factorization():
    with pytest.raises(ValueError, match="is not a whole deepmf factorization"):
        Factorization.load("/dev/zero")
