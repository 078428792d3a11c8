"""Choice of the features of largest variance."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf._utils.messages import SettingError, setting
from deepmf.core.quadratic import Array

ALL = "all"
"""The name that asks for all features."""

_TOGETHER = 1 << 22
"""Entries whose variances are computed together."""


def check_max_features(count: object) -> None:
    """Refuse a number of features to keep that makes no sense."""
    if count is None or (isinstance(count, str) and count == ALL):
        return
    if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
        raise SettingError(
            f"{setting('max_features')} must be an integer of at least 1 or {ALL!r}, got {count!r}."
        )


def most_variable(X: Any, count: int) -> NDArray[np.bool_]:
    """Mask of the features of largest variance; of equal ones the first.

    Parameters
    ----------
    X : array or sparse matrix, features x samples
    count : int
        Number of features to keep; less than there are.
    """
    kept = np.zeros(X.shape[0], dtype=bool)
    kept[np.argsort(-variances(X), kind="stable")[:count]] = True
    return kept


def variances(X: Any) -> Array:
    """Variance of each row over its entries that are not NaN; sparse X is never made dense.

    A row with infinite entries has an infinite variance, and a row of NaN has 0.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows of NaN
        found = _of_sparse(X) if sparse.issparse(X) else _of_array(X)
    return found


def rows_of(X: Any, kept: NDArray[np.bool_]) -> Any:
    """The rows of an array or sparse matrix that a mask keeps."""
    return X.tocsr()[np.flatnonzero(kept)] if sparse.issparse(X) else X[kept]


def _of_array(X: NDArray) -> Array:
    height = max(1, _TOGETHER // max(1, X.shape[1]))
    found = np.empty(X.shape[0])
    for start in range(0, X.shape[0], height):
        rows = X[start : start + height].astype(np.float64)
        rows = np.asarray(np.ma.filled(rows, np.nan))
        finite = np.where(np.isinf(rows).any(axis=1), np.inf, np.nanvar(rows, axis=1))
        found[start : start + height] = np.nan_to_num(finite, nan=0.0, posinf=np.inf)
    return found


def _of_sparse(X: Any) -> Array:
    """Sums over the stored entries of each row; the others are zeros."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    m, n = X.shape
    rows, values = np.repeat(np.arange(m), np.diff(X.indptr)), X.data.astype(np.float64)
    seen = ~np.isnan(values)
    observed = n - np.bincount(rows[~seen], minlength=m)
    rows, values = rows[seen], values[seen]
    zeros, count = observed - np.bincount(rows, minlength=m), np.maximum(observed, 1)
    means = np.bincount(rows, values, m) / count
    squares = np.bincount(rows, np.square(values - means[rows]), m) + zeros * np.square(means)
    infinite = np.bincount(rows, np.isinf(values), m) > 0
    return np.where(infinite, np.inf, squares / count)
