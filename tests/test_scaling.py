from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

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
