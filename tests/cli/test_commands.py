"""The command line as users meet it: files in, folders out, one sentence for a mistake."""

from __future__ import annotations

import csv
import json
import os
import resource
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
import typer
from scipy import sparse
from scipy.io import mmwrite
from typer.testing import CliRunner

import deepmf.io
from deepmf import Factorization, Fixed, factorize
from deepmf.cli.app import app
from deepmf.cli.console import error_messages
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.datasets import catalogue, simulated_scene
from deepmf.runs.folder import MARK

SCENE = simulated_scene(rows=32, cols=32, bands=24)


def run(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def refuse(*arguments: object) -> str:
    """The one sentence a mistake gets."""
    result = run(*arguments, code=2)
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("deepmf: ")
    return lines[0]


@pytest.fixture
def cube(tmp_path) -> Path:
    path = tmp_path / "cube.npy"
    np.save(path, SCENE.X.T.reshape(32, 32, 24))
    return path


def test_missing_data_are_named_before_anything_else(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    for file in ("nosuch.csv", "nosuch.h5ad"):
        for command in ("fit", "scan", "compare"):
            said = refuse(command, tmp_path / file, "-o", tmp_path / "full")
            assert f"There is no file '{tmp_path / file}'" in said
    assert "No data are given" in refuse("fit", "-o", tmp_path / "full")


def test_a_folder_of_10x_is_read_by_info_as_by_fit(tmp_path):
    folder = tmp_path / "tenx"
    folder.mkdir()
    mmwrite(folder / "matrix.mtx", sparse.coo_array(np.eye(5, 4) + 1))
    (folder / "barcodes.tsv").write_text("c1\nc2\nc3\nc4\n")
    shown = run("info", folder).output
    assert "5 features x 4 samples" in shown
    assert "Matrix Market" in shown
    assert "c1, c2, c3, c4" in shown
    run("fit", folder, "--ranks", "2,1", *QUICK, "-o", tmp_path / "run")


QUICK = ("--max-iter", 3, "--tol", 0)


@pytest.fixture
def done(cube, tmp_path) -> Path:
    out = tmp_path / "run"
    run("fit", cube, "--ranks", "6,4,2", "--min-volume", 10, "--init", "snpa", *QUICK, "-o", out)
    return out


def test_fit_leaves_a_whole_folder(done):
    names = {p.name for p in done.iterdir()}
    assert names >= {
        MARK,
        "factors.npz",
        "config.toml",
        "summary.json",
        "history.csv",
        "components-layer-1.csv",
        "links-layer-2.csv",
        "fractions-layer-3.npy",
        "residual.npy",
        "report.html",
    }
    f = Factorization.load(done / "factors.npz")
    assert f.ranks == [6, 4, 2]
    assert f.layout.image_shape == (32, 32)
    maps = np.load(done / "fractions-layer-2.npy")
    np.testing.assert_allclose(maps.sum(axis=0), 1)
    np.testing.assert_allclose(maps[1], f.view(2).amounts.maps(f.layout)[1])
    with (done / "components-layer-2.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["feature", *(f"L2-{k} (data units)" for k in (1, 2, 3, 4))]
    spectra = f.view(2).components
    np.testing.assert_allclose(np.array(rows[1:], float)[:, 1:], spectra)
    with (done / "history.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [float(r["objective"]) for r in table] == f.history.objective.tolist()
    assert [float(r["squared_data_error_2"]) for r in table] == f.history.data_errors[:, 1].tolist()
    summary = json.loads((done / "summary.json").read_text())
    assert summary["sweeps"] == 3
    assert summary["layers"][1]["rank"] == 4


def test_a_run_is_repeated_from_its_folder(done, tmp_path):
    run("fit", "--config", done / "config.toml", "-o", tmp_path / "again")
    a, b = (Factorization.load(p / "factors.npz") for p in (done, tmp_path / "again"))
    for x, y in zip(a.W + a.H, b.W + b.H):
        np.testing.assert_array_equal(x, y)
    assert (done / "config.toml").read_text() == (tmp_path / "again/config.toml").read_text()


def test_options_win_over_the_file(done, tmp_path):
    run("fit", "--config", done / "config.toml", "--max-iter", 1, "-o", tmp_path / "b")
    assert Factorization.load(tmp_path / "b/factors.npz").n_iter == 1
    run("fit", "--config", done / "config.toml", "--ranks", "5,3", "-o", tmp_path / "c")
    assert Factorization.load(tmp_path / "c/factors.npz").ranks == [5, 3]


def test_every_setting_per_layer(cube, tmp_path):
    run(
        "fit", cube, "--ranks", "4,2", "--model", "data-centric:mu=[2.0]",
        "--constraint-W", "grouped-sparse:0.3", "--constraint-W", "box:lower=0,upper=5",
        "--constraint-H", "capped-simplex", "--regularizer-W", "none",
        "--regularizer-W", "ridge:0.1", "--regularizer-H", "l1:weight=0.01",
        "--init", "random", "--init", "nndsvd", "--seed", 7, "--augment", 2,
        "--solver", "pg", "--inner-iter", 4, "--inner-tol", 0.1, "--max-time", 60, *QUICK,
        "-o", tmp_path / "r", "--no-report", "--quiet",
    )  # fmt: skip
    fit = tomllib.loads((tmp_path / "r/config.toml").read_text())["fit"]
    assert fit["model"] == {"name": "data-centric", "mu": [2.0]}
    assert fit["constraint_W"][0]["sparsity"] == 0.3
    assert fit["constraint_W"][1] == {"name": "box", "lower": 0, "upper": 5}
    assert fit["constraint_H"]["name"] == "capped-simplex"
    assert fit["regularizer_W"][0] == "none"
    assert fit["regularizer_W"][1]["name"] == "ridge"
    assert fit["regularizer_H"]["name"] == "l1"
    assert fit["init"] == ["random", "nndsvd"]
    assert (fit["random_state"], fit["augment"], fit["inner_iter"]) == (7, 2, 4)
    assert fit["solver"]["name"] == "pg"
    assert not (tmp_path / "r/report.html").exists()


def test_truth_names_the_components(tmp_path):
    run("datasets", "simulated", "-o", tmp_path / "s.npz")
    out = tmp_path / "r"
    run(
        "fit", tmp_path / "s.npz", "--truth", tmp_path / "s.npz", "--ranks", "6,4,2",
        "--min-volume", 10, "--init", "snpa", "--max-iter", 40, "-o", out, "--no-report",
    )  # fmt: skip
    summary = json.loads((out / "summary.json").read_text())
    found = sorted(name.split()[1].rstrip("?") for name in summary["layers"][0]["components"])
    assert found == sorted(simulated_scene().names[0])
    assert summary["layers"][0]["mrsa"] < 10
    assert "MRSA" in run("info", out).output


def test_labels_measure_clusters(cube, tmp_path):
    pixels = SCENE.X.shape[1]
    labels = SCENE.A[0].argmax(axis=0)
    np.save(tmp_path / "l.npy", labels)
    out = tmp_path / "r"
    given = ("fit", cube, "--ranks", "6,3", *QUICK, "--labels", tmp_path / "l.npy")
    text = run(*given, "-o", out).output
    assert "NMI" in text
    assert "purity" in text
    with (out / "measures.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert 0 < float(rows[0]["ACC"]) <= float(rows[0]["purity"]) <= 1
    assert 0 <= float(rows[1]["sibling agreement"]) <= 1
    assert "l.npy" in (out / "config.toml").read_text()
    run("fit", "--config", out / "config.toml", "-o", tmp_path / "again")
    assert (tmp_path / "again/measures.csv").read_text() == (out / "measures.csv").read_text()
    np.save(tmp_path / "l.npy", labels[1:])
    said = run(*given, "-o", tmp_path / "b", code=2).stderr
    assert f"has the classes of {pixels - 1} samples" in said


def test_a_truth_that_fits_no_layer_is_said(cube, tmp_path):
    np.savez(tmp_path / "t.npz", M=SCENE.W[0])
    truth = ("--truth", tmp_path / "t.npz", *QUICK, "--no-report")
    said = run("fit", cube, "--ranks", "5,2", *truth, "-o", tmp_path / "a").stderr
    assert "No layer of 5, 2 is compared with the truth of 6 components" in said
    assert "No layer" not in run("fit", cube, "--ranks", "6", *truth, "-o", tmp_path / "b").stderr


def test_findings_are_notes(tmp_path):
    """Each by itself, in the words of the command line; the warning that joins them is left out."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.outer(rng.gamma(3, 1, 50), rng.gamma(0.1, 8, 100)))
    np.save(tmp_path / "counts.npy", counts)
    fit = ("fit", tmp_path / "counts.npy", "--ranks", "4,2", "-o", tmp_path / "out")
    said = run(*fit, "--model", "layer-centric:lam=1000", "--tol", "1e-3")
    flat = " ".join(said.output.split())
    assert flat.count("X looks like raw counts") == 1
    assert "try --beta-loss kullback-leibler, or --scale log for cells, --scale tfidf" in flat
    assert flat.count("lower their weight, for example --model layer-centric:lam=0.1") == 1
    notes = json.loads((tmp_path / "out/summary.json").read_text())["notes"]
    findings = Factorization.load(tmp_path / "out/factors.npz").findings
    assert [f.kind for f in findings][:2] == ["scale", "copy"]
    assert len(notes) >= len(findings)
    assert all(note in (tmp_path / "out/report.html").read_text() for note in notes)


def test_quiet_says_nothing(cube, tmp_path):
    result = run("fit", cube, "--ranks", "3", *QUICK, "-o", tmp_path / "q", "--quiet")
    assert result.output == ""


def test_report_can_be_made_again_and_drawn(done, tmp_path):
    (done / "report.html").unlink()
    run("report", done, "--title", "<b>&", "--figures", tmp_path / "figures")
    page = (done / "report.html").read_text()
    assert "&lt;b&gt;&amp;" in page
    assert {"hierarchy.pdf", "maps-layer-1.png", "spectra-layer-2.pdf", "errors.png"} <= {
        p.name for p in (tmp_path / "figures").iterdir()
    }


def test_compare_ranks_and_keeps_every_run(cube, tmp_path):
    out = tmp_path / "all"
    text = run(
        "compare", cube, "--ranks", "3,2", *QUICK, "--init", "random", "--seeds", 2, "-o", out,
        "--jobs", 1,
    ).output  # fmt: skip
    with (out / "ranking.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {r["setting"] for r in rows} == {
        "layer-centric",
        "data-centric",
        "multilayer",
        "trigeorgis",
    }
    errors = [float(r["error 2 %"]) for r in rows]
    assert errors == sorted(errors)
    assert all(float(r["instability"]) > 0 for r in rows)
    assert rows[0]["setting"] in text
    for row in rows:
        assert (out / row["setting"] / "factors.npz").exists()
    assert (out / "report.html").stat().st_size > 1000


def test_compare_settings_from_files(done, cube, tmp_path):
    (tmp_path / "plain.toml").write_text("[fit]\nranks = [2]\nmax_iter = 2\ntol = 0.0\n")
    run(
        "compare", cube, "--config", done / "config.toml", "--config", tmp_path / "plain.toml",
        "-o", tmp_path / "c", "--jobs", 1,
    )  # fmt: skip
    assert (tmp_path / "c/plain/factors.npz").exists()
    assert (tmp_path / "c/run/factors.npz").exists()


def test_info_on_files_and_data_sets(cube, done):
    text = run("info", cube).output
    assert "24 features x 1024 samples" in text
    assert "a scene of 32 x 32 pixels" in text
    assert "mapped" in text
    assert "relative squared data errors" in run("info", done).output
    assert "vegetation" in run("info", "dataset:simulated").output


def test_info_says_what_rows_are_taken_for(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 5)))
    np.savetxt(tmp_path / "x.csv", np.ones((3, 5)), delimiter=",")
    assert (
        "Rows are taken as features; if they are samples" in run("info", tmp_path / "x.npy").output
    )
    assert (
        "Rows are taken as samples; if they are features" in run("info", tmp_path / "x.csv").output
    )
    assert "Rows are taken" not in run("info", tmp_path / "x.csv", "--rows", "features").output
    assert "Rows are taken" not in run("info", "dataset:synthetic").output


def test_datasets_are_listed():
    text = run("datasets").output
    assert "simulated" in text
    assert "built in" in text


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("pixels", ["columns", "rows"])
@pytest.mark.parametrize("count", [7, 12])
def test_a_saved_data_set_shows_the_same_pictures(tmp_path, monkeypatch, order, pixels, count):
    X = np.random.default_rng(0).random((12, count))
    layout = Layout(image_shape=(3, 4), order=order, pixels=pixels)
    data = Dataset("mine", X if pixels == "rows" else X.T, layout)
    monkeypatch.setattr(catalogue, "load", lambda name: data)
    run("datasets", "mine", "-o", tmp_path / "mine.npz")
    read = deepmf.io.read(tmp_path / "mine.npz")
    np.testing.assert_array_equal(read.X, data.X)
    assert (read.layout.order, read.layout.pixels) == (order, pixels)


def test_ranks_default_for_a_named_data_set(tmp_path):
    run("fit", "dataset:synthetic", *QUICK, "-o", tmp_path / "s", "--no-report")
    assert Factorization.load(tmp_path / "s/factors.npz").ranks == [6, 3]


# --- mistakes --------------------------------------------------------------------------------


def test_mistakes_get_one_sentence(cube, tmp_path):
    out = ("-o", tmp_path / "never")
    assert "no file" in refuse("fit", tmp_path / "none.npy", "--ranks", 3, *out)
    assert "No ranks" in refuse("fit", cube, *out)
    assert "No data" in refuse("fit", "--ranks", 3, *out)
    assert "6,4,2" in refuse("fit", cube, "--ranks", "six", *out)
    assert "at least 1" in refuse("fit", cube, "--ranks", "0", *out)
    assert "Unknown model" in refuse("fit", cube, "--ranks", 3, "--model", "deep", *out)
    assert "Unknown init" in refuse("fit", cube, "--ranks", 3, "--init", "luck", *out)
    assert "3 entries for 2" in refuse(
        "fit", cube, "--ranks", "3,2", *("--constraint-W", "simplex") * 3, *out
    )
    assert "not both" in refuse(
        "fit", cube, "--ranks", 3, "--min-volume", 1, "--regularizer-W", "ridge", *out
    )
    assert "ROWSxCOLS" in refuse("fit", cube, "--ranks", 3, "--image", "big", *out)
    assert "features or samples" in refuse("fit", cube, "--ranks", 3, "--rows", "pixels", *out)
    assert "Unknown data set" in refuse("fit", "dataset:mars", "--ranks", 3, *out)
    for command in (("info",), ("fit", "--ranks", 3, *out)):
        said = refuse(*command, "dataset:simulated", "--bad-bands", "1-2")
        assert "leave out --bad-bands" in said
    assert "32 x 32 pixels" in refuse("info", cube, "--image", "3x3")
    assert "one of tfidf" in refuse("fit", cube, "--ranks", 3, "--scale", "max", *out)
    assert "suffix" in refuse("info", __file__)
    assert ".npz files" in refuse("datasets", "simulated", "-o", tmp_path / "s.csv")
    assert "not a run" in refuse("report", tmp_path)
    assert "no folder" in refuse("report", tmp_path / "nothing")
    assert "same name" in refuse(
        "compare", cube, "--ranks", 3, "--model", "multilayer", "--model", "multilayer", *out
    )
    assert not (tmp_path / "never").exists()


def test_an_existing_folder_is_refused(cube, done):
    assert "--overwrite" in refuse("fit", cube, "--ranks", 3, "-o", done)
    (done / "stray").write_text("")
    run("fit", cube, "--ranks", 3, *QUICK, "-o", done, "--overwrite")
    assert not (done / "stray").exists()
    assert Factorization.load(done / "factors.npz").ranks == [3]


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".h5ad", ".nc"])
def test_a_damaged_file_is_said_before_what_it_holds(tmp_path, suffix):
    (tmp_path / f"x{suffix}").write_bytes(b"\x89HDF\r\n\x1a\n" + b"x" * 100)
    assert "truncated or damaged" in refuse("info", tmp_path / f"x{suffix}")


def test_a_variable_of_a_file_that_has_none(cube):
    assert "one array" in refuse("info", cube, "--variable", "X")


def test_a_damaged_run_is_said(done):
    (done / "summary.json").write_text("{")
    assert "not a whole run" in refuse("report", done)
    (done / "factors.npz").write_bytes(b"PK")
    assert "not a whole deepmf factorization" in refuse("info", done)


def test_names_with_control_characters_do_not_reach_the_terminal(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((3, 5)))
    (tmp_path / "names.txt").write_text("a\x1b[31m\nb\nc\n")
    shown = run("info", tmp_path / "x.npy", "--features", tmp_path / "names.txt").output
    assert "\x1b" not in shown


def test_a_reader_that_has_seen_enough(tmp_path):
    script = f"{sys.executable} -c 'from deepmf.cli import main; main()' datasets | head -n 1"
    done = subprocess.run(script, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("name")
    assert done.stderr == ""


def test_no_space_left(cube, tmp_path):
    """A real limit on the size of files, in a process of its own."""
    code = (
        "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "from deepmf.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "fit", str(cube), "--ranks", "3", "--max-iter", "2",
         "-o", str(tmp_path / "full")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cube.npy"]


# --- folders and files -----------------------------------------------------------------------


def test_files_named_relatively_are_found_again(cube, tmp_path, monkeypatch):
    np.savetxt(tmp_path / "waves.txt", np.linspace(400, 2500, 24))
    (tmp_path / "names.txt").write_text("\n".join(f"band {k}" for k in range(24)))
    (tmp_path / "set").mkdir()
    (tmp_path / "set/own.toml").write_text('[input]\npath = "../cube.npy"\n[fit]\nranks = [2]\n')
    monkeypatch.chdir(tmp_path)
    names = ("--wavelengths", "waves.txt", "--features", "names.txt")
    run("fit", "--config", "set/own.toml", *names, *QUICK, "-o", "a", "--no-report")
    monkeypatch.chdir(tmp_path / "set")
    run("fit", "--config", "../a/config.toml", "-o", "../b", "--no-report")
    assert Factorization.load(tmp_path / "b/factors.npz").layout.features[1] == "band 1"


def test_what_a_run_reads_is_not_replaced(cube, done):
    inside = done / "cube.npy"
    inside.write_bytes(cube.read_bytes())
    for command in ("fit", "compare"):
        said = refuse(command, inside, "--ranks", 3, "-o", done, "--overwrite")
        assert "which is read here" in said
    assert inside.exists()


def test_figures_do_not_replace_a_run(done, tmp_path):
    assert "pass --overwrite" in refuse("report", done, "--figures", done)
    assert "which is read here" in refuse("report", done, "--figures", done, "--overwrite")
    assert (done / "factors.npz").exists()


def test_runs_of_the_same_name_keep_their_own_figures(done, tmp_path):
    (tmp_path / "other").mkdir()
    done.rename(tmp_path / "other/run")
    again = ("--config", tmp_path / "other/run/config.toml", "--ranks", "2")
    run("fit", *again, "-o", tmp_path / "run")
    run("report", tmp_path / "run", tmp_path / "other/run", "--figures", tmp_path / "f")
    names = {p.name for p in (tmp_path / "f").iterdir()}
    assert {"run 1-errors.png", "run 2-errors.png", "run 2-maps-layer-3.png"} <= names


def test_settings_of_runs_are_compared_under_their_folders_names(done, cube, tmp_path):
    config = done / "config.toml"
    run("fit", "--config", config, "--init", "random", "-o", tmp_path / "other", "--no-report")
    out = tmp_path / "c"
    run("compare", "--config", config, "--config", tmp_path / "other/config.toml", "-o", out, "-q")
    assert {p.name for p in out.iterdir() if p.is_dir()} == {"run", "other"}
    for name in ("a b.toml", "a-b.toml", "ranking.csv.toml"):
        (tmp_path / name).write_text(config.read_text())
    assert "same name" in refuse(
        "compare", "--config", tmp_path / "a b.toml", "--config", tmp_path / "a-b.toml"
    )
    only = ("--config", tmp_path / "ranking.csv.toml")
    run("compare", *only, "-o", out, "-q", "--overwrite", "--jobs", 1)
    assert (out / "ranking.csv").is_file()


def test_only_fits_to_the_same_data_are_compared(done, tmp_path):
    text = (done / "config.toml").read_text()
    (tmp_path / "fewer.toml").write_text(text.replace("[fit]", 'bad_bands = "1-3"\n[fit]'))
    assert "24 features x 1024 samples, 'fewer' 21 x 1024" in refuse(
        "compare", "--config", done / "config.toml", "--config", tmp_path / "fewer.toml",
        "-o", tmp_path / "c",
    )  # fmt: skip


def test_errors_of_several_lines_are_one(capsys):
    with pytest.raises(typer.Exit), error_messages():
        raise ValueError("one\nand \x1b[31m two")
    assert capsys.readouterr().err == "deepmf: one and ?[31m two\n"


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("command", "ranks"), [("compare", "6,4"), ("scan", "5-6")])
def test_an_interrupted_command_leaves_nothing(cube, tmp_path, command, ranks, number, jobs):
    script = (
        "import sys, deepmf.cli.app; sys.stdout.write('ready\\n'); sys.stdout.flush();"
        "from deepmf.cli import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, command, str(cube), "--ranks", ranks, "--tol", "0",
         "--max-iter", "1000000", "--jobs", str(jobs), "-o", str(tmp_path / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    time.sleep(2)
    if number == signal.SIGINT:  # as a terminal does: to all of them
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 128 + number, said
    assert said.count("\n") == (number == signal.SIGINT), said
    assert [p.name for p in tmp_path.iterdir()] == ["cube.npy"]


def test_known_components_are_held_and_the_run_can_be_repeated(cube, tmp_path):
    held = SCENE.W[0][:, [4, 1]]
    np.savez(tmp_path / "known.npz", M=held)
    out, again = tmp_path / "a", tmp_path / "b"
    fixed = ("--fix-W", tmp_path / "known.npz", *QUICK, "--no-report")
    as_they_are = ("--constraint-W", "nonnegative")
    run("fit", cube, "--ranks", "6,2", *as_they_are, *fixed, "-o", out)
    (tmp_path / "known.npz").unlink()
    run("fit", "--config", out / "config.toml", "--no-report", "-o", again)
    for folder in (out, again):
        f = Factorization.load(folder / "factors.npz")
        np.testing.assert_array_equal(f.W[0][:, :2], held)


def test_known_components_are_scaled_for_a_simplex(cube, tmp_path):
    held = 7 * SCENE.W[0][:, [4, 1]]
    np.savez(tmp_path / "known.npz", M=held)
    fixed = ("--fix-W", tmp_path / "known.npz", *QUICK, "--no-report", "-o", tmp_path / "a")
    simplex = ("--constraint-W", "simplex", "--constraint-W", "simplex")
    for ways in (("--min-volume", 1, *simplex), ("--min-volume", 1), ()):
        said = run("fit", cube, "--ranks", "6,2", *ways, *fixed, "--overwrite").stderr
        f = Factorization.load(tmp_path / "a" / "factors.npz")
        np.testing.assert_array_equal(f.W[0][:, :2], held / held.sum(axis=0))
        assert f.problem.layers[0].constraint_W.inner.name == "simplex"
        assert "The components held are divided by their sums" in said


def test_partly_observed_pixels_are_fitted(cube, tmp_path):
    values = np.load(cube)
    values[3, 4, :5] = values[7] = np.nan
    np.save(cube, values)
    ways = ("fit", cube, "--ranks", "3", *QUICK, "--no-report", "--overwrite", "-o", tmp_path / "a")
    said = run(*ways).stderr
    assert "Pixels without data, left out: 32 of 1024." in said
    assert "Pixels that lack some bands, left out: 1 of 1024; --weights observed" in said
    assert Factorization.load(tmp_path / "a/factors.npz").layout.valid.sum() == 1024 - 33
    said = run(*ways, "--weights", "observed").stderr
    assert "Pixels that lack some bands, kept: 1 of 1024." in said
    f = Factorization.load(tmp_path / "a/factors.npz")
    assert f.layout.valid[3, 4]
    assert f.layout.valid.sum() == 1024 - 32
    notes = json.loads((tmp_path / "a/summary.json").read_text())["notes"]
    assert any("Pixels without data" in note for note in notes)


def test_known_components_in_other_units_are_noticed(cube, tmp_path):
    known = tmp_path / "known.npz"
    ways = ("--constraint-W", "nonnegative", "--fix-W", known, *QUICK, "--no-report", "--overwrite")
    for factor, noticed in ((1e4, True), (10, False), (1e-3, True)):
        np.savez(known, M=factor * SCENE.W[0][:, [4, 1]])
        said = run("fit", cube, "--ranks", "6", *ways, "-o", tmp_path / "a").stderr
        assert ("may be in other units" in said) == noticed


def test_known_components_that_do_not_fit_get_a_sentence(cube, tmp_path):
    out = ("-o", tmp_path / "a")
    assert "There is no file" in refuse("fit", cube, "--ranks", 6, "--fix-W", "no.npz", *out)
    np.savez(tmp_path / "k.npz", M=np.ones((5, 2)))
    said = refuse("fit", cube, "--ranks", 6, "--fix-W", tmp_path / "k.npz", *out)
    assert "components of 5 features" in said
    np.savez(tmp_path / "k.npz", M=SCENE.W[0])
    said = refuse("fit", cube, "--ranks", 4, "--fix-W", tmp_path / "k.npz", *out)
    assert "at most 4" in said
    assert not (tmp_path / "a").exists()


@pytest.fixture
def mixture(tmp_path) -> Path:
    """Three components with a little noise."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.3, size=(30, 3)) @ rng.gamma(0.3, size=(3, 60))
    np.save(tmp_path / "x.npy", X + 0.01 * X.mean() * rng.random(X.shape))
    return tmp_path / "x.npy"


def test_scan_leaves_numbers_a_figure_and_the_choice(mixture, tmp_path):
    out = tmp_path / "scan"
    options = ("--rows", "features", "--tol", 1e-3, "--jobs", 1, "-o", out)
    said = run("scan", mixture, "--ranks", "1-5", "--ranks", "3,2", *options).stdout
    names = {p.name for p in out.iterdir()}
    assert names == {
        MARK, "scan.csv", "scan.json", "scan.png", "scan.pdf", "summary.md",
    }  # fmt: skip
    choice = json.loads((out / "scan.json").read_text())["choice"]
    assert (choice["ranks"], choice["sure"]) == ([3, 2], True)
    assert choice["sentence"] in said
    assert choice["sentence"] in (out / "summary.md").read_text()
    with (out / "scan.csv").open() as file:
        assert [row["ranks"] for row in csv.DictReader(file)] == ["1", "2", "3", "4", "5", "3,2"]


def test_scan_of_single_cell_counts(tmp_path):
    """Sparse, cells as rows: nobody at the command line can make them dense."""
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    genes, cells = rng.gamma(0.3, size=(150, 3)), rng.dirichlet([0.2] * 3, size=200)
    found = rng.poisson(60 * cells @ (genes / genes.sum(axis=0)).T).astype(np.float32)
    anndata.AnnData(sparse.csr_matrix(found)).write_h5ad(tmp_path / "x.h5ad")
    out = tmp_path / "scan"
    options = ("--scale", "log", "--ranks", "2-5", "--jobs", 1, "-o", out)
    said = run("scan", tmp_path / "x.h5ad", *options).stdout
    assert "150 features x 200 samples" in said
    assert "the error on hidden features" in (out / "summary.md").read_text()
    assert json.loads((out / "scan.json").read_text())["choice"]["ranks"] == [3]
    (tmp_path / "s.toml").write_text('[fit]\ndevice = "cuda"\n')
    said = refuse(
        "scan", tmp_path / "x.h5ad", "--config", tmp_path / "s.toml", "-o", tmp_path / "a"
    )
    assert "scan does not use a device, got 'cuda'; leave out --device." in said


def test_scan_takes_settings_from_a_file(mixture, tmp_path):
    text = f'[input]\npath = "{mixture}"\nrows = "features"\n[fit]\nmax_iter = 2\ntol = 0.0\n'
    (tmp_path / "s.toml").write_text(
        text + 'ranks = [4]\nregularizer_W = "none"\nweights = "observed"\n'
    )
    few = ("--splits", 2, "--jobs", 1, "--quiet")
    said = run(
        "scan", "--config", tmp_path / "s.toml", "--ranks", "2-3", *few, "-o", tmp_path / "a"
    )
    assert len(said.stdout.strip().splitlines()) == 1
    (tmp_path / "h.toml").write_text(text.replace("[fit]", 'fixed = "w.npz"\n[fit]'))
    np.savez(tmp_path / "w.npz", W=np.ones((3, 1)))
    said = refuse("scan", "--config", tmp_path / "h.toml", "--ranks", "2-3", "-o", tmp_path / "b")
    assert "cannot hold components" in said


@pytest.mark.parametrize(
    ("ranks", "sentence"),
    [
        ("two", "--ranks must be such as 2-8"),
        ("2-", "--ranks must be such as 2-8"),
        ("3,3", "no candidate whose ranks decrease"),
        ("5-2", "no candidate whose ranks decrease"),
        ("3", "different numbers of components"),
        ("0-2", "at least 1"),
    ],
)
def test_scan_refuses_ranks_in_a_sentence(mixture, tmp_path, ranks, sentence):
    out = tmp_path / "scan"
    said = refuse("scan", mixture, "--rows", "features", "--ranks", ranks, "-q", "-o", out)
    assert sentence in said
    assert not out.exists()


@pytest.mark.parametrize("recipe", ["scene", "cells", "none"])
def test_a_run_from_its_own_settings_has_the_recipe_they_came_from(cube, tmp_path, recipe):
    out, again = tmp_path / "a", tmp_path / "b"
    ways = ("--ranks", "4,2", "--max-iter", 3, "--no-report", "--recipe", recipe)
    run("fit", cube, *ways, "-o", out)
    said = run("fit", "--config", out / "config.toml", "--no-report", "-o", again).output
    assert ("No recipe" if recipe == "none" else f"Recipe {recipe}") in said
    f, g = (Factorization.load(folder / "factors.npz") for folder in (out, again))
    assert f.problem.spec() == g.problem.spec()
    np.testing.assert_array_equal(f.W[0], g.W[0])
    facts = [json.loads((folder / "summary.json").read_text())["facts"] for folder in (out, again)]
    assert facts[0].get("recipe") == facts[1].get("recipe")


def test_a_penalty_that_was_turned_off_stays_off_from_its_own_settings(cube, tmp_path):
    out, again = tmp_path / "a", tmp_path / "b"
    ways = ("--ranks", "4,2", "--max-iter", 3, "--no-report", "--regularizer-W", "none")
    run("fit", cube, *ways, "-o", out)
    run("fit", "--config", out / "config.toml", "--no-report", "-o", again)
    for folder in (out, again):
        f = Factorization.load(folder / "factors.npz")
        assert [layer.regularizer_W for layer in f.problem.layers] == [None, None]


def test_a_recipe_has_no_penalty_where_components_are_held(cube, tmp_path):
    known = SCENE.W[0][:, [4, 1]]
    np.savez(tmp_path / "known.npz", M=known)
    ways = ("--ranks", "6,2", *QUICK, "--fix-W", tmp_path / "known.npz", "--no-report")
    run("fit", cube, *ways, "-o", tmp_path / "a")
    f = Factorization.load(tmp_path / "a" / "factors.npz")
    X = np.load(cube).reshape(-1, 24).T
    settings = {"recipe": "scene", "max_iter": 2, "tol": 0, "random_state": 0}
    g = factorize(X, [6, 2], constraint_W=[Fixed(known), None], **settings)
    for result in (f, g):
        assert [layer.regularizer_W for layer in result.problem.layers] == [None, None]


def test_a_recipe_falls_back_on_the_default_start(tmp_path):
    few = np.repeat(np.random.default_rng(0).random((24, 3)), 20, axis=1)
    np.save(tmp_path / "few.npy", few.T.reshape(6, 10, 24))
    ways = ("fit", tmp_path / "few.npy", "--ranks", "5,2", *QUICK, "--no-report", "--overwrite")
    run(*ways, "-o", tmp_path / "a")
    run("fit", "--config", tmp_path / "a/config.toml", "--no-report", "-o", tmp_path / "b")
    said = refuse(*ways, "--init", "snpa", "-o", tmp_path / "a")
    assert "SNPA found only 3 vertices" in said
    assert "--init random" in said


def test_compare_says_once_how_the_data_were_read(cube, tmp_path):
    models = ("--model", "multilayer", "--model", "data-centric")
    said = run("compare", cube, "--ranks", "3,2", *QUICK, *models, "-o", tmp_path / "c").stderr
    assert said.count("is taken as the spectral one") == 1
    assert said.count("multilayer: ") == said.count("data-centric: ")


def test_info_shows_the_choice_of_a_scan(mixture, tmp_path):
    run("scan", mixture, "--ranks", "1-3", "--splits", 2, "-q", "-o", tmp_path / "s")
    said = run("info", tmp_path / "s").stdout
    assert json.loads((tmp_path / "s/scan.json").read_text())["choice"]["sentence"][:40] in said
    assert "agreement" in said


def test_numbers_agree_with_their_nouns(cube, tmp_path):
    ways = ("--max-iter", 1, "--tol", 0, "--no-report", "-o", tmp_path / "a")
    assert "1 sweep in" in run("fit", cube, "--ranks", "3", *ways).output
    assert "1 sweep, stopped" in run("info", tmp_path / "a").output
    values = np.load(cube)
    values[3, 4] = np.nan
    np.save(cube, values)
    assert "1 pixel, left out" in run("info", cube).output
