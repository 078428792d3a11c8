"""Measures of runs against truth and classes, in files and tables."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from deepmf import factorize
from deepmf.data.dataset import Dataset, Truth
from deepmf.data.layout import Layout
from deepmf.datasets import simulated_scene
from deepmf.metrics import (
    abundance_rmse,
    cluster_scores,
    hierarchy_agreement,
    npmi_coherence,
    sad,
    topic_diversity,
)
from deepmf.report.content import report_content
from deepmf.runs import Config, execute, load_run, save_run
from deepmf.runs.compare import Entry
from deepmf.runs.measures import layer_measures
from deepmf.runs.run import Run

SETTINGS = {"ranks": [6, 4, 2], "max_iter": 5, "tol": 0.0, "init": "snpa"}


@pytest.fixture(scope="module")
def scene():
    return simulated_scene(rows=32, cols=32, bands=30)


@pytest.fixture(scope="module")
def done(scene):
    return execute(Config("dataset:simulated", fit=SETTINGS), scene)


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_simulated_scene_has_fractions_of_every_layer(scene):
    for W, A, H in zip(scene.W[1:], scene.A[1:], scene.H[1:]):
        np.testing.assert_allclose(A.sum(axis=0), 1)
        assert A.shape == (W.shape[1], 1024)
        assert ((H > 0).sum(axis=0) == 1).all()
    groups = [np.flatnonzero(row) for row in scene.H[1]]
    np.testing.assert_array_equal(scene.A[1], [scene.A[0][g].sum(axis=0) for g in groups])


def test_against_the_truth(done, scene):
    for layer, found in enumerate(done.measures, start=1):
        order = done.scores[layer].order
        W, A = scene.W[layer - 1], scene.A[layer - 1]
        pairs = [sad(w, done.f.basis(layer)[:, k]) for w, k in zip(W.T, order)]
        assert found["MRSA"] == done.scores[layer].mean
        assert found["SAD"] == pytest.approx(np.mean(pairs))
        fractions = done.f.view(layer).fractions.values
        assert found["abundance RMSE"] == abundance_rmse(A, fractions, order).overall
    assert done.measures[0]["abundance RMSE"] < 0.2


def test_abundances_are_those_of_the_pairs_by_spectra(done, scene):
    upside_down = scene.truths[0]._replace(A=scene.A[0][::-1])
    run = replace(done, truth={1: upside_down})
    assert run.abundances[1].order.tolist() == run.scores[1].order.tolist()
    assert run.abundances[1].overall > 1.5 * done.abundances[1].overall


def test_signed_layers_have_no_abundances(done, scene):
    signed = replace(done.f, W=[-done.f.W[0], *done.f.W[1:]])
    run = Run("signed", signed, truth={1: scene.truths[0]})
    assert set(run.measures[0]) == {"MRSA", "SAD"}


def test_files_have_every_measure_and_give_it_back(done, tmp_path):
    run = replace(done, measured=[{"NMI": 0.5}, {"NMI": 0.25, "purity": 1.0}, {}])
    save_run(tmp_path, run)
    lines = rows_of(tmp_path / "measures.csv")
    assert [line["NMI"] for line in lines] == ["0.5", "0.25", ""]
    assert [line["components"] for line in lines] == ["6", "4", "2"]
    assert float(lines[1]["SAD"]) == pytest.approx(run.measures[1]["SAD"])
    pairs = rows_of(tmp_path / "truth-layer-1.csv")
    assert [pair["truth"] for pair in pairs] == list(run.truth[1].names)
    assert pairs[2]["component"] == run.names[0][run.scores[1].order[2]]
    errors = [float(pair["abundance RMSE"]) for pair in pairs]
    np.testing.assert_allclose(errors, run.abundances[1].components)
    np.testing.assert_allclose([float(p["SAD"]) for p in pairs], run.angles[1])
    back = load_run(tmp_path)
    assert back.measures == run.measures
    assert back.measured == run.measured
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["layers"][1]["measures"] == run.measures[1]


def test_runs_of_before_there_were_measures_are_read(done, tmp_path):
    save_run(tmp_path, done)
    summary = json.loads((tmp_path / "summary.json").read_text())
    for layer in summary["layers"]:
        del layer["measures"]
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    assert load_run(tmp_path).measures == done.measures


@pytest.mark.parametrize("change", [lambda A: A[:, 1:], lambda A: -A, lambda A: A * np.nan])
def test_abundances_that_do_not_fit_are_refused(done, tmp_path, change):
    save_run(tmp_path, done)
    with np.load(tmp_path / "truth.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "truth.npz", **{**arrays, "A2": change(arrays["A2"])})
    with pytest.raises(ValueError, match="not a whole run"):
        load_run(tmp_path)


def test_comparisons_and_pages_show_them(done):
    run = replace(done, measured=[{"NMI": 0.5}, {}, {}])
    measures = Entry("a", run, 1.0, None).measures()
    assert measures["NMI 1"] == 0.5
    assert measures["abundance RMSE 2"] == run.measures[1]["abundance RMSE"]
    assert "NMI 2" not in measures
    content = report_content([run, done], ["a", "b"])
    own = content["runs"][0]
    assert own["measures"]["columns"] == ["", "MRSA", "SAD", "abundance RMSE", "NMI"]
    assert [row[-1] for row in own["measures"]["rows"]] == [0.5, None, None]
    assert all(own["measures"]["about"][1:])
    truth = own["layers"][0]["truth"]
    np.testing.assert_allclose(truth["rmse"], run.abundances[1].components, rtol=1e-4)
    np.testing.assert_allclose(truth["angles"], run.angles[1], rtol=1e-4)
    ranking = content["ranking"]
    at = ranking["columns"].index("layer 1: NMI")
    assert [row[at] for row in ranking["rows"]] == [0.5, None]
    assert ranking["about"][at][0] == "NMI"
    bare = report_content([replace(done, truth={})], ["a"])["runs"][0]
    assert bare["measures"]["rows"] == []


@pytest.mark.parametrize(("layout", "by"), [(None, "argmax"), ((8, 5), "kmeans")])
def test_against_classes(layout, by):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 6, 90)
    labels = groups % 2
    X = rng.random((40, 6))[:, groups] ** 4 * rng.uniform(0.5, 2, 90) + 0.2 * rng.random((40, 90))
    f = factorize(X, [6, 3], max_iter=5, tol=0)
    shape = Layout() if layout is None else Layout(image_shape=layout, pixels="rows")
    f = replace(f, layout=shape)
    data = Dataset("data", X, shape, labels=labels.astype(str))
    for layer, found in enumerate(layer_measures(f, data), start=1):
        scores = cluster_scores(f.codes(layer), labels, by)
        assert [found[name] for name in ("NMI", "ARI", "ACC", "purity")] == list(scores)
    siblings = hierarchy_agreement(f.links(2), f.codes(1), labels)
    assert (found["sibling agreement"], found["agreement by chance"]) == siblings
    assert 0 < siblings.chance < 1
    lost = replace(f, H=[f.H[0] * np.nan, f.H[1]])
    assert layer_measures(lost, data) == [{}, {}]


def test_topics_of_sparse_data_with_names():
    X = sparse.random(40, 50, 0.2, format="csc", random_state=0)
    f = factorize(X, [4], max_iter=5, tol=0)
    words = Layout(features=np.array([f"w{k}" for k in range(40)]))
    (found,) = layer_measures(f, Dataset("text", X, words))
    assert found["NPMI"] == npmi_coherence(f.W[0], X).mean
    assert found["topic diversity"] == topic_diversity(f.W[0])
    assert layer_measures(f, Dataset("text", X)) == [{}]
    assert layer_measures(f, Dataset("text", X.toarray(), words)) == [{}]


def test_a_truth_belongs_to_one_layer(done, scene):
    assert sorted(done.truth) == [1, 2, 3]
    assert isinstance(done.truth[2], Truth)
    np.testing.assert_array_equal(done.truth[2].A, scene.A[1])
