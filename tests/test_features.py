"""The most variable features are kept: in fits, in files, and of new samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import deepmf
from deepmf import DeepMF, Factorization, factorize, scan
from deepmf.data.dataset import Dataset
from deepmf.data.features import most_variable, variances
from deepmf.data.layout import Layout
from deepmf.data.scaling import scaled
from deepmf.fitting.recipes import RECIPES
from deepmf.hierarchy.names import feature_names
from deepmf.report.texts import summary

RNG = np.random.default_rng(0)
RATES = RNG.gamma(0.5, 2, (40, 3)) @ RNG.gamma(0.5, 1, (3, 60))
COUNTS = RNG.poisson(3 * RATES).astype(float)
COUNTS[5:9] = COUNTS[1]  # ties
NAMES = np.array([f"g{i}" for i in range(40)])
KEPT = 12
FAST = {"max_iter": 5, "tol": 0, "random_state": 0, "init": "random"}

pytestmark = pytest.mark.filterwarnings("ignore")


def largest(X, count=KEPT):
    """Features of largest variance, by np.var, as a mask."""
    mask = np.zeros(len(X), dtype=bool)
    mask[np.argsort(-np.var(X, axis=1), kind="stable")[:count]] = True
    return mask


# --- variances -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asfortranarray, sparse.csc_array, sparse.csr_matrix])
def test_variances_are_numpys(kind):
    np.testing.assert_allclose(variances(kind(COUNTS)), np.var(COUNTS, axis=1), rtol=1e-12)


def test_variances_of_large_sparse_values_do_not_cancel():
    X = 1e8 + COUNTS
    np.testing.assert_allclose(variances(sparse.csr_array(X)), np.var(X, axis=1), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
def test_missing_entries_have_no_part_in_variances(kind):
    X = COUNTS.copy()
    X[::3, ::4], X[2] = np.nan, np.nan
    with np.errstate(all="ignore"):
        expected = np.nan_to_num(np.nanvar(X, axis=1))
    np.testing.assert_allclose(variances(kind(X)), expected, rtol=1e-12)


def test_entries_listed_twice_count_as_their_sum():
    X = sparse.csr_array((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 3])), (1, 2))
    assert X.nnz == 3
    assert variances(X) == pytest.approx([1.0])
    assert X.nnz == 3


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
def test_of_equal_features_the_first_are_kept(kind):
    X = np.zeros((5, 4))
    X[1:, 0] = 1
    assert most_variable(kind(X), 2).tolist() == [False, True, True, False, False]


# --- fits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array, sparse.csr_matrix])
@pytest.mark.parametrize("how", [None, "log", "tfidf"])
def test_fit_equals_that_of_features_chosen_by_hand(kind, how):
    f = factorize(kind(COUNTS), [3, 2], scale=how, max_features=KEPT, **FAST)
    X = scaled(COUNTS, how)
    kept = largest(X)
    by_hand = factorize(kind(X[kept]), [3, 2], **FAST)
    for A, B in zip((*f.W, *f.H), (*by_hand.W, *by_hand.H)):
        np.testing.assert_allclose(A, B, rtol=1e-6, atol=1e-9)
    assert f.layout.kept.tolist() == kept.tolist()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_estimator_equals_the_function(kind):
    model = DeepMF([3, 2], scale="log", max_features=KEPT, **FAST).fit(kind(COUNTS.T))
    f = factorize(kind(COUNTS), [3, 2], scale="log", max_features=KEPT, **FAST)
    np.testing.assert_allclose(model.components(1), f.W[0].T, rtol=1e-6, atol=1e-9)
    assert model.n_features_in_ == 40
    assert model.components_.shape == (2, KEPT)
    assert model.get_feature_names_out().tolist() == ["deepmf0", "deepmf1"]


@pytest.mark.parametrize("count", [40, 100, "all", None])
def test_all_features(count):
    f = factorize(COUNTS, 3, max_features=count, **FAST)
    assert f.layout.kept is None
    assert len(f.W[0]) == 40


def test_weights_and_masks_are_those_of_the_features_kept():
    weights = RNG.random(COUNTS.shape)
    kept = largest(COUNTS)
    f = factorize(COUNTS, 3, max_features=KEPT, weights=weights, **FAST)
    by_hand = factorize(COUNTS[kept], 3, weights=weights[kept], **FAST)
    np.testing.assert_array_equal(f.W[0], by_hand.W[0])
    model = DeepMF(3, max_features=KEPT, **FAST).fit(COUNTS.T, weights=weights.T)
    np.testing.assert_allclose(model.factorization_.W[0], f.W[0], rtol=1e-9, atol=1e-12)
    codes = model.transform(COUNTS.T, weights=weights.T).T
    expected = by_hand.encode(COUNTS[kept], weights=weights[kept])
    np.testing.assert_allclose(codes, expected, rtol=1e-6)
    hidden = RNG.random(COUNTS.shape) < 0.2
    masked, gaps = np.ma.array(COUNTS, mask=hidden), np.where(hidden, np.nan, COUNTS)
    a = factorize(masked, 3, max_features=KEPT, **FAST)
    b = factorize(gaps, 3, max_features=KEPT, weights="observed", **FAST)
    assert a.layout.kept.tolist() == b.layout.kept.tolist() == most_variable(gaps, KEPT).tolist()
    np.testing.assert_allclose(a.W[0], b.W[0], rtol=1e-9)


def test_names_and_wavelengths_are_those_of_the_features_kept():
    layout = Layout(
        NAMES, wavelengths=np.arange(40.0) + 400, bands=np.arange(40) + 1, total_bands=50
    )
    f = factorize(Dataset("x", COUNTS, layout), [3, 2], max_features=KEPT, **FAST)
    kept = largest(COUNTS)
    assert f.layout.features.tolist() == NAMES[kept].tolist()
    assert f.layout.wavelengths.tolist() == (np.flatnonzero(kept) + 400.0).tolist()
    assert f.layout.bands.tolist() == (np.flatnonzero(kept) + 1).tolist()
    assert f.layout.whole.features.tolist() == NAMES.tolist()
    tree = f.tree(top=2)
    assert f.tree(top=2, features=NAMES.tolist()) == tree
    assert f.tree(top=2, features=NAMES[kept].tolist()) == tree


def test_pixels_that_are_left_out_of_pictures_are_blank():
    layout = Layout(image_shape=(5, 8), pixels="rows")
    f = factorize(Dataset("x", COUNTS, layout), 3, max_features=KEPT, **FAST)
    kept = largest(COUNTS).reshape(5, 8)
    picture = f.layout.image(f.W[0][:, 0])
    assert np.isfinite(picture).tolist() == kept.tolist()


def test_rows_without_names_keep_their_numbers():
    f = factorize(COUNTS, 3, max_features=KEPT, **FAST)
    numbers = np.flatnonzero(largest(COUNTS))
    assert feature_names(f.layout, KEPT) == [f"X[{i}]" for i in numbers]


# --- recipes -------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """A recipe for cells that keeps 10 features."""
    assert RECIPES["cells"].max_features == 3000
    monkeypatch.setitem(RECIPES, "cells", replace(RECIPES["cells"], max_features=10))


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({}, 10),
        ({"max_features": KEPT}, KEPT),
        ({"max_features": "all"}, 40),
        ({"scale": "none"}, 40),
        ({"scale": "log"}, 40),
        ({"scale": "log", "max_features": KEPT}, KEPT),
    ],
)
def test_the_recipe_for_cells_keeps_some_where_it_scales_counts_itself(few, settings, left):
    for f in (
        factorize(COUNTS, 3, recipe="cells", max_iter=2, **settings),
        DeepMF(3, recipe="cells", max_iter=2, **settings).fit(COUNTS.T).factorization_,
    ):
        assert len(f.W[0]) == left
        assert (f.layout.scaling is None) == (settings.get("scale") == "none")


def test_the_recipe_keeps_all_features_of_data_that_are_no_counts(few):
    assert len(factorize(np.log1p(COUNTS), 3, recipe="cells", max_iter=2).W[0]) == 40


# --- new samples ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [None, "log"])
def test_codes_of_all_features_are_those_of_the_features_kept(how):
    f = factorize(COUNTS, [3, 2], scale=how, max_features=KEPT, **FAST)
    kept = largest(scaled(COUNTS, how))
    plain = factorize(scaled(COUNTS, how)[kept], [3, 2], **FAST)
    new = COUNTS[:, ::-1]
    expected = plain.encode(scaled(new, how, f.layout.scaling)[kept], 2)
    np.testing.assert_allclose(f.encode(new, 2), expected, rtol=1e-6)
    np.testing.assert_allclose(f.encode(sparse.csc_array(new), 2), expected, rtol=1e-6)
    model = DeepMF([3, 2], scale=how, max_features=KEPT, **FAST).fit(COUNTS.T)
    np.testing.assert_allclose(model.transform(new.T), expected.T, rtol=1e-6)
    assert model.score(new.T) == pytest.approx(-f.squared_error(new, 2) / (KEPT * 60))


def test_features_kept_alone_will_do_where_nothing_is_scaled():
    kept = largest(COUNTS)
    f = factorize(COUNTS, 3, max_features=KEPT, **FAST)
    np.testing.assert_array_equal(f.encode(COUNTS[kept]), f.encode(COUNTS))
    f = factorize(COUNTS, 3, scale="log", max_features=KEPT, **FAST)
    with pytest.raises(ValueError, match=r"X has 12 .* give all 40; scale='log' needs the others"):
        f.encode(COUNTS[largest(scaled(COUNTS, "log"))])


def test_other_features_are_refused():
    f = factorize(COUNTS, 3, max_features=KEPT, **FAST)
    with pytest.raises(ValueError, match=r"X has 39 features, but .* 40, of which it kept the 12"):
        f.encode(COUNTS[1:])
    model = DeepMF(3, max_features=KEPT, **FAST).fit(COUNTS.T)
    for X in (COUNTS.T[:, 1:], COUNTS.T[:, :KEPT]):
        with pytest.raises(ValueError, match="expecting 40 features"):
            model.transform(X)
    f = factorize(Dataset("x", COUNTS, Layout(NAMES)), 3, max_features=KEPT, **FAST)
    with pytest.raises(ValueError, match=r"another order.*layout\.whole\.features"):
        f.encode(Dataset("x", COUNTS, Layout(NAMES[::-1])))
    with pytest.raises(ValueError, match="lacks 'g"):
        f.encode(Dataset("x", COUNTS[:KEPT], Layout(NAMES[:KEPT])))


def test_tables():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COUNTS.T, columns=NAMES)
    model = DeepMF([3, 2], max_features=KEPT, **FAST).fit(frame)
    kept = NAMES[largest(COUNTS)].tolist()
    assert model.feature_names_in_.tolist() == NAMES.tolist()
    assert model.components(1).columns.tolist() == kept
    codes = model.transform(frame)
    assert model.inverse_transform(pandas.DataFrame(codes)).columns.tolist() == kept
    np.testing.assert_array_equal(
        codes, DeepMF([3, 2], **FAST).fit(frame[kept]).transform(frame[kept])
    )
    f = factorize(pandas.DataFrame(COUNTS), 3, scale="log", max_features=KEPT, **FAST)
    assert f.layout.kept.tolist() == largest(scaled(COUNTS, "log")).tolist()


def test_annotated_data():
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    adata = anndata.AnnData(sparse.csr_matrix(COUNTS.T), var=pandas.DataFrame(index=NAMES))
    model = DeepMF([3, 2], max_features=KEPT, **FAST).fit(adata)
    kept = largest(COUNTS)
    assert model.feature_names_in_.tolist() == NAMES.tolist()
    assert model.components(1).columns.tolist() == NAMES[kept].tolist()
    codes = model.transform(adata)
    np.testing.assert_allclose(codes, model.transform(COUNTS.T), rtol=1e-9)
    np.testing.assert_array_equal(codes, model.transform(adata[:, kept]))
    with pytest.raises(ValueError, match="another order"):
        model.transform(adata[:, ::-1])


def test_codes_in_turn_are_not_prepared_again():
    settings = {"model": "multilayer", "hierarchy": "codes", "random_state": 0, "init": "random"}
    f = factorize(COUNTS, [3, 2], scale="log", max_features=KEPT, max_iter=5, **settings)
    kept = largest(scaled(COUNTS, "log"))
    plain = factorize(scaled(COUNTS, "log")[kept], [3, 2], max_iter=5, **settings)
    np.testing.assert_array_equal(f.encode(COUNTS, 2), plain.encode(scaled(COUNTS, "log")[kept], 2))


@pytest.mark.parametrize("how", [None, "log"])
def test_residuals_are_those_of_the_features_kept(how):
    pytest.importorskip("matplotlib")
    from deepmf.plots import plot_residual, relative_residual

    model = DeepMF([3, 2], scale=how, max_features=KEPT, **FAST).fit(COUNTS.T)
    f, X = model.factorization_, scaled(COUNTS, how)
    X = X[largest(X)]
    expected = np.linalg.norm(X - f.reconstruct(2), axis=0) / np.linalg.norm(X, axis=0)
    np.testing.assert_allclose(relative_residual(model, COUNTS.T, 2), expected, rtol=1e-6)
    np.testing.assert_allclose(relative_residual(f, COUNTS, 2), expected, rtol=1e-6)
    assert plot_residual(model, COUNTS.T, 2).axes


# --- files, texts and messages -------------------------------------------------------------------


def test_files_keep_the_choice(tmp_path):
    f = factorize(Dataset("x", COUNTS, Layout(NAMES)), 3, scale="log", max_features=KEPT, **FAST)
    for codes in (True, False):
        back = Factorization.load(f.save(tmp_path / "f.npz", codes=codes))
        assert back.layout.kept.tolist() == f.layout.kept.tolist()
        assert back.layout.whole.features.tolist() == NAMES.tolist()
        np.testing.assert_array_equal(back.encode(COUNTS), f.encode(COUNTS))


def test_files_without_a_choice_are_read(tmp_path):
    f = factorize(Dataset("x", COUNTS, Layout(NAMES)), 3, **FAST)
    path = f.save(tmp_path / "f.npz")
    with np.load(path) as file:
        assert not [name for name in file if "kept" in name or "whole" in name]
    assert Factorization.load(path).layout.kept is None


@pytest.mark.parametrize("kept", [np.ones(40, bool), np.arange(40), np.ones((40, 1), bool)])
def test_files_whose_choice_does_not_fit_are_refused(tmp_path, kept):
    path = factorize(COUNTS, 3, max_features=KEPT, **FAST).save(tmp_path / "f.npz")
    with np.load(path) as file:
        arrays = {**file, "layout_kept": kept}
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="not a whole deepmf factorization"):
        Factorization.load(path)


def test_the_choice_is_shown():
    f = factorize(COUNTS, 3, scale="log", max_features=KEPT, **FAST)
    assert "data: scaled by log, 12 most variable of 40 features\n" in repr(f)
    assert "data:" not in repr(factorize(COUNTS, 3, **FAST))
    assert "60 columns (scaled by log, 12 most variable of 40 features) factored" in summary(f)


@pytest.mark.parametrize("count", [0, -3, 2.0, True, "none", "12", [3]])
def test_a_number_that_makes_no_sense_is_refused_before_the_data(count):
    match = "max_features must be an integer of at least 1 or 'all', got"
    for call in (
        lambda: factorize(None, 3, max_features=count),
        lambda: DeepMF(3, max_features=count).fit(None),
        lambda: scan(None, range(2, 4), max_features=count),
    ):
        with pytest.raises(ValueError, match=match):
            call()


def test_data_out_of_memory_are_refused(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", COUNTS)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    f = factorize(mapped, 3, max_features=KEPT, **FAST)  # small maps are arrays
    assert f.layout.kept.tolist() == largest(COUNTS).tolist()
    monkeypatch.setattr(deepmf.data.on_disk, "_LARGE", 1)
    with pytest.raises(ValueError, match=r"max_features=12 is for .* in memory, got data on disk;"):
        factorize(mapped, 3, max_features=KEPT, **FAST)
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="in memory, got a Tensor;"):
        factorize(torch.from_numpy(COUNTS), 3, max_features=KEPT, **FAST)
    with pytest.raises(ValueError, match="in memory, got a Tensor;"):
        DeepMF(3, max_features=KEPT, **FAST).fit(torch.from_numpy(COUNTS.T))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_that_are_not_finite_are_found_in_features_left_out(bad):
    X, row = COUNTS.copy(), int(np.argmin(np.var(COUNTS, axis=1)))
    X[row, 4] = bad
    with pytest.raises(ValueError, match=f"the first {bad} at row {row}, column 4"):
        factorize(X, 3, max_features=KEPT, **FAST)
    with pytest.raises(ValueError, match=f"the first {bad} at row 4, column {row}"):
        DeepMF(3, max_features=KEPT, **FAST).fit(X.T)


# --- scan ----------------------------------------------------------------------------------------


def test_scan_equals_that_of_features_chosen_by_hand():
    settings = {"max_iter": 3, "tol": 0, "init": "random", "splits": 2}
    a = scan(COUNTS, [2, 3], scale="log", max_features=KEPT, **settings)
    X = scaled(COUNTS, "log")
    b = scan(X[largest(X)], [2, 3], **settings)
    for one, other in zip(a.candidates, b.candidates):
        np.testing.assert_allclose(one.errors, other.errors, rtol=1e-6)
