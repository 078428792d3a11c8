"""Residuals of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from deepmf.data.on_disk import as_on_disk
from deepmf.metrics.arrays import Array, blocks, ratio


def relative_residuals(X: Any, W: Array, H: Array) -> Array:
    """``||x_j - W h_j|| / ||x_j||`` of every column x_j of X and its codes h_j.

    Parameters
    ----------
    X, W, H
        As in `squared_residuals`.

    Returns
    -------
    ndarray of shape (n,)
        0 where both x_j and W h_j are zero, infinity where only x_j is.
    """
    return np.sqrt(ratio(*squared_residuals(X, W, H)))


def squared_residuals(X: Any, W: Array, H: Array) -> tuple[Array, Array]:
    """``||x_j - W h_j||^2`` and ``||x_j||^2`` of every column x_j of X and its codes h_j.

    A dense X is read in blocks of columns. A sparse X is never made dense:
    ``||x - W h||^2 = ||x||^2 - 2 <W'x, h> + <h, W'W h>``, which is exact to about 1e-8 ||x||.

    Parameters
    ----------
    X : array, SciPy sparse matrix or matrix on disk, m x n
        The data. NaN marks a missing entry, which counts neither here nor there.
    W : ndarray, m x r
    H : ndarray, r x n

    Returns
    -------
    residuals, norms : ndarrays of shape (n,)
    """
    if X.shape != (len(W), H.shape[1]):
        raise ValueError(
            f"X has shape {X.shape}, but the factors were fitted to {len(W)} x {H.shape[1]}: pass "
            "the data they were fitted to, columns being samples."
        )
    return _sparse_squares(X, W, H) if sparse.issparse(X) else _dense_squares(X, W, H)


def _dense_squares(X: Any, W: Array, H: Array) -> tuple[Array, Array]:
    X = as_on_disk(X)
    squares, norms2 = np.empty(X.shape[1]), np.empty(X.shape[1])
    for cols in blocks(X.shape):
        x = X[:, cols].astype(np.float64)
        missing = np.isnan(x)
        x[missing] = 0
        norms2[cols] = np.einsum("ij,ij->j", x, x)
        x -= W @ H[:, cols]
        x[missing] = 0
        squares[cols] = np.einsum("ij,ij->j", x, x)
    return squares, norms2


def _sparse_squares(X: Any, W: Array, H: Array) -> tuple[Array, Array]:
    A: Any = sparse.csc_array(X, dtype=np.float64)
    W, H = W.astype(np.float64), H.astype(np.float64)
    norms2 = np.asarray(A.power(2).sum(axis=0), dtype=np.float64)
    cross: Array = np.sum((A.T @ W).T * H, axis=0)
    fitted: Array = np.sum(H * ((W.T @ W) @ H), axis=0)
    return np.maximum(norms2 - 2 * cross + fitted, 0.0), norms2
