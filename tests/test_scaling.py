from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from deepmf import DeepMF, factorize
from deepmf.data.on_disk import OnDisk
from deepmf.data.scaling import scaled

COUNTS = np.random.default_rng(0).poisson(0.7, (30, 12)).astype(float)
COUNTS[:, 3] = 0


def both(how):
    dense, thin = scaled(COUNTS, how), scaled(sparse.csc_array(COUNTS), how)
    assert sparse.issparse(thin)
    np.testing.assert_allclose(thin.toarray(), dense, atol=1e-14)
    return dense


def test_tfidf_is_scikit_learns():
    expected = TfidfTransformer().fit_transform(COUNTS.T).toarray().T
    np.testing.assert_allclose(both("tfidf"), expected, atol=1e-14)


def test_unit_is_scikit_learns():
    np.testing.assert_allclose(both("unit"), normalize(COUNTS, axis=0), atol=1e-14)


def test_log_brings_all_cells_to_the_median_total():
    totals = np.expm1(both("log")).sum(axis=0)
    kept = COUNTS.sum(axis=0)
    np.testing.assert_allclose(totals[kept > 0], np.median(kept[kept > 0]))
    assert totals[3] == 0


def test_integers_and_small_floats():
    assert scaled(COUNTS.astype(np.int64), "unit").dtype == np.float64
    assert scaled(COUNTS.astype(np.float32), "tfidf").dtype == np.float32
    assert scaled(COUNTS, None) is COUNTS


def test_unknown():
    with pytest.raises(ValueError, match="one of tfidf, sublinear-tfidf, log, unit, got 'zscore'"):
        scaled(COUNTS, "zscore")


@pytest.mark.parametrize("how", ["log", "tfidf"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
def test_counts_are_not_negative(how, kind):
    with pytest.raises(ValueError, match="is for counts, but the data go down to -3"):
        scaled(kind(np.array([[1.0, -3.0], [2.0, 0.0]])), how)


@pytest.mark.parametrize("how", ["log", "tfidf", "unit"])
def test_missing_entries_count_for_nothing(how):
    gaps, known = COUNTS.copy(), COUNTS.copy()
    gaps[::4, ::3], known[::4, ::3] = np.nan, 0
    found = scaled(gaps, how)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(gaps))
    np.testing.assert_allclose(np.nan_to_num(found), scaled(known, how), atol=1e-14)


@pytest.mark.parametrize("how", ["log", "tfidf"])
def test_counts_with_gaps_are_not_negative(how):
    with pytest.raises(ValueError, match="the data go down to -3"):
        scaled(np.array([[np.nan, -3.0], [2.0, 0.0]]), how)


@pytest.mark.parametrize("how", ["log", "tfidf", "sublinear-tfidf", "unit"])
def test_masked_entries_stay_masked(how):
    gaps = COUNTS.copy()
    gaps[::4, ::3] = np.nan
    found = scaled(np.ma.masked_array(np.where(np.isnan(gaps), -9999, COUNTS), np.isnan(gaps)), how)
    np.testing.assert_array_equal(np.ma.getmaskarray(found), np.isnan(gaps))
    np.testing.assert_allclose(found.filled(np.nan), scaled(gaps, how), atol=1e-14)


# --- raw counts ----------------------------------------------------------------------------------


def as_fits_scale(X, **settings):
    """The scaling of a fit with the recipe for topics."""
    given = {"recipe": "topics", "init": "random", "random_state": 0, "max_iter": 1, **settings}
    f = factorize(X, 2, **given)
    return f.layout.scaling and f.layout.scaling.how


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [np.ndarray.tolist, np.matrix, np.float16, np.int8])
def test_counts_of_every_kind_are_scaled(kind):
    assert as_fits_scale(kind(COUNTS)) == "sublinear-tfidf"


@pytest.mark.filterwarnings("ignore")
def test_missing_entries_are_counts_no_less():
    gaps = COUNTS.copy()
    gaps[1, 2] = np.nan
    assert as_fits_scale(gaps, weights="observed") == "sublinear-tfidf"
    assert as_fits_scale(np.ma.masked_invalid(gaps)) == "sublinear-tfidf"


@pytest.mark.filterwarnings("ignore")
def test_numbers_too_large_for_fractions_are_no_counts():
    X = np.random.default_rng(0).random((8, 20))
    assert as_fits_scale(1e40 * X) is None
    assert as_fits_scale((1e9 * X).astype(np.float32) + 2**24) is None
    assert as_fits_scale(COUNTS + 1e12 * (COUNTS > 2)) == "sublinear-tfidf"


@pytest.mark.parametrize("settings", [{"recipe": "cells"}, {"scale": "log"}, {"scale": "unit"}])
@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_empty_data_are_refused_before_they_are_scaled(settings, shape):
    with pytest.raises(ValueError, match="X is empty"):
        factorize(np.zeros(shape), 2, **settings)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("settings", [{"recipe": "cells"}, {"scale": "tfidf", "max_features": 5}])
def test_what_is_not_finite_is_refused_where_it_is(settings, value):
    X = COUNTS.copy()
    X[0, 7] = value
    fitted = factorize(COUNTS, 2, random_state=0, max_iter=1, tol=0, **settings)
    model = DeepMF(2, random_state=0, max_iter=1, tol=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for attempt in (lambda: factorize(X, 2, **settings), lambda: fitted.encode(X)):
            with pytest.raises(ValueError, match=r"1 entry .*, the first \w+ at row 0, column 7"):
                attempt()
        for attempt in (lambda: model.fit(X.T), lambda: model.fit(COUNTS.T).transform(X.T)):
            with pytest.raises(ValueError, match=r"1 entry .*, the first \w+ at row 7, column 0"):
                attempt()


def test_new_samples_of_other_words():
    f = factorize(COUNTS, 2, scale="tfidf", random_state=0, max_iter=1, tol=0)
    with pytest.raises(ValueError, match="X has 5 features, but the model was fitted to 30"):
        f.encode(COUNTS[:5])
    with pytest.raises(ValueError, match="X is empty"):
        f.encode(COUNTS[:, :0])


@pytest.mark.parametrize("scale", [["log"], {"how": "log"}, 3])
def test_a_scaling_of_another_type(scale):
    with pytest.raises(ValueError, match=r"scale must be one of tfidf.*, got"):
        factorize(COUNTS, 2, scale=scale)


def tensor(X):
    return pytest.importorskip("torch").from_numpy(X)


def on_disk(X):
    return OnDisk(X)


@pytest.mark.parametrize("kind", [tensor, on_disk])
@pytest.mark.parametrize(("recipe", "way"), [("topics", "sublinear-tfidf"), ("cells", "log")])
def test_counts_that_a_recipe_cannot_scale_are_said(kind, recipe, way):
    fit = {"recipe": recipe, "max_iter": 1, "tol": 0, "random_state": 0}
    says = rf"X \(\w+\) looks like raw counts, .* as scale='{way}' would.* scale='none'"
    with pytest.warns(UserWarning, match=says) as caught:
        factorize(kind(COUNTS), 2, **fit)
    assert len([w for w in caught if "looks like raw counts, but" in str(w.message)]) == 1
    if kind is tensor:
        with pytest.warns(UserWarning, match=says):
            DeepMF(2, **fit).fit(kind(np.ascontiguousarray(COUNTS.T)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        factorize(kind(COUNTS), 2, scale="none", **fit)
        factorize(kind(COUNTS / 3), 2, **fit)


def test_a_sparse_tensor_of_counts_is_refused_as_ever():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="sparse"):
        factorize(torch.from_numpy(COUNTS).to_sparse(), 2, recipe="cells")
