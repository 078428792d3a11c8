"""Runs of the command line that are interrupted, ended or killed, and go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from deepmf import Checkpoint, Factorization, factorize
from deepmf.cli.app import app
from deepmf.datasets import simulated_scene

SCENE = simulated_scene(rows=32, cols=32, bands=24)
FIT = ("--ranks", "6,4", "--tol", "0", "--no-report")


@pytest.fixture
def cube(tmp_path) -> Path:
    path = tmp_path / "cube.npy"
    np.save(path, SCENE.X.T.reshape(32, 32, 24))
    return path


def run(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def process(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from deepmf.cli import main; main()", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(path: Path, running: subprocess.Popen[str]) -> None:
    """Until the fit is well under way: some sweeps of its first stage are done."""
    while not path.exists() and running.poll() is None:
        time.sleep(0.05)
    time.sleep(0.3)


def swept(saved: Path) -> int:
    """How many sweeps the stage under way has."""
    with np.load(saved) as file:
        moment = json.loads(str(file["content"]))["moment"]
    stage = moment["joint"] or moment["trials"][0]["stages"][-1]
    return len(stage["rows"]) - 1


def same(one: Path, two: Path) -> None:
    f, g = (Factorization.load(folder / "factors.npz") for folder in (one, two))
    assert f.stop_reason == g.stop_reason == "max_iter"
    for A, B in zip([*f.W, *f.H, f.history.objective], [*g.W, *g.H, g.history.objective]):
        np.testing.assert_array_equal(A, B)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stage", [(), ("--augment", 0)], ids=["layer alone", "all layers"])
def test_interrupted_run_is_whole_and_goes_on(cube, tmp_path, number, stage):
    out, whole = tmp_path / "out", tmp_path / "whole"
    saved = tmp_path / "out.checkpoint"
    fit = ("fit", cube, *FIT, *stage)
    long = (*fit, "--checkpoint-every", 0, "--max-iter")
    running = process(*long, 1_000_000, "-o", out)
    wait_for(saved, running)
    running.send_signal(number)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 128 + number, said
    assert said.count("\n") == 1, said
    assert "the same command with --overwrite resumes from" in said
    done = swept(saved)
    assert done > 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["stop_reason"] == "interrupted"
    assert summary["sweeps"] == (done if stage else 0)
    run(*long, done + 3, "-o", out, "--overwrite")
    run(*fit, "--max-iter", done + 3, "-o", whole)
    same(out, whole)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cube.npy", "out", "whole"]


def test_a_run_that_ignores_ctrl_c_still_ends(cube, tmp_path):
    """As a shell starts what a script sends to the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        running = process("fit", cube, *FIT, "--checkpoint-every", 0, "--max-iter", 1_000_000,
                          "-o", tmp_path / "out")  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    wait_for(tmp_path / "out.checkpoint", running)
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 128 + signal.SIGTERM, said
    assert said == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cube.npy", "out.checkpoint"]


@pytest.mark.parametrize("stage", [(), ("--augment", 0)], ids=["layer alone", "all layers"])
def test_killed_run_goes_on(cube, tmp_path, stage):
    out, whole = tmp_path / "out", tmp_path / "whole"
    saved = tmp_path / "out.checkpoint"
    command = ("fit", cube, *FIT, *stage, "--checkpoint-every", 0, "-o", out, "--max-iter")
    running = process(*command, 1_000_000)
    wait_for(saved, running)
    running.kill()
    running.communicate(timeout=60)
    sweeps = swept(saved) + 4
    run(*command, sweeps)
    run("fit", cube, *FIT, *stage, "--max-iter", sweeps, "-o", whole)
    same(out, whole)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cube.npy", "out", "whole"]


def test_another_run_is_not_gone_on_with(cube, tmp_path):
    with pytest.raises(RuntimeError):
        factorize(SCENE.X, [6, 4], checkpoint=Checkpoint(tmp_path / "c", 0), callbacks=_fail)
    result = run("fit", cube, *FIT, "-o", tmp_path / "out", "--checkpoint", tmp_path / "c", code=2)
    assert "belongs to another fit" in result.stderr
    assert result.stderr.count("\n") == 1
    run("fit", cube, *FIT, "-o", tmp_path / "out", "--checkpoint", "none", "--max-iter", 2)


def _fail(progress):
    if progress.sweep == 2:
        raise RuntimeError


def test_settings_from_a_file(cube, tmp_path):
    """The checkpoint is beside the file, goes with the time allowed, and is not a setting."""
    config = tmp_path / "own.toml"
    config.write_text(
        f"[input]\npath = {str(cube)!r}\n[fit]\nranks = [6, 4]\ntol = 0\n"
        "checkpoint = {path = 'own.checkpoint', interval = 0}\n"
    )
    out = tmp_path / "out"
    run("fit", "--config", config, "--max-time", 0, "-o", out)
    assert (tmp_path / "own.checkpoint").exists()
    assert "checkpoint" not in (out / "config.toml").read_text()
    longer = ("fit", "--config", config, "--max-time", 600, "--max-iter", 4)
    run(*longer, "-o", out, "--overwrite")
    assert not (tmp_path / "own.checkpoint").exists()
    run("fit", cube, *FIT, "--max-iter", 4, "-o", tmp_path / "whole")
    same(out, tmp_path / "whole")


@pytest.mark.parametrize("given", ["3", "{interval = 3}", "{path = 'c', often = 1}", "''"])
def test_bad_settings_are_one_sentence(given, cube, tmp_path):
    config = tmp_path / "own.toml"
    config.write_text(f"[input]\npath = {str(cube)!r}\n[fit]\nranks = [6]\ncheckpoint = {given}\n")
    result = run("fit", "--config", config, "-o", tmp_path / "out", code=2)
    assert result.stderr.count("\n") == 1


def test_short_runs_leave_none(cube, tmp_path):
    run("fit", cube, *FIT, "--max-iter", 3, "-o", tmp_path / "new" / "out")
    assert os.listdir(tmp_path / "new") == ["out"]
    run("fit", cube, *FIT, "--max-iter", 3, "--max-time", 0, "-o", tmp_path / "timed")
    assert not (tmp_path / "timed.checkpoint").exists()
