"""Hierarchical clustering by rank-two NMF (Gillis, Kuang and Park 2015)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepmf._utils.messages import counted, setting
from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels
from deepmf.init.base import StartError
from deepmf.init.outliers import Members, usual_columns

_GRID = np.arange(0.0, 1.0 + 1e-9, 0.01)
_HALF_WIDTH = 0.05


@dataclass(eq=False)
class _Leaf:
    """A cluster, its two first left singular vectors and values, and its halves."""

    members: Members
    U: Array
    s: Array
    halves: tuple[_Leaf, _Leaf] | None = None

    @property
    def center(self) -> Array:
        """The first singular vector, mostly positive."""
        return self.U[:, 0] if self.U[:, 0].sum() >= 0 else -self.U[:, 0]

    @property
    def energy(self) -> float:
        """s_1^2."""
        return float(self.s[0] ** 2)

    @property
    def gain(self) -> float:
        """s_1(K_1)^2 + s_1(K_2)^2 - s_1(K)^2."""
        if self.halves is None:
            return -np.inf
        return self.halves[0].energy + self.halves[1].energy - self.energy


def hierarchical(panels: Panels, rank: int, rng: np.random.Generator | None = None) -> Array:
    """Representatives of ``rank`` clusters, grown by splitting the leaf that gains most.

    Each is its cluster's column closest in MRSA to the cluster's first left singular vector.
    """
    root = _leaf(panels, usual_columns(panels))
    _prepare_split(panels, root)
    leaves = [root]
    while len(leaves) < rank:
        best = max(leaves, key=lambda leaf: leaf.gain)
        if best.halves is None:
            raise StartError(
                f"Hierarchical clustering found only {counted(len(leaves), 'cluster')} that can be "
                f"told apart where rank {rank} was asked for. Lower the rank to {len(leaves)}, or "
                f"use {setting(init='random')} or {setting(init='nndsvd')}."
            )
        leaves.remove(best)
        for half in best.halves:
            _prepare_split(panels, half)
            leaves.append(half)
    return panels.columns([_representative(panels, leaf) for leaf in leaves])


def _leaf(panels: Panels, members: Members) -> _Leaf:
    return _Leaf(members, *panels.leading(min(2, panels.shape[0]), members))


def _prepare_split(panels: Panels, leaf: _Leaf) -> None:
    """Fill ``leaf.halves`` by a rank-two NMF of its columns, where that separates any."""
    if np.count_nonzero(leaf.members) < 2 or min(panels.shape) < 2:
        return
    U, s = leaf.U, leaf.s
    if s[1] <= 1e-7 * s[0]:
        return
    score = _rank_two_scores(U, panels.dot(U)[:, leaf.members] / s[0])  # free of scale
    upper = score > _best_threshold(score)
    if upper.all() or not upper.any():
        return
    first, second = leaf.members.copy(), leaf.members.copy()
    first[leaf.members], second[leaf.members] = upper, ~upper
    leaf.halves = (_leaf(panels, first), _leaf(panels, second))


def _rank_two_scores(U: Array, SV: Array) -> Array:
    """v_1 / (v_1 + v_2) in [0, 1] for each column, X ~ W [v_1; v_2] with W two extreme columns."""
    i = int(np.argmax(np.sum(SV * SV, axis=0)))  # SPA: the longest column, then the longest
    a = SV[:, i] / np.linalg.norm(SV[:, i])  # of the rest after projecting it out
    j = int(np.argmax(np.abs(a[0] * SV[1] - a[1] * SV[0])))
    W = np.maximum(U @ SV[:, [i, j]], 0)
    V = _nnls_two(W.T @ W, (W.T @ U) @ SV)
    total = V.sum(axis=0)
    return np.divide(V[0], total, out=np.full_like(total, 0.5), where=total > 0)


def _nnls_two(A: Array, B: Array) -> Array:
    """argmin over V >= 0 of 1/2 <V, A V> - <V, B> with two rows, in closed form."""
    determinant = A[0, 0] * A[1, 1] - A[0, 1] ** 2
    alone = np.maximum(B, 0) / np.maximum(np.diag(A), np.finfo(float).tiny)[:, None]
    gains = alone * np.maximum(B, 0)
    best_alone = np.where([gains[0] >= gains[1], gains[0] < gains[1]], alone, 0)
    if determinant <= 1e-14 * A[0, 0] * A[1, 1]:
        return best_alone
    both = np.array([A[1, 1] * B[0] - A[0, 1] * B[1], A[0, 0] * B[1] - A[0, 1] * B[0]])
    both /= determinant
    return np.where((both >= 0).all(axis=0), both, best_alone)


def _best_threshold(score: Array) -> float:
    """argmin over t of -log(F(t) (1 - F(t))) + exp(G(t)): balanced, and through a sparse region.

    F(t) is the share of points <= t; G(t) the share within 0.05 of t over that interval's length
    inside [0, 1].
    """
    ordered = np.sort(score)
    n = len(ordered)
    F = np.searchsorted(ordered, _GRID, side="right") / n
    low, high = np.maximum(_GRID - _HALF_WIDTH, 0), np.minimum(_GRID + _HALF_WIDTH, 1)
    inside = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low, "left")
    with np.errstate(divide="ignore"):
        cost = -np.log(F * (1 - F)) + np.exp(inside / n / (high - low))
    return float(_GRID[np.argmin(cost)])


def _representative(panels: Panels, leaf: _Leaf) -> int:
    """Index of the member with the smallest mean-removed angle to the cluster's center."""
    m = panels.shape[0]
    u = leaf.center - leaf.center.mean()
    inner, sums = panels.dot(np.column_stack([u, np.ones(m)]))
    centred2 = np.maximum(panels.column_norms2() - sums**2 / m, 0)
    cosine = np.divide(inner, np.sqrt(centred2), out=np.zeros_like(inner), where=centred2 > 0)
    return int(np.argmax(np.where(leaf.members, cosine, -np.inf)))
