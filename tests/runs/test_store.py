"""Runs whose folders were cut, mixed up or edited."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from deepmf.fitting.history import History
from deepmf.runs import Config, execute, load_run, save_run

SETTINGS = {"ranks": [6, 4], "max_iter": 2, "tol": 0.0, "init": "random"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    save_run(folder, execute(Config("dataset:simulated", fit=SETTINGS)))
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def edit(path, **changes):
    """Change arrays of an archive, each by a function of the old one."""
    with np.load(path) as file:
        arrays = dict(file)
    arrays |= {name: np.asarray(change(arrays.get(name))) for name, change in changes.items()}
    np.savez(path, **arrays)


def saying(**entries):
    """Change entries of an array of JSON."""
    return lambda text: json.dumps({**json.loads(str(text)), **entries})


def test_a_whole_run_comes_back(folder):
    run = load_run(folder)
    assert run.f.ranks == [6, 4]
    assert sorted(run.truth) == [1, 2]
    assert run.residual.shape == (4096,)


def test_a_disk_that_is_too_full_is_left_alone(whole, tmp_path, monkeypatch):
    room = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: room._replace(free=100_000))
    with pytest.raises(OSError, match=r"need up to 0\.\d+ MB, but only 0\.1 MB are free"):
        save_run(tmp_path, load_run(whole))
    assert list(tmp_path.iterdir()) == []


def test_a_fit_that_diverged_is_kept_and_read_like_any_other(whole, tmp_path):
    run = load_run(whole)
    columns = {name: a.copy() for name, a in run.f.history.to_dict().items()}
    columns["objective"][-1] = columns["data_errors"][-1, 1] = np.nan
    W = [run.f.W[0], np.full_like(run.f.W[1], np.inf)]
    lost = replace(run.f, W=W, history=History(**columns), stop_reason="diverged")
    save_run(tmp_path, replace(run, f=lost))
    summary = json.loads((tmp_path / "summary.json").read_text(), parse_constant=pytest.fail)
    assert summary["objective"] is None
    assert "mrsa" not in summary["layers"][1]
    assert load_run(tmp_path).f.stop_reason == "diverged"


@pytest.mark.parametrize(
    "changes",
    [
        {"W1": lambda W: W[:5]},
        {"W1": np.ravel},
        {"W2": lambda W: W.astype(str)},
        {"H1": lambda H: H[:, :5]},
        {"H2": np.transpose},
        {"weights": lambda w: w[:1]},
        {"history_data_errors": lambda e: e[:, :1]},
        {"history_time": lambda t: t[:1]},
        {"history_extra": lambda _: 1.0},
        {f"history_{name}": lambda a: a[:0] for name in ("objective", "time")},
        {"meta": saying(depth=0)},
        {"meta": saying(depth=1)},
        {"meta": saying(format="deepmf factorization 2")},
        {"meta": lambda _: "[" * 100_000},
        {"layout_layout": saying(order="Q")},
        {"layout_layout": saying(image_shape="ab")},
        {"layout_layout": saying(image_shape=[3, 3])},
        {"layout_layout": lambda _: "[]"},
    ],
)
def test_factors_that_do_not_fit(folder, changes):
    edit(folder / "factors.npz", **changes)
    with pytest.raises(ValueError, match="not a whole deepmf factorization of this version"):
        load_run(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"W1": lambda W: W[:, :2]},
        {"W1": lambda W: W[:7]},
        {"W1": np.ravel},
        {"W2": lambda W: W * np.nan},
        {"names2": lambda names: names[:1]},
        {"Wx": lambda _: 1.0},
    ],
)
def test_a_truth_that_does_not_fit(folder, changes):
    edit(folder / "truth.npz", **changes)
    with pytest.raises(ValueError, match="not a whole run"):
        load_run(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("truth.npz", b"PK"),
        ("residual.npy", b""),
        ("summary.json", b"[]"),
        ("summary.json", b'{"name": "x", "facts": [], "notes": []}'),
        ("summary.json", b"[" * 100_000),
        ("summary.json", b"\xff"),
    ],
)
def test_other_files_that_are_damaged(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match="not a whole run"):
        load_run(folder)


@pytest.mark.parametrize("residual", [np.ones(3), np.array(["a"] * 4096)])
def test_residuals_that_do_not_fit(folder, residual):
    np.save(folder / "residual.npy", residual)
    with pytest.raises(ValueError, match="not a whole run"):
        load_run(folder)
