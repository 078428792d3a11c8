"""Starts for deeper layers: components of the layer before, merged."""

from __future__ import annotations

import numpy as np

from deepmf._utils.messages import setting
from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels
from deepmf.init.base import StartError


def merged(panels: Panels, rank: int, rng: np.random.Generator | None = None) -> Array:
    """Refuse to start a layer that has no layer before it; a fit passes deeper ones to `merge`."""
    raise StartError(
        f"Merged components need a layer before that was fitted to the data by itself; give "
        f"another start too, such as {setting(init=['nndsvd', 'merged'])}."
    )


def merge(W: Array, gram: Array, rank: int) -> Array:
    """Merge columns of W, two at a time, until ``rank`` are left.

    With codes F of which ``gram`` is F F', the two that are merged next lose the least of W F::

        min over a, b of min over w, f of ||w_a f_a + w_b f_b - w f||^2

    which is the smaller squared singular value of the matrix of rank two. Components merge if
    they look alike (w_a ~ w_b) or occur together (f_a ~ f_b).
    """
    W, G = W.astype(np.float64), np.asarray(gram, dtype=np.float64)
    A = W.T @ W
    while len(A) > rank:
        a, b = pair = _closest(A, G)
        both = np.ix_(pair, pair)
        v = _leading(A[both], G[both])
        v /= np.sqrt(max(float(v @ A[both] @ v), np.finfo(float).tiny))
        T = np.eye(len(A))  # w = W v, f = w' (w_a f_a + w_b f_b), in the place of a
        S = T.copy()
        T[pair, a], S[a, pair] = v, v @ A[both]
        T, S = np.delete(T, b, axis=1), np.delete(S, b, axis=0)
        W, A, G = W @ T, T.T @ A @ T, S @ G @ S.T
    return W


def _closest(A: Array, G: Array) -> list[int]:
    """The pair of columns whose best merger loses least."""
    a, g = np.diag(A), np.diag(G)
    trace = (a * g)[:, None] + a * g + 2 * A * G
    determinant = (np.outer(a, a) - A**2) * (np.outer(g, g) - G**2)
    root = np.sqrt(np.maximum(trace**2 - 4 * determinant, 0))
    lost = 2 * determinant / np.maximum(trace + root, np.finfo(float).tiny)
    np.fill_diagonal(lost, np.inf)
    return [*map(int, np.unravel_index(np.argmin(lost), lost.shape))]


def _leading(A: Array, G: Array) -> Array:
    """v such that W v is the first left singular vector of W F, for two columns."""
    values, vectors = np.linalg.eig(G @ A)
    v = np.real(vectors[:, int(np.argmax(np.real(values)))])
    return v if v.sum() >= 0 else -v
