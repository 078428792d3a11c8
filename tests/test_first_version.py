"""Results that deepmf 0.1.0 saved: they load, code data and repeat as they did."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deepmf import L1, MinVolume
from deepmf.io import read
from deepmf.runs import Config, apply, execute, load_run

OLD = Path(__file__).parent / "data" / "results-0.1.0"
SUMMARY = json.loads((OLD / "run" / "summary.json").read_text())


@pytest.fixture(scope="module")
def run():
    return load_run(OLD / "run")


def test_the_penalty_keeps_the_papers_scale(run):
    for layer in run.f.problem.layers:
        assert layer.regularizer_W == MinVolume(0.02, scale="paper", delta=0.1)
        assert layer.regularizer_H == L1(0.01)


def test_the_numbers_are_those_of_the_summary(run):
    assert run.f.starts == [0, 0]
    assert run.f.n_iter == SUMMARY["sweeps"]
    assert run.f.history.objective[-1] == SUMMARY["objective"]
    assert run.f.weights.tolist() == [layer["weight"] for layer in SUMMARY["layers"]]


def test_new_data_have_the_same_codes(run):
    codes = np.loadtxt(OLD / "codes-of-new.csv", delimiter=",", skiprows=1)
    new = read(str(OLD / "new.csv"))
    np.testing.assert_allclose(run.f.encode(new).T, codes, rtol=1e-5, atol=1e-7)
    applied = apply(OLD / "run", str(OLD / "new.csv"))
    np.testing.assert_allclose(applied.run.f.H[0].T, codes, rtol=1e-5, atol=1e-7)


def test_its_settings_repeat_the_fit():
    """They say ``augment = 0``, so that no layer settles alone, and mean the start of then."""
    config = replace(Config.from_toml(OLD / "run" / "config.toml"), path=str(OLD / "table.csv"))
    config = replace(config, fit={**config.fit, "init": "nndsvd"})
    again = execute(config)
    assert again.f.history.objective[-1] == pytest.approx(SUMMARY["objective"], rel=1e-6)
    assert again.f.n_iter == SUMMARY["sweeps"]


def test_what_is_saved_again_is_of_this_version(run, tmp_path):
    with np.load(run.f.save(tmp_path / "again.npz")) as file:
        meta = json.loads(str(file["meta"]))
    assert meta["starts"] == [0, 0]
    assert meta["settings"]["regularizer_W"][0] == MinVolume(0.02, scale="paper", delta=0.1).spec()
