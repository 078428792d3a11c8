"""Counts made comparable before a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from deepmf.quadratic import Array
from deepmf.stored import Stored

SCALES = {
    "tfidf": "words by documents: x_ij log((1 + n) / (1 + n_i)) + x_ij, then columns of norm 1",
    "log": "genes by cells: columns brought to the median total, then log(1 + x)",
    "unit": "columns of norm 1",
}
"""Ways to scale X (features x samples), with what they compute; n_i counts samples with word i."""


def scaled(X: Any, how: str | None) -> Any:
    """X scaled in one of the ways of `SCALES`; sparse stays sparse."""
    if how is None:
        return X
    X = np.asarray(X) if isinstance(X, Stored) else X
    is_sparse = sparse.issparse(X)
    if how not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {how!r}.")
    if how != "unit" and X.min() < 0:
        raise ValueError(
            f"scale {how!r} is for counts, but the data go down to {float(X.min()):.3g}; clip them "
            f"or scale them otherwise."
        )
    X = X.astype(np.result_type(X.dtype, np.float32), copy=False)
    if how == "log":
        totals = _sums(X)
        middle = float(np.median(totals[totals > 0])) if np.any(totals > 0) else 1.0
        X = _times(X, columns=middle / _nonzero(totals))
        return X.log1p() if is_sparse else np.log1p(X)
    if how == "tfidf":
        present = np.asarray((X != 0).sum(axis=1)).ravel()
        X = _times(X, rows=np.log((1 + X.shape[1]) / (1 + present)) + 1)
    squares = X.multiply(X) if is_sparse else np.square(X)
    return _times(X, columns=1 / np.sqrt(_nonzero(_sums(squares))))


def _sums(X: Any) -> Array:
    return np.asarray(X.sum(axis=0), dtype=np.float64).ravel()


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
