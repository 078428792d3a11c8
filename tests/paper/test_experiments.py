"""The experiments, made small: what they write, that they repeat, and what they must show."""

from __future__ import annotations

import csv
import json
import os

import numpy as np
import pytest
import scipy.io

pytest.importorskip("matplotlib")
typer_testing = pytest.importorskip("typer.testing")

from deepmf._factorize import factorize  # noqa: E402
from deepmf.cli.app import app  # noqa: E402
from deepmf.datasets import simulated_scene  # noqa: E402
from deepmf.datasets import synthetic as synthetic_data  # noqa: E402
from deepmf.losses import LayerCentric  # noqa: E402
from deepmf.metrics import match  # noqa: E402
from deepmf.paper import scenes, synthetic  # noqa: E402
from deepmf.paper.models import DEEP, IMPROVED, SINGLE  # noqa: E402
from deepmf.regularizers import MinVolume  # noqa: E402
from deepmf.solvers import FastProjectedGradient  # noqa: E402


def invoke(*arguments):
    return typer_testing.CliRunner().invoke(app, [str(a) for a in arguments])


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_synthetic_settings_are_the_papers():
    low, high = (synthetic.setting("min-volume", e, 500) for e in (0.0949, 0.1267))
    assert [r.weight for r in low.regularizer_W] == [1e-3, 1e-2]
    assert [r.weight for r in high.regularizer_W] == [1e-2, 1e-1]
    sparse = synthetic.setting("grouped-sparse", 0.01, 500)
    assert sparse.constraint_W[1].sparsity == pytest.approx(1 / 3)
    assert sparse.constraint_H[1].sparsity == pytest.approx(1 / 3)
    assert len(synthetic.NOISE) == 10


def test_synthetic_scores_are_those_of_the_library():
    scores = synthetic.score(synthetic.Task("min-volume", 0.01, 3, 40, 10))
    assert len(scores) == 2 * (len(DEEP) + 1) + 1
    data = synthetic_data(noise=0.01, random_state=13)
    f = factorize(
        data.X, [6, 3], regularizer_W=[MinVolume(k, "paper") for k in (1e-3, 1e-2)], init="snpa",
        augment=0, max_iter=40, tol=0, allow_negative=True, extrapolate=False,
        solver=FastProjectedGradient(scaled=False), model=LayerCentric(10),
    )  # fmt: skip
    lc = {s.layer: s.mrsa for s in scores if s.model == "LC-DMF"}
    assert lc == {k + 1: pytest.approx(match(data.W[k], f.W[k]).mean) for k in range(2)}


def test_synthetic_command(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "NOISE", (0.01, 0.0631))
    outs = [tmp_path / "a", tmp_path / "b"]
    for out in outs:
        done = invoke("paper", "synthetic", "-o", out, "--runs", 2, "--max-iter", 30, "--jobs", 1)
        assert done.exit_code == 0, done.output
    assert "± " in done.output
    rows = rows_of(outs[0] / "scores.csv")
    per_variant = 2 * 2 * (2 * len(DEEP) + 1)
    assert len(rows) == 2 * per_variant + 2 * 2 * 2  # LC-DMF+ in one variant, at two layers
    assert (outs[0] / "scores.csv").read_text() == (outs[1] / "scores.csv").read_text()
    for name in ("setting", "min-volume-layer-1", "grouped-sparse-layer-2"):
        assert (outs[0] / f"{name}.png").stat().st_size > 5000
        assert (outs[0] / f"{name}.pdf").stat().st_size > 2000
    configuration = json.loads((outs[0] / "configuration.json").read_text())
    assert configuration["settings"] == {"runs": 2, "sweeps": 30, "seed": 0}
    assert "numpy" in configuration["versions"]


def test_a_scene_in_all_models(tmp_path):
    out = tmp_path / "scene"
    done = invoke("paper", "urban", "-o", out, "--scene", "simulated-1", "--max-iter", 60)
    assert done.exit_code == 0, done.output
    table = {r["model"]: r for r in rows_of(out / "simulated-1-mrsa.csv")}
    assert list(table) == [*DEEP, SINGLE, IMPROVED]
    layers = [c for c in table[SINGLE] if c.startswith("layer")]
    assert len(layers) == 3
    ours, theirs = ([float(table[m][c]) for c in layers] for m in (IMPROVED, "LC-DMF"))
    assert np.mean(ours) < np.mean(theirs)
    names = {p.name for p in out.glob("*.png")}
    expected = {f"simulated-1-hierarchy-{m}.png" for m in (*DEEP, IMPROVED)}
    expected |= {f"simulated-1-single-layer-r{r}.png" for r in (4, 2)}
    assert expected <= names


def test_parallel_and_serial_agree(tmp_path):
    tasks = [synthetic.Task("min-volume", e, 0, 10, 0) for e in (0.01, 0.1)]
    serial = [synthetic.score(t) for t in tasks]
    assert synthetic.in_parallel(synthetic.score, tasks, jobs=2) == serial


def test_a_cube_of_ones_own(tmp_path):
    """The published form, and rows x columns x bands: the same scene, the same numbers."""
    scene = simulated_scene(rows=32, cols=32, bands=20)
    cube = np.stack([scene.image(band) for band in scene.X], axis=-1)
    np.save(tmp_path / "cube.npy", cube)
    flat = cube.reshape(-1, 20, order="F").T
    scipy.io.savemat(tmp_path / "flat.mat", {"Y": flat, "nRow": 32, "nCol": 32})
    for k, W in ((6, scene.W[0]), (4, scene.W[1])):
        scipy.io.savemat(tmp_path / f"end{k}.mat", {"M": W})
    tables = []
    for name in ("cube.npy", "flat.mat"):
        out = tmp_path / name.replace(".", "-")
        truths = ["--truth", tmp_path / "end6.mat", "--truth", tmp_path / "end4.mat"]
        done = invoke(
            "paper", "urban", "--cube", tmp_path / name, *truths, "--ranks", "6,4,2", "-o", out,
            "--max-iter", 10, "--jobs", 1,
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        tables.append((out / f"{name[:4]}-mrsa.csv").read_text())
    assert tables[0] == tables[1]
    assert "layer 2 (r=4)" in tables[0]
    bad = invoke("paper", "urban", "--cube", tmp_path / "cube.npy", *truths, "--ranks", "5,2")
    assert bad.exit_code == 2
    assert "[6, 4]" in bad.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["paper", "urban", "--scene", "nosuch"], ["nosuch", "samson"]),
        (["paper", "urban", "--data", "/no/such/folder"], ["/no/such/folder"]),
        (["paper", "faces", "--data", "/no/such/folder"], ["/no/such/folder"]),
        (["paper", "urban", "--cube", "/no/such/cube.mat"], ["/no/such/cube.mat"]),
        (["paper", "urban", "--cube", "x.mat", "--ranks", "six"], ["six", "6,4,2"]),
    ],
)
def test_mistakes_are_one_sentence(arguments, words, tmp_path):
    done = invoke(*arguments, "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_with_files_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    done = invoke("paper", "synthetic", "-o", tmp_path, "--runs", 1, "--max-iter", 1)
    assert done.exit_code == 2
    assert "--overwrite" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.skipif("DEEPMF_DATA" not in os.environ, reason="DEEPMF_DATA is not set")
def test_urban_has_the_papers_order_and_numbers_beside_it(tmp_path):
    out = tmp_path / "urban"
    done = invoke("paper", "urban", "-o", out, "--max-iter", 200)
    assert done.exit_code == 0, done.output
    rows = {r["model"]: r for r in rows_of(out / "urban-mrsa.csv")}
    assert rows["LC-DMF"]["paper, layer 1"] == "9.48"
    first = {m: float(r["layer 1 (r=6)"]) for m, r in rows.items()}
    assert min(DEEP, key=first.get) == "LC-DMF"
    assert max(DEEP, key=first.get) == "Tri-DMF"
    assert scenes.PAPER_URBAN[SINGLE] == (16.98, 7.74)
