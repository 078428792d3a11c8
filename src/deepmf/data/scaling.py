"""Samples made comparable before a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from deepmf._utils.messages import SettingError, setting
from deepmf.core.quadratic import Array
from deepmf.data.on_disk import OnDisk
from deepmf.data.provenance import Scaling

SCALES = {
    "tfidf": "words by documents: x_ij log((1 + n) / (1 + n_i)) + x_ij, then columns of norm 1",
    "sublinear-tfidf": "likewise with 1 + log x_ij in the place of x_ij",
    "log": "genes by cells: columns brought to the median total, then log(1 + x)",
    "unit": "columns of norm 1",
}
"""Ways to scale X (features x samples), with what they compute; n_i counts samples with word i."""


_LOOKED_AT = 1 << 20
"""Entries that show whether data are counts."""


def are_counts(X: Any) -> bool:
    """Whether a matrix in memory holds whole numbers from 0 on, some above 1.

    Missing entries, NaN or masked, have no say.
    """
    if not (sparse.issparse(X) or isinstance(X, np.ndarray)):
        return False
    if sparse.issparse(X):
        some = X.data[:_LOOKED_AT]
    else:
        some = np.ma.compressed(X[:, : max(1, _LOOKED_AT // max(1, len(X)))])
    if some.dtype.kind not in "iuf":
        return False
    if some.dtype.kind == "f":
        some = some[~np.isnan(some)]
        if not np.any((some > 0) & (some < 1 / np.finfo(some.dtype).eps)):
            return False  # there is no room for fractions in larger ones
    whole = some.size and some.min() >= 0 and some.max() > 1
    return bool(whole and np.array_equal(some, np.floor(some)))


def scaled(X: Any, how: str | None, by: Scaling | None = None) -> Any:
    """X scaled in one of the ways of `SCALES`; sparse stays sparse, and NaN (missing) NaN.

    Parameters
    ----------
    X : matrix, features x samples
    how : str, optional
        The way; None leaves X as it is.
    by : Scaling, optional
        What `measured` gave for other data, to scale new samples as these were.
    """
    if how is None:
        return X
    X, thin = _counts(X, how), sparse.issparse(X)
    by = measured(X, how) if by is None else by
    X = X.astype(np.result_type(X.dtype, np.float32), copy=False)
    if how == "sublinear-tfidf":
        X = _sublinear(X)
    if how == "log":
        X = _times(X, columns=by.median_total / _nonzero(_sums(X)))
        return X.log1p() if thin else np.log1p(X)
    if how.endswith("tfidf"):
        X = _times(X, rows=np.asarray(by.row_weights))
    squares = X.multiply(X) if thin else np.square(X)
    return _times(X, columns=1 / np.sqrt(_nonzero(_sums(squares))))


def measured(X: Any, how: str | None) -> Scaling:
    """The statistics of all samples together that a way of scaling needs."""
    if how == "log":
        totals = _sums(_counts(X, how))
        middle = float(np.median(totals[totals > 0])) if np.any(totals > 0) else 1.0
        return Scaling(middle, how=how)
    if how is not None and how.endswith("tfidf"):
        X, thin = _counts(X, how), sparse.issparse(X)
        there = X != 0 if thin else (X != 0) & ~np.isnan(X)
        present = np.asarray(there.sum(axis=1)).ravel()
        weights = np.log((1 + X.shape[1]) / (1 + present)) + 1
        return Scaling(row_weights=tuple(weights.tolist()), how=how)
    return Scaling(how=how or "")


def _counts(X: Any, how: str) -> Any:
    """X in memory, if it can be scaled so."""
    X = np.asarray(X) if isinstance(X, OnDisk) else X
    check_scaling(how)
    if not (sparse.issparse(X) or isinstance(X, np.ndarray)):
        raise SettingError(
            f"{setting(scale=how)} is for arrays and sparse matrices in memory, got a "
            f"{type(X).__name__}; scale the data first, or convert them."
        )
    if np.ma.is_masked(X):
        X = np.ma.array(X.filled(0), mask=X.mask)  # what is masked may be anything
    if how == "unit":
        return X
    thin = sparse.issparse(X)
    least = float(X.min() if thin else np.fmin.reduce(np.asarray(X), axis=None))
    if least < 0:
        raise SettingError(
            f"{setting(scale=how)} is for counts, but the data go down to {least:.6g}; clip them "
            f"or scale them otherwise."
        )
    return X


def check_scaling(how: object) -> None:
    """Refuse a way of scaling that there is not."""
    if how is not None and not (isinstance(how, str) and how in {*SCALES, "none"}):
        raise SettingError(f"{setting('scale')} must be one of {', '.join(SCALES)}, got {how!r}.")


def _sublinear(X: Any) -> Any:
    """1 + log x of the positive entries."""
    if sparse.issparse(X):
        X = X.copy()
        X.eliminate_zeros()
        X.data = 1 + np.log(X.data)
        return X
    found = np.where(X > 0, 1 + np.log(np.where(X > 0, X, 1)), X)
    return np.ma.array(found, mask=np.ma.getmask(X)) if np.ma.isMaskedArray(X) else found


def _sums(X: Any) -> Array:
    """Sums of the columns over their observed entries."""
    thin = sparse.issparse(X)
    sums = X.sum(axis=0) if thin else np.nansum(X, axis=0)
    return np.asarray(sums, dtype=np.float64).ravel()


def _nonzero(v: Array) -> Array:
    return np.where(v > 0, v, 1.0)


def _times(X: Any, rows: Array | None = None, columns: Array | None = None) -> Any:
    """diag(rows) X diag(columns), in X's own type."""
    is_sparse = sparse.issparse(X)
    if rows is not None:
        left = rows.astype(X.dtype)
        X = sparse.diags_array(left) @ X if is_sparse else left[:, None] * X
    if columns is not None:
        right = columns.astype(X.dtype)
        X = X @ sparse.diags_array(right) if is_sparse else X * right
    return X
