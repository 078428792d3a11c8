"""Successive nonnegative projection algorithm (SNPA, Gillis 2014): extreme columns of X."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import counted, setting
from deepmf.constraints.simplex import CappedSimplex
from deepmf.core.quadratic import Array, Quadratic
from deepmf.data.panels.base import Panels
from deepmf.init.base import StartError
from deepmf.init.outliers import usual_columns
from deepmf.solvers.projected_gradient import FastProjectedGradient

_NEGLIGIBLE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-9}
"""Squared distance, relative to the largest column, at which no further vertex is left."""

_SUSPECT = 1e-4
"""Squared distance, likewise relative, below which it is computed exactly before it is believed."""

_TIE = 1e-6
_SMALLEST_BATCH = 64
_INNER_ITER = 100
_INNER_TOL = 1e-2


def snpa(panels: Panels, rank: int, rng: np.random.Generator | None = None) -> Array:
    """X_K, where K adds one at a time the column farthest from the hull of those chosen.

    ::

        k = argmax_j d_j(K),   d_j(K) = min { ||x_j - X_K h||^2 : h >= 0, sum h <= 1 }

    Ties (within 1e-6) go to the column of larger norm. d_j only falls as K grows, so a distance
    once computed bounds it from above ever after: only columns whose bound reaches the largest
    distance are looked at again, and most never are. Outliers (`usual_columns`) count as zero.
    """
    hull = _Hull(panels, rank)
    while True:
        j = hull.farthest()
        if hull.bounds[j] <= _NEGLIGIBLE[panels.dtype] * hull.norms2.max():
            raise StartError(
                f"SNPA found only {counted(hull.size, 'vertex', 'vertices')} where rank {rank} was "
                f"asked for: the other columns are mixtures of these. Lower the rank to "
                f"{hull.size}, or use {setting(init='random')} or {setting(init='nndsvd')}."
            )
        hull.add(j)
        if hull.size == rank:
            return hull.W


class _Hull:
    """The chosen columns, and an upper bound on every column's distance to their hull."""

    def __init__(self, panels: Panels, rank: int) -> None:
        self.panels = panels
        self.norms2 = np.where(usual_columns(panels), panels.column_norms2(), 0)
        self.bounds = self.norms2.copy()
        # For which size of the hull each bound was last computed, and last computed exactly.
        self.seen = np.zeros(len(self.bounds), dtype=int)
        self.exact = self.seen.copy()
        self.codes = np.zeros((rank, len(self.bounds)), dtype=panels.dtype)
        self.W = np.empty((panels.shape[0], 0))

    @property
    def size(self) -> int:
        """Number of vertices."""
        return self.W.shape[1]

    def farthest(self) -> int:
        """The column of largest distance, or among ties the one of largest norm."""
        batch = exact_batch = _SMALLEST_BATCH
        while True:
            near = np.flatnonzero(self.bounds >= (1 - _TIE) * self.bounds.max())
            if (self.seen[near] < self.size).any():
                known = self.bounds[self.seen == self.size].max(initial=0.0)
                stale = (self.seen < self.size) & (self.bounds >= (1 - _TIE) * known)
                self._measure(self._largest(stale, batch))
                batch *= 2
                continue
            doubtful = self.exact[near] < self.size
            if doubtful.any() and self.bounds[near[0]] <= _SUSPECT * self.norms2.max():
                self._measure_exactly(self._largest(self.exact < self.size, exact_batch))
                exact_batch *= 2
                continue
            return int(near[np.argmax(self.norms2[near])])

    def add(self, j: int) -> None:
        """Make column j a vertex, coded by itself alone."""
        self.codes[:, j] = 0
        self.codes[self.size, j] = 1
        self.W = np.column_stack([self.W, self.panels.columns([j])])
        self.bounds[j] = 0
        self.seen[j] = self.exact[j] = np.iinfo(int).max

    def _largest(self, among: NDArray[np.bool_], count: int) -> NDArray[np.intp]:
        """The columns of largest bound among some."""
        index = np.flatnonzero(among)
        return index[np.argsort(self.bounds[index])[::-1][:count]]

    def _measure(self, index: NDArray[np.intp]) -> None:
        """Distances of some columns, their codes warm-started."""
        k = self.size
        q = Quadratic.of(A=self.W.T @ self.W, C=self.panels.dot(self.W, index))
        H = FastProjectedGradient().solve(
            q, CappedSimplex(), self.codes[:k, index].astype(float), _INNER_ITER, _INNER_TOL
        )
        self.codes[:k, index] = H
        distance = self.norms2[index] - np.sum(H * (q.C - q.gradient(H)), axis=0)
        self.bounds[index] = np.clip(distance, 0, self.bounds[index])
        self.seen[index] = k

    def _measure_exactly(self, index: NDArray[np.intp]) -> None:
        """Distances by an active set: NNLS with a slack and a heavy row for sum h + slack = 1."""
        from scipy.optimize import nnls  # late: it loads slowly

        heavy = 1e5 * float(np.sqrt(self.norms2.max()))
        A = np.vstack(
            [np.column_stack([self.W, np.zeros(len(self.W))]), heavy * np.ones(self.size + 1)]
        )
        for j in index:
            x = self.panels.columns([j])[:, 0]
            h = nnls(A, np.append(x, heavy))[0][:-1]
            h /= max(h.sum(), 1.0)
            self.bounds[j] = min(self.bounds[j], np.sum((x - self.W @ h) ** 2))
            self.codes[: self.size, j] = h
        self.seen[index] = self.exact[index] = self.size
