"""The experiments, made small: what they write, that they repeat, and what they must show."""

from __future__ import annotations

import csv
import json
import os

import numpy as np
import pytest
import scipy.io
import scipy.sparse

pytest.importorskip("matplotlib")
typer_testing = pytest.importorskip("typer.testing")

from deepmf._factorize import factorize  # noqa: E402
from deepmf.cli.app import app  # noqa: E402
from deepmf.datasets import simulated_scene  # noqa: E402
from deepmf.datasets import synthetic as synthetic_data  # noqa: E402
from deepmf.losses import LayerCentric  # noqa: E402
from deepmf.metrics import match  # noqa: E402
from deepmf.paper import divergences, scenes, synthetic  # noqa: E402
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
        (["paper", "kl", "--data", "/no/such/folder"], ["/no/such/folder"]),
        (["paper", "kl", "--experiment", "nosuch"], ["nosuch", "topics"]),
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


@pytest.fixture
def tiny_data(tmp_path, monkeypatch):
    """Made faces and counts in the files that the experiments read."""
    rng = np.random.default_rng(0)
    parts = rng.gamma(0.5, size=(361, 8)) @ rng.gamma(0.5, size=(8, 60)) + 0.01
    scipy.io.savemat(tmp_path / "CBCL.mat", {"X": parts / parts.max()})
    topics = rng.dirichlet(np.full(80, 0.1), 4).T
    label = rng.integers(4, size=120)
    for name in divergences.TEXTS:
        counts = rng.poisson(40 * topics[:, label])
        scipy.sparse.save_npz(tmp_path / f"{name}_counts.npz", scipy.sparse.csc_matrix(counts))
        terms = {"terms": np.array([f"word{k}" for k in range(80)])} if name == "20news" else {}
        np.savez(tmp_path / f"{name}_meta.npz", label=label, **terms)
    monkeypatch.setattr(divergences, "FACES", (6, 4, 2))
    monkeypatch.setattr(divergences, "TOPICS", (4, 3, 2))
    divergences.open_texts.cache_clear()
    return tmp_path


def test_kl_command(tiny_data, tmp_path):
    out = tmp_path / "out"
    done = invoke(
        "paper", "kl", "--data", tiny_data, "-o", out, "--experiment", "faces", "--experiment",
        "topics", "--runs", 2, "--max-iter", 30, "--jobs", 1,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    rows = rows_of(out / "faces.csv")
    assert [row["divergence"] for row in rows][-1] == "published, 35 runs"
    flat, deep = ([float(row[f"layer {k}"]) for k in (1, 2, 3)] for row in rows[:2])
    assert deep[0] > flat[0]  # what the deeper layers gain, the first one loses
    assert deep[2] < flat[2]
    assert "word" in (out / "20news-topics.txt").read_text()
    assert not (out / "tdt2-topics.txt").exists()
    assert json.loads((out / "configuration.json").read_text())["settings"]["runs"] == 2
    assert (out / "faces-deep.png").stat().st_size > 5000


def test_kl_weights_are_the_sequels(tiny_data):
    """The start of the deep model is half of the multilayer fit, and all of its terms are equal."""
    task = divergences.Task("faces", 0, 20, str(tiny_data), False, "cbcl")
    X = divergences.load_cbcl(str(tiny_data)).X.T
    seen = []
    f = factorize(
        X, divergences.FACES, model=LayerCentric(1.0), augment=10, max_iter=1,
        callbacks=lambda p: seen.append(p) and False, **divergences.settings(task),
    )  # fmt: skip
    half = factorize(
        X, divergences.FACES, model="multilayer", max_iter=10, **divergences.settings(task)
    )
    errors = divergences.divergences(X, half)
    assert f.history.objective[0] == pytest.approx(3 * errors[0])


def test_kl_multiplicative_steps(tiny_data):
    pair = divergences.fit_task(divergences.Task("faces", 0, 40, str(tiny_data), True, "cbcl"))
    flat, deep = pair.errors(divergences.load_cbcl(str(tiny_data)).X.T)
    assert np.isfinite(deep).all()
    assert deep[2] < flat[2]


def test_kl_scenes_settings():
    for scene in divergences.SCENES:
        models = divergences.scene_models(scene)
        weights = [
            r.weight for r in models["KL, minimum volume, authors' weights"]["regularizer_W"]
        ]
        assert weights == [2 * a for a in divergences.VOLUMES[scene]]


@pytest.mark.skipif("DEEPMF_DATA" not in os.environ, reason="DEEPMF_DATA is not set")
def test_kl_scenes(tmp_path):
    out = tmp_path / "scenes"
    done = invoke("paper", "kl", "--experiment", "scenes", "-o", out, "--max-iter", 10, "--jobs", 1)
    assert done.exit_code == 0, done.output
    assert len(rows_of(out / "scenes.csv")) == 4
