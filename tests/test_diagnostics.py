"""Defaults that a layer's scale needs, and what is said where a layer went wrong."""

from __future__ import annotations

import os
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from deepmf import (
    L1,
    Checkpoint,
    Factorization,
    Fixed,
    GroupedSparse,
    LayerCentric,
    MinVolume,
    Nonnegative,
    Simplex,
    factorize,
)
from deepmf._utils.messages import Message
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.datasets import simulated_scene
from deepmf.fitting.diagnostics import Finding, FindingsWarning, warn_of_findings
from deepmf.fitting.diagnostics.components import pairs_of_copies
from deepmf.fitting.diagnostics.layers import _remedy, unexplained
from deepmf.fitting.diagnostics.scaling import logarithms, look_like_counts
from deepmf.fitting.diagnostics.starts import unstable
from deepmf.fitting.problem import build_problem
from deepmf.fitting.records import Alone, Rival

FREE, SCALED = Nonnegative(), Simplex()
SIMULATED = simulated_scene(rows=32, cols=32, bands=60)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [SCALED, SCALED]),
        ({"model": "multilayer"}, [SCALED, SCALED]),
        ({"model": "data-centric"}, [FREE, FREE]),
        ({"ranks": [4]}, [FREE]),
        ({"constraint_W": "nonnegative"}, [FREE, FREE]),
        ({"constraint_W": [GroupedSparse(0.3), None]}, [GroupedSparse(0.3), SCALED]),
        ({"constraint_H": ["simplex", None]}, [FREE, SCALED]),
        ({"regularizer_W": [L1(0.1), None]}, [FREE, SCALED]),
        ({"regularizer_H": L1(0.1)}, [SCALED, SCALED]),
        ({"regularizer_W": MinVolume(1), "model": "data-centric"}, [SCALED, SCALED]),
        ({"solver": "hals"}, [FREE, FREE]),
    ],
    ids=str,
)
def test_the_set_of_a_basis_that_none_was_named_for(settings, expected):
    problem = build_problem(**{"ranks": [4, 2], **settings})
    assert [layer.constraint_W for layer in problem.layers] == expected


def families(seed=0, noise=0.5):
    """Six components in two families, with noise."""
    rng = np.random.default_rng(seed)
    family = rng.gamma(0.3, size=(60, 2))
    W = np.repeat(family, 3, axis=1) + 0.7 * rng.gamma(0.2, size=(60, 6))
    X = W @ rng.dirichlet([0.3] * 6, 300).T
    return np.maximum(X + noise * X.std() * rng.standard_normal(X.shape), 0)


def test_a_first_layer_that_became_a_copy():
    with pytest.warns(
        UserWarning, match=r"copy.*model=\{'name': 'layer-centric', 'lam': 0.1\}, or"
    ):
        factorize(families(), [6, 2], model=LayerCentric(100))


def test_a_layer_that_lost_the_data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 6)) @ rng.standard_normal((6, 200))
    with pytest.warns(UserWarning, match=r"Layer 2 leaves .* model='data-centric'"):
        factorize(X, [5, 2], constraint_W="none", random_state=0)


@pytest.mark.parametrize(
    ("X", "settings"),
    [
        (families(), {}),
        (families(), {"model": "data-centric"}),
        (families(noise=0), {}),
        (simulated_scene(rows=32, cols=32).X, {"ranks": [6, 4, 2], "init": "snpa"}),
        (families(), {"model": LayerCentric(100), "tol": 0, "max_iter": 20}),
    ],
    ids=["noisy", "data-centric", "exact", "scene", "not converged"],
)
def test_nothing_is_said_of_a_good_or_unfinished_fit(X, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        factorize(X, **{"ranks": [6, 2], "tol": 1e-4, **settings})


def test_held_components_keep_their_scale():
    X = families()
    problem = build_problem([6, 2], constraint_W=[Fixed(X[:, :1]), None])
    assert problem.layers[0].constraint_W.inner == FREE


# --- findings ------------------------------------------------------------------------------------

needs_data = pytest.mark.skipif("DEEPMF_DATA" not in os.environ, reason="DEEPMF_DATA is not set")


def kinds(X, ranks, **settings):
    """The kinds and layers of the findings of a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(f.kind, f.layer) for f in factorize(X, ranks, **settings).findings]


def counts(seed=0, genes=400, cells=50):
    """Overdispersed counts of cells of very different depths."""
    rng = np.random.default_rng(seed)
    return rng.poisson(np.outer(rng.gamma(0.1, 8, genes), rng.gamma(3, 1, cells))).astype(float)


def test_a_layer_between_two_others_that_became_a_copy():
    X, model = families(), LayerCentric([0.1, 100])
    assert ("copy", 2) in kinds(X, [6, 4, 2], model=model)
    assert ("copy", 2) not in kinds(X, [6, 4, 2])


def test_a_first_layer_that_lost_a_part_of_the_data():
    found = [kinds(families(noise=0.2), [6, 2], model=LayerCentric(lam)) for lam in (0.3, 30, 100)]
    assert not found[0]
    assert [kind[0] for kind in found[1:]] == [("lost", 1), ("copy", 1)]


@pytest.mark.parametrize(("lam", "less"), [(100, 0.1), (0.2, 0.07), (0.03, 0.01)])
def test_the_weight_to_try_is_smaller_than_the_given_one(lam, less):
    said = _remedy(build_problem([6, 2], model=LayerCentric(lam)))
    assert f"{{'name': 'layer-centric', 'lam': {less}}}" in Message(said)


def test_a_layer_can_be_no_copy_of_one_as_wide():
    X = np.random.default_rng(0).random((20, 60))
    found = kinds(X, [4, 4, 4], recipe="cells", random_state=0)
    assert not {"lost", "copy"} & {kind for kind, _ in found}


def test_copies_among_components():
    X, rng = families(), np.random.default_rng(1)
    W = rng.gamma(0.3, size=(60, 3))
    twice = W[:, [0, 1, 2, 0]], 0.5 + rng.random((3, 300))[[0, 1, 2, 0]]
    assert kinds(X, [4], init=([twice[0]], [twice[1]])) == [("near-copies", 1)]
    with pytest.warns(FindingsWarning, match=r"Components 1 and 4 of layer 1 are near-copies.*"):
        factorize(X, [4], init=([twice[0]], [twice[1]]))


def spectra(r):
    """Bumps on a common background: cosines near 1, other shapes."""
    x, at = np.linspace(0, 1, 80)[:, None], np.linspace(0.2, 0.8, r)
    return 2 + x + np.exp(-(((x - at) / 0.1) ** 2))


@pytest.mark.parametrize("r", [2, 3, 6])
@pytest.mark.parametrize("kind", ["spectra", "sparse"])
def test_pairs_of_copies(kind, r):
    rng = np.random.default_rng(r)
    W = spectra(r) if kind == "spectra" else rng.gamma(0.02, size=(2000, r))
    W = W / np.linalg.norm(W, axis=0)
    assert (W[:, 0] @ W[:, -1] > 0.97) == (kind == "spectra")
    assert pairs_of_copies(W) == []
    copy = 3 * W[:, :1] + 0.01 * W[:, 1:2]
    assert pairs_of_copies(np.hstack([W, copy])) == [(0, r)]


def test_near_copies_do_not_depend_on_scale():
    W = np.random.default_rng(0).gamma(0.02, size=(2000, 5))
    W[:, 4] = 0.97 * W[:, 1] / np.linalg.norm(W[:, 1]) + 0.2 * W[:, 2] / np.linalg.norm(W[:, 2])
    for scales in (np.ones(5), [1e-6, 1, 1e6, 3, 1e-3]):
        assert pairs_of_copies(W * scales) == [(1, 4)]


def test_an_empty_component():
    X, rng = families(), np.random.default_rng(1)
    W, H = rng.gamma(0.3, size=(60, 4)), rng.random((4, 300))
    W[:, 2], H[2] = 0, 0
    assert kinds(X, [4], init=([W], [H])) == [("unused", 1)]
    f = factorize_quietly(X, [4], init=([W], [H]))
    assert "L1-3 carry nearly nothing" in f.findings[0].sentence


def factorize_quietly(*arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return factorize(*arguments, **settings)


@pytest.mark.parametrize("leads", [True, False])
def test_a_small_component_is_fine_where_it_leads(leads):
    rng = np.random.default_rng(0)
    W, H = np.kron(np.eye(4), np.ones((5, 1))), rng.random((4, 2000)) + 0.5
    H[3] = 0
    H[3, :20] = 0.1
    if leads:
        H[:3, :20] = 0
    X = W @ H + 1e-3 * rng.random((20, 2000))
    assert kinds(X, [4], init=([W], [H])) == ([] if leads else [("unused", 1)])


def test_depth_that_only_fits_noise():
    rng = np.random.default_rng(0)
    two = rng.gamma(0.5, size=(60, 2)) @ rng.dirichlet([0.5, 0.5], 300).T
    noisy = np.maximum(two + 0.5 * rng.standard_normal(two.shape), 0)
    assert ("depth", 1) in kinds(noisy, [4, 2])
    assert ("depth", 1) not in kinds(families(), [4, 2])


def test_starts_that_disagree():
    """Three components for four equal groups: any of these may be left out."""
    groups = np.kron(np.eye(4), np.ones((5, 1)))
    rng = np.random.default_rng(0)
    X = groups @ np.kron(np.eye(4), rng.random((1, 50)) + 0.5)

    def first(panels, rank, rng):
        return groups[:, :3]

    def last(panels, rank, rng):
        return groups[:, [3, 2, 1]]

    def first_again(panels, rank, rng):
        return groups[:, [2, 0, 1]] + 0.01

    assert kinds(X, [3], init=[first, first_again]) == []
    assert kinds(X, [3], init=[first, last]) == [("unstable", 1)]


def test_raw_counts():
    X = counts()
    assert kinds(X, [3, 2])[0] == ("scale", None)
    with pytest.warns(UserWarning, match=r"raw counts.*scale='log' for cells, scale='tfidf'"):
        factorize(X, [3], max_iter=2, tol=0)
    assert not any(kind == "scale" for kind, _ in kinds(np.log1p(X), [3, 2]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_number_of_logarithms(dtype):
    X = counts()
    once = np.log1p(X / X.sum(axis=0) * 1e4)
    again = np.log1p(once / once.sum(axis=0) * np.median(once.sum(axis=0)))
    for number, Y in enumerate([X, once, np.log1p(once)]):
        assert {logarithms(y[y > 0].astype(dtype)) for y in Y.T} == {number}
    assert {logarithms(y[y > 0].astype(dtype)) for y in again.T} == {2}
    assert kinds(again.astype(dtype), [3])[0] == ("scale", None)


def test_other_data_are_not_taken_for_counts():
    rng = np.random.default_rng(0)
    pictures = load_digits().data.T
    dark = np.round(255 * rng.random((64, 40)))
    for X in (pictures, dark, np.round(1e4 * simulated_scene(rows=32, cols=32).X[:, :40])):
        values = X[X > 0]
        assert not look_like_counts(values)
        assert {logarithms(x[x > 0]) for x in X.T} <= {0, None}
    assert {logarithms(x) for x in rng.random((200, 40)).T} == {None}
    assert not look_like_counts(rng.integers(1, 6, 1000).astype(float))


def test_findings_are_saved(tmp_path):
    f = factorize_quietly(counts(), [3, 2], max_iter=2, tol=0)
    (found,) = Factorization.load(f.save(tmp_path / "f")).findings
    assert found == f.findings[0]
    assert found.sentence.marked == f.findings[0].sentence.marked != found.sentence


def test_a_checkpoint_remembers_the_fits_alone(tmp_path):
    X, settings = families(), {"ranks": [6, 2], "model": LayerCentric(100)}
    file = Checkpoint(tmp_path / "c", interval=0)
    whole = factorize_quietly(X, **settings)
    cut = factorize_quietly(
        X, **settings, checkpoint=file, callbacks=lambda p: p.layer is None and p.sweep == 3
    )
    assert cut.findings == []
    resumed = factorize_quietly(X, **settings, checkpoint=file)
    assert resumed.findings == whole.findings != []


def test_the_most_important_findings_make_one_warning():
    found = [Finding.of("unused", k, f"Sentence {k}.") for k in range(1, 6)]
    with pytest.warns(FindingsWarning, match=r"^Sentence 1\. Sentence 2\. Sentence 3\.$"):
        warn_of_findings(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_findings([])


SCENE = {"regularizer_W": "min-volume", "init": ["hierarchical", "snpa"], "allow_negative": True}


@needs_data
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("Samson (3)", {}),
        ("Samson (3)", SCENE),
        ("Jasper (4)", {}),
        ("Jasper (4)", SCENE),
        ("Urban 77x77 (6,4,2)", {"model": "data-centric"}),
        ("Urban 77x77 (6,4,2)", SCENE),
        ("pbmc (15,5)", {"model": "data-centric"}),
        ("pbmc (15,5)", {"model": "data-centric", "hierarchy": "codes"}),
        ("20 newsgroups (20,7)", {"model": "data-centric"}),
    ],
    ids=str,
)
def test_good_fits_of_real_data_have_no_findings(name, settings):
    data = pytest.importorskip("benchmarks.answers.sets").SETS[name](0)
    f = factorize(data.X, data.ranks, random_state=0, **settings)
    assert f.findings == []
    for k in range(1, f.depth + 1):
        W = np.asarray(f.basis(k))
        copy = W[:, 0] + 0.02 * np.linalg.norm(W[:, 0]) / np.linalg.norm(W[:, 1]) * W[:, 1]
        assert (0, W.shape[1]) in pairs_of_copies(np.column_stack([W, copy]))


def spoiled(entry=0.0, factor=1.0):
    """A scene with a pixel that is broken."""
    X = SIMULATED.X.copy()
    X[7, 5] += entry
    X[:, 5] *= factor
    return Dataset("scene", X, Layout(image_shape=(32, 32), order="F"))


def of_outliers(data, **settings):
    settings = {"recipe": "scene", "allow_negative": True, "random_state": 0, **settings}
    f = factorize_quietly(data, [6, 3], **settings)
    return [finding for finding in f.findings if finding.kind == "outlier"]


@pytest.mark.parametrize("recipe", ["scene", None])
def test_a_pixel_that_a_component_is_there_for(recipe):
    assert of_outliers(spoiled(), recipe=recipe) == []
    (entry,) = of_outliers(spoiled(entry=10), recipe=recipe)
    assert "of layer 1 is there for the pixel in row 5, column 0 alone" in str(entry)
    assert "whose entry of feature 7 is larger" in str(entry)
    assert "weights='observed'" in str(entry)
    (pixel,) = of_outliers(spoiled(factor=1e4), recipe=recipe)
    assert "there for the pixel in row 5, column 0 alone, which is unlike" in str(pixel)
    assert entry.layer is None


@pytest.mark.parametrize("kind", [sparse.csc_array, np.asfortranarray])
@pytest.mark.parametrize("hierarchy", ["components", "codes"])
def test_an_outlier_among_samples_of_any_kind(kind, hierarchy):
    X = np.maximum(spoiled(entry=10).X, 0)
    (found,) = of_outliers(kind(X), hierarchy=hierarchy, panel_size=100)
    assert "sample 5 alone" in str(found)


def test_an_entry_that_is_left_out_is_no_outlier():
    X = spoiled().X
    X[7, 5] = np.nan
    assert of_outliers(X, weights="observed") == []


def test_a_feature_with_nearly_all_of_the_squares():
    X = SIMULATED.X.copy()
    X[7] *= 1e3
    (found,) = of_outliers(X, recipe=None)
    assert "Nearly all of the data's squares are in feature 7" in str(found)


def test_a_component_of_few_samples_among_few_is_no_outlier():
    rng = np.random.default_rng(0)
    assert of_outliers(np.eye(12) + 0.01 * rng.random((12, 12)), recipe=None) == []


@needs_data
@pytest.mark.parametrize(
    "name",
    [
        "digits (20,10)",
        "Samson (3)",
        "Jasper (6,4)",
        "Urban 77x77 (6,4,2)",
        "pbmc (15,5)",
        "20 newsgroups (20,7)",
        "tdt2 (60,30)",
        "coil20 (60,20)",
        "orl (80,40)",
    ],
)
def test_real_data_have_no_outliers(name):
    data = pytest.importorskip("benchmarks.answers.sets").SETS[name](0)
    settings = {"recipe": data.recipe, "max_iter": 30, "random_state": 0}
    f = factorize_quietly(data.X, data.ranks[0], **settings)
    assert [finding for finding in f.findings if finding.kind == "outlier"] == []


def test_names_of_samples_and_features():
    valid = np.array([[True, False, True], [True, True, False]])
    for order, place in (("C", "row 1, column 0"), ("F", "row 1, column 1")):
        layout = Layout(image_shape=(2, 3), order=order, valid=valid)
        assert layout.sample_name(2) == f"the pixel in {place}"
        where = layout.image([0, 0, 1, 0])
        assert place == "row {}, column {}".format(*np.argwhere(where == 1)[0])
    assert Layout().sample_name(3) == "sample 3"
    assert Layout(samples=np.array(["a", "b"])).sample_name(1) == "sample 'b'"
    assert Layout().feature_name(3) == "feature 3"
    assert Layout(features=np.array(["a", "b"])).feature_name(1) == "feature 'b'"
    assert Layout(wavelengths=np.array([400.0, 512.5])).feature_name(1) == "the band at 512.5 nm"
    kept = np.array([False, True, False, True])
    assert Layout().of_features(kept).feature_name(1) == "feature 3"


def test_findings_name_the_start_and_the_codes():
    done = SimpleNamespace(
        history=SimpleNamespace(data_errors=np.array([[0.1, 0.9]])),
        state=SimpleNamespace(over_codes=True),
    )
    (finding,) = unexplained(done, build_problem([2, 1]))
    assert "it fits H_1, but what is small in H_1" in str(finding)
    assert "0.9 of the data's squares" in str(finding)
    (finding,) = unexplained(done, build_problem([2, 1], beta_loss=1))
    assert "0.9 of the data's deviance" in str(finding)
    assert not list(unexplained(done, build_problem([2, 1], beta_loss=[1, 2])))
    rival = Rival(1, 0.001, np.eye(4)[:, ::2])
    done = SimpleNamespace(alone=[Alone(0.1, np.eye(4)[:, 1::2], [rival])])
    (finding,) = unstable(done, ["snpa", "k-means"])
    assert "Start 2 of init, k-means, gave layer 1 other components" in str(finding)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_divergences_are_not_judged_by_squares():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.3, 1, (30, 1)) @ rng.gamma(0.5, 8, (1, 200))).astype(float)
    X[:, 3] *= 1000
    squared, counts = (
        factorize(X, [4, 2], beta_loss=beta, random_state=0)
        for beta in ("frobenius", "kullback-leibler")
    )
    assert "scale" in {finding.kind for finding in squared.findings}
    assert not {f.kind for f in counts.findings} & {"scale", "outlier", "depth", "unused"}
    assert not any("squares" in str(finding) for finding in counts.findings)
