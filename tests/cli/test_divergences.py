"""Fits by divergences at the command line: settings, tables, files, and what is refused."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite
from typer.testing import CliRunner

from deepmf import Factorization, factorize
from deepmf.cli.app import app

KL = ("--beta-loss", "kullback-leibler")
PLAIN = ("--ranks", "4,2", "--recipe", "none", "--max-iter", "30", "--tol", "1e-3")


def run(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def refuse(*arguments: object) -> str:
    lines = run(*arguments, code=2).stderr.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def counts(m=15, n=60):
    rng = np.random.default_rng(0)
    return rng.poisson(rng.gamma(0.3, 1, (m, 4)) @ rng.gamma(0.5, 8, (4, n))).astype(float)


def table(path: Path, X) -> Path:
    head = ",".join(f"w{i}" for i in range(len(X)))
    np.savetxt(path, X.T, fmt="%g", delimiter=",", header=head, comments="")
    return path


@pytest.fixture
def file(tmp_path) -> Path:
    return table(tmp_path / "counts.csv", counts())


def test_a_run_says_what_it_explains_and_repeats_itself(tmp_path, file):
    said = run("fit", file, *PLAIN, *KL, "-o", tmp_path / "a").stdout
    assert "explained in %" in said
    assert "deviance" in said
    assert "relative error" not in said
    f = Factorization.load(tmp_path / "a/factors.npz")
    settings = tomllib.loads((tmp_path / "a/config.toml").read_text())
    assert settings["fit"]["beta_loss"] == "kullback-leibler"
    first, second = json.loads((tmp_path / "a/summary.json").read_text())["layers"]
    assert first["beta_loss"] == second["beta_loss"] == "kullback-leibler"
    assert first["deviance"] == pytest.approx(f.deviance(counts()), rel=0.02)
    assert second["explained"] == pytest.approx(f.explained(2))
    with (tmp_path / "a/history.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert rows[1]["data_deviance_left_2"] == ""
    assert float(rows[-1]["data_deviance_left_2"]) == pytest.approx(1 - f.explained(2))
    assert "kullback-leibler" in run("info", tmp_path / "a").stdout
    run("fit", "--config", tmp_path / "a/config.toml", "-o", tmp_path / "b", "-q")
    again = Factorization.load(tmp_path / "b/factors.npz")
    np.testing.assert_array_equal(again.W[1], f.W[1])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["kullback-leibler,frobenius"], ["kullback-leibler", "frobenius"]),
        (["1.5", "kullback-leibler"], [1.5, "kullback-leibler"]),
        (["1"], "kullback-leibler"),
        (["2,2"], "frobenius"),
        ([], "frobenius"),
    ],
)
def test_one_for_all_layers_or_one_for_each(tmp_path, file, given, kept):
    options = [part for each in given for part in ("--beta-loss", each)]
    run("fit", file, *PLAIN, *options, "-o", tmp_path / "a", "-q")
    settings = tomllib.loads((tmp_path / "a/config.toml").read_text())
    assert settings["fit"]["beta_loss"] == kept


def test_squared_errors_are_shown_with_what_is_explained(tmp_path, file):
    said = run("fit", file, *PLAIN, "-o", tmp_path / "a").stdout
    assert "relative error in %" in said
    assert "explained in %" in said
    assert "deviance" not in said


def test_recipes_leave_counts_alone(tmp_path):
    mmwrite(tmp_path / "counts.mtx", sparse.coo_array(counts(30, 60)))
    words = ("fit", tmp_path / "counts.mtx", "--rows", "features", "--ranks", "4,2", "-q")
    kinds = {"plain": (), "kl": KL, "both": (*KL, "--scale", "tfidf")}
    scales = {}
    for name, options in kinds.items():
        run(*words, *options, "-o", tmp_path / name)
        settings = tomllib.loads((tmp_path / name / "config.toml").read_text())
        assert settings["fit"]["recipe"] == "topics"
        scales[name] = settings["input"]["scale"]
    assert scales == {"plain": "sublinear-tfidf", "kl": "none", "both": "tfidf"}
    f = Factorization.load(tmp_path / "kl/factors.npz")
    assert f.layout.scaling is None
    same = factorize(counts(30, 60), [4, 2], recipe="topics", beta_loss="kullback-leibler",
                     random_state=0)  # fmt: skip
    assert same.layout.scaling is None
    assert same.problem.normalize == "sum"
    assert same.problem == f.problem


def test_other_samples_are_coded_by_the_divergence(tmp_path, file):
    run("fit", file, *PLAIN, *KL, "-o", tmp_path / "a", "-q")
    said = run("apply", tmp_path / "a", file, "-o", tmp_path / "again").stdout
    assert "explained in %" in said
    f = Factorization.load(tmp_path / "a/factors.npz")
    layers = json.loads((tmp_path / "again/summary.json").read_text())["layers"]
    assert layers[0]["explained"] == pytest.approx(f.explained(1), abs=0.02)
    assert layers[0]["data_error"] == pytest.approx(f.deviance(counts()) / f.data_sizes[0])
    X = counts()
    X[2, 3] = -1
    bad = table(tmp_path / "bad.csv", X)
    for options in ((), ("--allow-negative",)):
        said = refuse("apply", tmp_path / "a", bad, *options, "-o", tmp_path / "out")
        assert "--beta-loss kullback-leibler needs nonnegative data" in said
        assert "fit with --beta-loss frobenius" in said


def test_models_of_one_loss_are_compared(tmp_path, file):
    given = ("compare", file, *PLAIN, "--jobs", 1)
    said = run(*given, *KL, "-o", tmp_path / "a").stdout
    assert "explained 1 %" in said
    assert "trigeorgis" not in said
    explained = [float(line.split()[2]) for line in said.splitlines()[1:4]]
    assert explained == sorted(explained, reverse=True)
    for name, beta in (("one", 1), ("two", 2)):
        run("fit", file, *PLAIN, "--beta-loss", beta, "-o", tmp_path / name, "-q")
    files = [
        part for name in ("two", "one") for part in ("--config", tmp_path / name / "config.toml")
    ]
    both = run("compare", *files, "--jobs", 1, "-o", tmp_path / "b")
    assert "do not compare: they are in the order given" in both.stderr
    assert [line.split()[0] for line in both.stdout.splitlines()[1:3]] == ["two", "one"]


def test_ranks_are_scanned(tmp_path, file):
    options = ("--splits", 2, "--jobs", 1, "--recipe", "none", "--max-iter", 20)
    run("scan", file, "--ranks", "2-3", *options, *KL, "-o", tmp_path / "s")
    assert (tmp_path / "s/scan.csv").is_file()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--beta-loss", "kl"), "--beta-loss must be 'frobenius', 'kullback-leibler'"),
        (("--beta-loss", "2.5"), "number from 0 to 2"),
        (("--beta-loss", "nan"), "number from 0 to 2"),
        (("--beta-loss", "1,1,1"), "--beta-loss has 3 entries for 2 layers"),
        ((*KL, "--constraint-W", "none"), "--beta-loss kullback-leibler cannot be used with Unco"),
        ((*KL, "--model", "trigeorgis"), "cannot be used with Trigeorgis()"),
        ((*KL, "--hierarchy", "codes"), "Use --beta-loss kullback-leibler,frobenius"),
        (("--beta-loss", "0"), "--beta-loss itakura-saito needs positive data, but X has"),
    ],
)
def test_mistakes_get_one_sentence(tmp_path, file, options, said):
    assert said in refuse("fit", file, *PLAIN, *options, "-q", "-o", tmp_path / "a")


def test_negative_entries_are_counted(tmp_path):
    X = counts()
    X[2, 3] = X[4, 5] = -1
    bad = table(tmp_path / "bad.csv", X)
    for options in ((), ("--allow-negative",)):
        said = refuse("fit", bad, *PLAIN, *KL, *options, "-q", "-o", tmp_path / "a")
        assert "--beta-loss kullback-leibler needs nonnegative data, but X has 2 negative" in said
