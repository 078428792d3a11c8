"""Measures of a factorization: spectral angles, matching, sparsity, links, errors, residuals.

Every matrix is in the paper's orientation: a column is a spectrum, a component, a data point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from deepmf.data.on_disk import as_on_disk

__all__ = [
    "Matching",
    "data_errors",
    "hoyer",
    "layer_errors",
    "links",
    "match",
    "mrsa",
    "relative_residuals",
    "sad",
    "squared_residuals",
]

Array = NDArray[np.float64]

_BLOCK = 2**22
"""Entries of the residual that are formed at a time, so that it never needs the memory of X."""


# --- spectral angles -----------------------------------------------------------------------------


def sad(a: ArrayLike, b: ArrayLike) -> Any:
    """Spectral angle ``arccos(<a, b> / (||a|| ||b||))`` in radians, in [0, pi].

    The angle is computed as ``2 atan2(||u - v||, ||u + v||)`` with ``u, v`` the unit vectors, which
    keeps full precision near 0 and pi where ``arccos`` loses half the digits.

    Parameters
    ----------
    a, b : array_like
        Two vectors of length m, or two matrices m x k1 and m x k2 of columns.

    Returns
    -------
    float or ndarray of shape (k1, k2)
        The angle of two vectors, or the angles of all pairs of columns. A zero vector is at pi/2
        from any other vector, and at 0 from another zero vector.
    """
    return _like_input(a, b, _angles)


def mrsa(a: ArrayLike, b: ArrayLike) -> Any:
    """Mean-removed spectral angle, in [0, 100].

    ``MRSA(a, b) = 100/pi * arccos(<a - mean a, b - mean b> / (||a - mean a|| ||b - mean b||))``

    It compares shapes: ``mrsa(a, s * a + c) == 0`` for every ``s > 0`` and every ``c``.

    Parameters
    ----------
    a, b : array_like
        Two vectors of length m, or two matrices m x k1 and m x k2 of columns.

    Returns
    -------
    float or ndarray of shape (k1, k2)
        The measure of two vectors, or of all pairs of columns. A constant vector has no shape left
        after mean removal: it is at 50 (a right angle) from any other vector, and at 0 from another
        constant vector.
    """
    return _like_input(a, b, lambda A, B: 100 / np.pi * _angles(_remove_mean(A), _remove_mean(B)))


def _like_input(a: ArrayLike, b: ArrayLike, pairs: Callable[[Array, Array], Array]) -> Any:
    """A float for two vectors, ``pairs(a, b)`` for two matrices."""
    A, B = _real(a, "a"), _real(b, "b")
    if A.ndim != B.ndim or A.ndim not in (1, 2):
        raise ValueError(
            f"a has shape {A.shape} and b has shape {B.shape}, but both must be vectors or both "
            "matrices of columns; turn a lone vector v into a matrix with v[:, None]."
        )
    if A.shape[0] != B.shape[0] or A.shape[0] == 0:
        raise ValueError(
            f"a has length {A.shape[0]} and b has length {B.shape[0]}, but both must have the same "
            "length, at least 1; transpose a matrix that holds its spectra as rows."
        )
    if A.ndim == 1:
        return float(pairs(A[:, None], B[:, None])[0, 0])
    return pairs(A, B)


def _real(a: ArrayLike, name: str) -> Array:
    """``a`` as float64, or a sentence that names it."""
    try:
        return np.asarray(a, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} is a {type(a).__name__} that does not convert to an array of real numbers; "
            "give a dense numeric array (call .toarray() on a sparse matrix)."
        ) from error


def _angles(A: Array, B: Array) -> Array:
    U, V = _unit(A), _unit(B)
    angles = np.empty((U.shape[1], V.shape[1]))
    for i, u in enumerate(U.T):  # one column at a time: no m x k1 x k2 array
        minus = np.linalg.norm(u[:, None] - V, axis=0)
        plus = np.linalg.norm(u[:, None] + V, axis=0)
        # u = 0 gives atan2(1, 1), a right angle; u = v = 0 gives atan2(0, 0) = 0.
        angles[i] = 2 * np.arctan2(minus, plus)
    return angles


def _unit(A: Array) -> Array:
    """Columns scaled to norm 1; zero columns stay zero, and no square overflows or underflows."""
    peak = np.abs(A).max(axis=0)
    A = A / np.where(peak == 0, 1, peak)
    norm = np.linalg.norm(A, axis=0)
    return A / np.where(norm == 0, 1, norm)


def _remove_mean(A: Array) -> Array:
    """``a - mean a`` per column; exactly zero where a is constant up to rounding."""
    centred = A - A.mean(axis=0)
    constant = np.ptp(A, axis=0) <= 4 * np.finfo(float).eps * np.abs(A).max(axis=0)
    centred[:, constant] = 0
    return centred


# --- matching ------------------------------------------------------------------------------------


class Matching(NamedTuple):
    """Estimated columns paired with the true ones.

    Attributes
    ----------
    order : ndarray of int, shape (k,)
        ``estimate[:, order[i]]`` is the column paired with ``truth[:, i]``.
    distances : ndarray, shape (k,)
        The distance of each pair.
    mean : float
        Their mean, the number the paper reports.
    """

    order: NDArray[np.intp]
    distances: Array
    mean: float


def match(
    truth: ArrayLike,
    estimate: ArrayLike,
    distance: Callable[[Array, Array], ArrayLike] = mrsa,
) -> Matching:
    """Pair columns at the least total distance: ``argmin_p sum_i d(truth_i, estimate_p(i))``.

    ``p`` runs over the one-to-one maps (Hungarian method). Estimated columns beyond the number of
    true ones stay unpaired.

    Parameters
    ----------
    truth : array_like, m x k
    estimate : array_like, m x r with r >= k
    distance : callable, default mrsa
        Gives the k x r matrix of distances of all pairs of columns.

    Returns
    -------
    Matching
    """
    from scipy.optimize import linear_sum_assignment

    T, E = _real(truth, "truth"), _real(estimate, "estimate")
    if T.ndim != 2 or E.ndim != 2 or T.shape[0] != E.shape[0]:
        raise ValueError(
            f"truth has shape {T.shape} and estimate has shape {E.shape}, but both must be "
            "matrices with columns of the same length; transpose one that holds spectra as rows."
        )
    if not 0 < T.shape[1] <= E.shape[1]:
        raise ValueError(
            f"estimate has {E.shape[1]} columns for {T.shape[1]} true ones, but every true column "
            "needs its own; factorize with a larger rank or compare fewer true columns."
        )
    distances = np.asarray(distance(T, E), dtype=np.float64)
    if not np.isfinite(distances).all():
        raise ValueError(
            "some distances are not finite, so columns cannot be matched; "
            "remove the NaN or infinite entries of truth and estimate."
        )
    rows, order = linear_sum_assignment(distances)
    paired = distances[rows, order]
    return Matching(np.asarray(order, dtype=np.intp), paired, float(paired.mean()))


# --- sparsity and links --------------------------------------------------------------------------


def hoyer(M: ArrayLike) -> Any:
    """Hoyer sparsity ``(sqrt(n) - ||x||_1 / ||x||_2) / (sqrt(n) - 1)`` of each column x, in [0, 1].

    0 when all entries have the same size, 1 when one entry is not zero. The paper's figure for a
    factor is the average, ``hoyer(M).mean()``.

    Parameters
    ----------
    M : array_like
        A matrix n x r, or a vector of length n.

    Returns
    -------
    ndarray of shape (r,) or float
        One value per column, or the value of the vector. A zero column counts as 1 (it has no entry
        to spread), and so does a column of a single entry, where the formula is 0/0.
    """
    A = np.abs(_real(M, "M"))
    if A.ndim not in (1, 2) or A.shape[0] == 0:
        raise ValueError(
            f"M has shape {A.shape}, but sparsity needs a vector or a matrix of columns with at "
            "least one row."
        )
    if A.ndim == 1:
        return float(hoyer(A[:, None])[0])
    root = np.sqrt(A.shape[0])
    if root == 1:
        return np.ones(A.shape[1])
    ratio = _unit(A).sum(axis=0)  # ||x||_1 / ||x||_2; 0 for a zero column, which the clip makes 1
    return np.clip((root - ratio) / (root - 1), 0.0, 1.0)


def links(H: ArrayLike) -> Array:
    """Shares ``|H(i, j)| / sum_i |H(i, j)|``: how much of lower component j each upper one i takes.

    Parameters
    ----------
    H : array_like, r_l x r_{l-1}

    Returns
    -------
    ndarray of the shape of H
        Columns sum to 1, except that a zero column stays zero.
    """
    A = np.abs(_real(H, "H"))
    if A.ndim != 2:
        raise ValueError(f"H has shape {A.shape}, but links need a matrix r_l x r_(l-1).")
    total = A.sum(axis=0)
    return A / np.where(total == 0, 1, total)


# --- errors --------------------------------------------------------------------------------------


def layer_errors(
    X: ArrayLike,
    W: Sequence[ArrayLike],
    H: Sequence[ArrayLike],
    reference: Sequence[float] | None = None,
) -> Array:
    """Layer-centric errors ``||W_{l-1} - W_l H_l||^2 / ||W_{l-1}^(0)||^2`` of all l; ``W_0 = X``.

    Computed from the residuals, so small errors keep their digits.

    Parameters
    ----------
    X : array_like, m x n
    W : list of array_like, m x r_l
    H : list of array_like, r_l x r_{l-1} with r_0 = n
    reference : sequence of L - 1 floats, optional
        ``||W_1^(0)||_F, ..., ||W_{L-1}^(0)||_F``, the (unsquared) norms at the start, which stay
        comparable along a run. By default those of the given W.

    Returns
    -------
    ndarray of shape (L,)
        Where a denominator is zero: 0 if the residual is zero too, else infinity.
    """
    A, Ws, Hs = _factors(X, W, H)
    targets = [A, *Ws[:-1]]
    norms2 = [_norm2(target) for target in targets]
    if reference is not None:
        if len(reference) != len(Ws) - 1:
            raise ValueError(
                f"reference has {len(reference)} norms for {len(Ws)} layers, but it must have "
                f"{len(Ws) - 1}: one for each W except the last."
            )
        norms2[1:] = [float(norm) ** 2 for norm in reference]
    errors = [_residual2(target, Wl, Hl) for target, Wl, Hl in zip(targets, Ws, Hs)]
    return _ratio(errors, norms2)


def data_errors(X: ArrayLike, W: Sequence[ArrayLike], H: Sequence[ArrayLike]) -> Array:
    """Data-centric errors ``||X - W_l H_l...H_1||^2 / ||X||^2`` of all layers l.

    Computed from the residuals, so small errors keep their digits.

    Parameters
    ----------
    X : array_like, m x n
    W : list of array_like, m x r_l
    H : list of array_like, r_l x r_{l-1} with r_0 = n

    Returns
    -------
    ndarray of shape (L,)
        Where X is zero: 0 if the residual is zero too, else infinity.
    """
    A, Ws, Hs = _factors(X, W, H)
    codes = Hs[0]
    errors = [_residual2(A, Ws[0], codes)]
    for Wl, Hl in zip(Ws[1:], Hs[1:]):
        codes = Hl @ codes
        errors.append(_residual2(A, Wl, codes))
    return _ratio(errors, [_norm2(A)] * len(errors))


def _factors(
    X: ArrayLike, W: Sequence[ArrayLike], H: Sequence[ArrayLike]
) -> tuple[Array, list[Array], list[Array]]:
    """The factors as arrays whose shapes chain, or a sentence naming the layer that does not."""
    if len(W) != len(H) or len(W) == 0:
        raise ValueError(
            f"W has {len(W)} factors and H has {len(H)}, but both must be lists with one matrix "
            "per layer."
        )
    A = _real(X, "X")
    Ws = [_real(Wl, f"W[{layer}]") for layer, Wl in enumerate(W)]
    Hs = [_real(Hl, f"H[{layer}]") for layer, Hl in enumerate(H)]
    above = A
    for layer, (Wl, Hl) in enumerate(zip(Ws, Hs)):
        if (
            not above.ndim == Wl.ndim == Hl.ndim == 2
            or (Wl.shape[0], Hl.shape[1]) != above.shape
            or Wl.shape[1] != Hl.shape[0]
        ):
            name = "X" if layer == 0 else f"W[{layer - 1}]"
            raise ValueError(
                f"W[{layer}] has shape {Wl.shape} and H[{layer}] has shape {Hl.shape}, but their "
                f"product must have the shape {above.shape} of {name}."
            )
        above = Wl
    return A, Ws, Hs


def _norm2(A: Array) -> float:
    return float(np.linalg.norm(A) ** 2)


def _residual2(A: Array, W: Array, H: Array) -> float:
    return sum(_norm2(A[:, cols] - W @ H[:, cols]) for cols in _blocks(A.shape))


def _blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Slices of columns that cover a matrix of this shape."""
    m, n = shape
    width = max(1, _BLOCK // m)
    return (slice(start, min(start + width, n)) for start in range(0, n, width))


def _ratio(errors: ArrayLike, norms2: ArrayLike) -> Array:
    """``errors / norms2`` with 0/0 = 0 and e/0 = inf, without a warning."""
    e, d = np.asarray(errors), np.asarray(norms2)
    return np.where(d > 0, e / np.where(d > 0, d, 1), np.where(e > 0, np.inf, 0.0))


# --- residuals of each sample --------------------------------------------------------------------


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
    return np.sqrt(_ratio(*squared_residuals(X, W, H)))


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
    for cols in _blocks(X.shape):
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
