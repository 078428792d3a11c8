"""From runs to the page's data: what is shown is what was fitted."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from deepmf import factorize
from deepmf.data.layout import Layout
from deepmf.fitting.history import History
from deepmf.report import Ranking
from deepmf.report.content import Detail, _visible, report_content
from deepmf.report.numbers import (
    NO_DATA,
    bins,
    block_mean,
    composite,
    extremes,
    quantized,
    rounded,
    thinned,
)
from deepmf.runs.run import Run
from deepmf.unmixing import mixture


def fitted(X, ranks, layout):
    f = factorize(X, ranks, max_iter=5, tol=0, random_state=0)
    return Run("bands", replace(f, layout=layout))


def content_of(*runs, labels=None, **options):
    names = labels or [f"run {k}" for k in range(len(runs))]
    content = report_content(runs, names, **options)
    json.dumps(content, allow_nan=False)  # plain data, or this raises
    return content


def values(quantized_map, shape):
    codes = np.frombuffer(b64decode(quantized_map["codes"]), dtype=np.uint8).reshape(shape)
    step = (quantized_map["hi"] - quantized_map["lo"]) / 254
    return np.where(codes == NO_DATA, np.nan, quantized_map["lo"] + codes * step), step


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e7])
def test_quantized_values_are_within_half_a_step(scale):
    picture = scale * np.random.default_rng(0).normal(size=(9, 7))
    picture[2, 3] = np.nan
    back, step = values(quantized(picture), picture.shape)
    assert np.isnan(back[2, 3])
    assert np.isnan(back).sum() == 1
    assert np.nanmax(np.abs(back - picture)) <= step / 2 * (1 + 1e-9)


def test_constant_and_empty_pictures():
    back, _ = values(quantized(np.full((3, 4), 2.5)), (3, 4))
    assert (back == 2.5).all()
    back, _ = values(quantized(np.full((3, 4), np.nan)), (3, 4))
    assert np.isnan(back).all()


def test_block_means_skip_what_has_no_data():
    picture = np.arange(15.0).reshape(3, 5)
    picture[0, 0] = np.nan
    picture[2, 4] = np.nan
    small = block_mean(picture, 2)
    assert small.shape == (2, 3)
    assert small[0, 0] == pytest.approx(np.mean([1, 5, 6]))
    assert small[1, 1] == pytest.approx(np.mean([12, 13]))
    assert np.isnan(small[1, 2])


def test_rounding_and_thinning():
    assert rounded([1.234567, np.nan, np.inf, 0]) == [1.2346, None, None, 0]
    kept = thinned(10_000, 500)
    assert len(kept) <= 500
    assert kept[0] == 0
    assert kept[-1] == 9999
    assert thinned(1, 500).tolist() == [0]


def test_binned_curves_keep_their_peaks():
    curve = np.random.default_rng(0).random(5000)
    curve[1234] = 99
    parts = bins([slice(0, 2000), slice(2000, 5000)], 300)
    assert len(parts) <= 300
    assert any(p.start == 2000 for p in parts)  # no bin spans the gap
    short = extremes(curve, parts)
    assert short.max() == 99
    assert short.min() == curve.min()


def test_composite_is_brightest_where_the_data_are():
    dark, bright = np.zeros((2, 2)), np.array([[0.0, 1.0], [np.nan, 1.0]])
    rgb = np.frombuffer(b64decode(composite(bright, dark, dark)), dtype=np.uint8).reshape(2, 2, 3)
    assert rgb[..., 0].tolist() == [[0, 255], [0, 255]]
    assert (rgb[..., 1:] == 0).all()


# --- content ------------------------------------------------------------------------------------


def test_a_scene(scene):
    run = scene()
    content = content_of(run)
    assert content["kind"] == "scene"
    assert content["ranking"] is None
    shown = content["runs"][0]
    for k, layer in enumerate(shown["layers"], start=1):
        assert layer["names"] == run.names[k - 1]
        assert layer["fractions"]
        mixed = mixture(run.f.basis(k), run.f.codes(k))
        assert sorted(layer["order"]) == list(range(run.f.ranks[k - 1]))
        for part, picture in zip(mixed.fractions, layer["maps"]):
            back, step = values(picture, (32, 40))
            assert np.abs(back - part.reshape(32, 40)).max() <= step / 2 * (1 + 1e-9)
        assert np.allclose(layer["curves"], mixed.spectra.T, rtol=1e-4)
        if k > 1:
            assert np.abs(np.array(layer["links"]) - run.f.links(k)).max() <= 0.5e-4
        score = run.scores[k]
        assert layer["truth"]["order"] == score.order.tolist()
        assert layer["truth"]["mean"] == pytest.approx(score.mean, rel=1e-4)
        assert np.abs(layer["truth"]["curves"]).mean(axis=1) == pytest.approx(1, rel=1e-3)
    assert shown["history"]["data"][0][-1] == pytest.approx(
        np.sqrt(run.f.history.data_errors[-1, 0]), rel=1e-4
    )
    assert shown["color"]["bands"].endswith("nm")
    assert "6 > 4 > 2 components by the layer-centric model; 5 sweeps" in shown["summary"]


def test_gaps_of_bad_bands_and_pixels_without_data(scene):
    bands = np.r_[1:11, 15:25, 40:50]
    valid = np.ones((32, 41), dtype=bool)
    valid[:, 7] = False
    layout = Layout(
        wavelengths=400.0 + bands, bands=bands, image_shape=(32, 41), order="F", valid=valid
    )
    content = content_of(scene(layout=layout))
    assert content["axis"]["pieces"] == [[0, 10], [10, 20], [20, 30]]
    assert content["axis"]["x"] == (400.0 + bands).tolist()
    back, _ = values(content["runs"][0]["layers"][0]["maps"][0], (32, 41))
    assert np.isnan(back[:, 7]).all()
    assert np.isnan(back).sum() == 32


def test_halved_maps_keep_the_gaps_of_long_curves(scene):
    bands = np.r_[1:11, 15:35]
    layout = replace(scene.data.layout, bands=bands)
    content = content_of(scene(layout=layout), detail=Detail(block=2, points=12))
    assert content["picture"]["rows"] == 16
    assert content["picture"]["block"] == 2
    assert content["axis"]["binned"] > 1
    (a, b), (c, d) = content["axis"]["pieces"]
    assert (a, b, d) == (0, c, len(content["axis"]["x"]))
    assert max(content["axis"]["x"][:b]) < min(content["axis"]["x"][c:])


def test_a_table_of_words(table):
    words = np.array([f"word{i}" for i in range(30)])
    docs = np.array([f"doc{i}" for i in range(60)])
    run = table(features=words, samples=docs)
    layer = content_of(run)["runs"][0]["layers"][0]
    top = layer["top"][2]
    w = run.f.W[0][:, 2]
    assert len(top) == 15
    assert top[0][0] == words[np.argmax(w)]
    assert top[0][1] == pytest.approx(w.max(), rel=1e-4)
    assert layer["samples"][2][0][0] == docs[np.argmax(run.f.H[0][2])]


def test_a_plain_matrix_is_bars_or_a_curve(table):
    few = content_of(table(m=12))
    assert few["show"] == "bars"
    assert few["runs"][0]["layers"][0]["top"][0][0][0].startswith("row ")
    many = content_of(table(m=41))
    assert many["show"] == "curves"
    assert many["axis"]["label"] == "row"
    assert many["axis"]["x"] == list(range(1, 42))


def test_pictures(pictures):
    content = content_of(pictures)
    back, step = values(content["runs"][0]["layers"][0]["maps"][4], (8, 6))
    wanted = pictures.f.W[0][:, 4].reshape(6, 8).T  # order F
    assert np.abs(back - wanted).max() <= step / 2 * (1 + 1e-9)
    assert content["runs"][0]["residual"] is None  # samples are no pixels


def test_bands_by_name(scene):
    names = np.array([f"B{k:02d}" for k in range(1, 13)])
    X = scene.data.X[:12]
    layout = Layout(image_shape=(32, 40), features=names)
    content = content_of(fitted(X, [4, 2], layout))
    assert content["axis"]["ticks"] == names.tolist()
    assert content["axis"]["label"] == "band"
    assert content["runs"][0]["color"]["bands"] == "B04, B03, B02"


@pytest.mark.parametrize(
    ("names", "bands"),
    [
        (["blue", "green", "red", "red edge 1", "nir"], [2, 1, 0]),
        (["red edge", "Blue", "GREEN", "sr_red", "near infrared"], [3, 2, 1]),
        (["S2_B02", "S2_B03", "S2_B04", "B08", "B8A"], [2, 1, 0]),
        (["B2", "B3", "B4", "B5", "B6"], None),  # Landsat's numbers differ from one to the next
        (["blue", "green", "infrared", "rededge", "red-edge"], None),
    ],
)
def test_colors_by_name(names, bands):
    found = _visible(Layout(image_shape=(2, 2), features=np.array(names)))
    assert (None if found is None else found[0]) == bands


def test_far_components_bear_a_question_mark(scene):
    run = scene()
    W = [run.f.W[0].copy(), *run.f.W[1:]]
    order = run.scores[1].order
    W[0][:, order[4]] = np.random.default_rng(0).random(30)
    lost = replace(run, f=replace(run.f, W=W))
    score = lost.scores[1]
    for name, k, distance in zip(lost.truth[1].names, score.order, score.distances):
        assert lost.names[0][k] == f"L1-{k + 1} {name}" + ("?" if distance > 15 else "")
        assert lost.titles(1)[k].endswith(f"MRSA {distance:.1f}")
    assert any(name.endswith("?") for name in lost.names[0])


def test_errors_that_diverged_are_words(scene):
    run = scene()
    columns = {name: a.copy() for name, a in run.f.history.to_dict().items()}
    columns["data_errors"][:, 1] = 2e8
    lost = replace(run, f=replace(run.f, history=History(**columns)))
    content = content_of(run, lost)
    assert "diverged" in content["ranking"]["rows"][1]
    assert content["runs"][1]["tiles"][1] == {
        "what": "relative error, layer 2",
        "value": "diverged",
        "unit": "",
    }
    assert set(content["runs"][1]["history"]["data"][1]) == {None}


def test_little_is_known(scene):
    run = scene(ranks=(1,), truth=False, residual=False, sweeps=1)
    first = History(**{name: column[:1] for name, column in run.f.history.to_dict().items()})
    bare = replace(run, f=replace(run.f, history=first), config="", facts={})
    shown = content_of(bare)["runs"][0]
    assert shown["residual"] is None
    assert shown["layers"][0]["truth"] is None
    assert shown["layers"][0]["links"] == []
    assert shown["history"]["sweep"] == [0]
    assert "into 1 component by" in shown["summary"]


def test_factors_that_are_not_finite(scene):
    run = scene()
    W = [W.copy() for W in run.f.W]
    W[1][0, 0] = np.nan
    H = [H.copy() for H in run.f.H]
    H[0][2, 5] = H[2][0, 0] = np.nan
    bad = replace(run, f=replace(run.f, W=W, H=H))
    content = content_of(run, bad)
    assert content["runs"][1]["layers"][1]["truth"] is None
    assert content["runs"][1]["layers"][1]["curves"][0][0] is None
    assert content["side"][1]["rows"][1] == [0, 1, 2, 3]
    back, _ = values(content["runs"][1]["layers"][0]["maps"][2], (32, 40))
    assert np.isnan(back[0, 5])


def test_a_history_is_thinned(scene):
    run = scene(sweeps=1)
    long = History(*(np.repeat(a[:1], 5000, axis=0) for a in run.f.history.to_dict().values()))
    history = content_of(replace(run, f=replace(run.f, history=long)))["runs"][0]["history"]
    assert len(history["sweep"]) <= 500
    assert history["sweep"][-1] == 4999
    assert len(history["data"][2]) == len(history["sweep"])


def test_names_of_any_length(table):
    run = table(features=np.array(["x" * 5000] * 30))
    top = content_of(run)["runs"][0]["layers"][0]["top"]
    assert max(len(name) for component in top for name, _ in component) <= 200


# --- several runs -------------------------------------------------------------------------------


def test_components_that_match_stand_in_one_column(scene):
    run = scene()
    turn = np.array([3, 1, 5, 0, 2, 4])
    other = replace(run, f=replace(run.f, W=[run.f.W[0][:, turn], *run.f.W[1:]]))
    side = content_of(run, other)["side"]
    assert side[0]["names"] == scene.data.names[0]
    assert turn[side[0]["rows"][1]].tolist() == side[0]["rows"][0]


@pytest.mark.parametrize("ranks", [(4, 2), (6, 2)])
def test_runs_of_different_ranks_side_by_side(scene, ranks):
    side = content_of(scene((5, 2), truth=False), scene(ranks, truth=False))["side"]
    assert side[0]["rows"][0] == [0, 1, 2, 3, 4]
    found = side[0]["rows"][1]
    assert sorted(k for k in found if k is not None) == list(range(ranks[0]))
    assert found.count(None) == max(0, 5 - ranks[0])


def test_a_ranking_is_given_or_made(scene):
    runs = [scene(), scene((6, 4), truth=False)]
    made = content_of(*runs, labels=["deep", "flat"])["ranking"]
    assert [row[0] for row in made["rows"]] == ["deep", "flat"]
    assert made["rows"][1][3] is None  # no third layer
    assert made["about"][0] is None
    assert made["about"][1][0] == "error"
    given = Ranking(["run", "score"], [["flat", 1.0], ["deep", np.nan]])
    shown = content_of(*runs, labels=["deep", "flat"], ranking=given)["ranking"]
    assert shown == {
        "columns": ["run", "score"],
        "rows": [["flat", 1.0], ["deep", None]],
        "about": [None, None],
    }


def counted_run(**settings):
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.3, 1, (15, 4)) @ rng.gamma(0.5, 8, (4, 60))).astype(float)
    return Run("counts", factorize(X, [4, 2], max_iter=5, tol=0, random_state=0, **settings))


def test_a_divergence_is_shown_by_what_it_explains():
    run = counted_run(beta_loss="kullback-leibler")
    content = content_of(run)
    (shown,) = content["runs"]
    assert content["deviance"]
    assert "the Kullback-Leibler divergence" in shown["summary"]
    assert shown["tiles"][0]["what"] == "deviance explained, layer 1"
    assert float(shown["tiles"][0]["value"]) == pytest.approx(100 * run.f.explained(1), rel=1e-2)
    left = run.f.history.data_errors
    assert shown["history"]["data"][0] == pytest.approx(left[:, 0].tolist(), rel=1e-4)
    assert shown["history"]["data"][1][1:-1] == [None] * (len(left) - 2)
    assert shown["history"]["data"][1][-1] == pytest.approx(left[-1, 1], rel=1e-4)


@pytest.mark.filterwarnings("ignore:X looks like raw counts")
def test_tables_say_what_squared_errors_explain():
    run = counted_run()
    (shown,) = content_of(run)["runs"]
    assert shown["tiles"][0]["what"] == "explained, layer 1"
    assert float(shown["tiles"][0]["value"]) == pytest.approx(100 * run.f.explained(1), rel=1e-2)
    assert "divergence" not in shown["summary"]


@pytest.mark.filterwarnings("ignore:X looks like raw counts")
def test_runs_by_different_distances_show_shares():
    runs = counted_run(), counted_run(beta_loss=["kullback-leibler", 1.5])
    content = content_of(*runs)
    squared, other = content["runs"]
    assert content["deviance"]
    assert [squared["deviance"], other["deviance"]] == [False, True]
    last = runs[0].f.history.data_errors[-1, 0]
    assert squared["history"]["data"][0][-1] == pytest.approx(last, rel=1e-4)
    assert "layer 1: explained (%)" in content["ranking"]["columns"]
    assert "then the beta divergence 1.5" in other["summary"]
