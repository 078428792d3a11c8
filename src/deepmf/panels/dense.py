"""X as a NumPy array, in either memory order, never copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from deepmf.panels.base import Coding, Panels
from deepmf.parameters import check_integer
from deepmf.quadratic import Array
from deepmf.solvers.base import Solver
from deepmf.state import DataProducts

_WIDTH = 4096
"""Columns in a panel: wide enough for BLAS, narrow enough for work arrays to stay in cache."""

_LARGEST_GRAM = 1500
"""Up to this many rows, singular vectors come from the m x m Gram matrix; above, from Lanczos."""


class DensePanels(Panels):
    """Column panels of a matrix in memory.

    Parameters
    ----------
    X : array, m x n
        float32 or float64; used as it is.
    width : int, optional
        Columns in a panel.
    """

    def __init__(self, X: Array, width: int | None = None) -> None:
        self.X = X
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = X.dtype
        self.width = _WIDTH if width is None else width
        check_integer("panel_size", self.width, 1)
        self.count = -(-X.shape[1] // self.width)
        self._norms2 = np.empty(X.shape[1])
        for cols in self._slices():
            self._norms2[cols] = np.sum(np.square(X[:, cols], dtype=np.float64), axis=0)
        self.norm2 = float(self._norms2.sum())
        self.H: Array = np.zeros((0, X.shape[1]), dtype=X.dtype)

    def _slices(self) -> Iterator[slice]:
        for start in range(0, self.shape[1], self.width):
            yield slice(start, min(start + self.width, self.shape[1]))

    def begin(self, coding: Coding, positive: bool = False) -> None:
        """See `Panels.begin`."""
        K = np.linalg.pinv(coding.A, rcond=1e-10, hermitian=True) @ coding.G.T
        H = np.empty((len(coding.A), self.shape[1]), dtype=self.dtype)
        K = K.astype(self.dtype, copy=False)
        for cols in self._slices():
            H[:, cols] = K @ self.X[:, cols]
        if positive:
            H = np.maximum(H, 1e-2 * np.mean(np.abs(H)))
        if coding.constraint.separable is None:
            self.H = coding.constraint.project(H)
        else:
            for cols in self._slices():
                H[:, cols] = coding.constraint.project(H[:, cols])
            self.H = H

    def update(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataProducts:
        """See `Panels.update`."""
        m, r = coding.G.shape
        Gt = coding.G.T.astype(self.dtype, copy=False)
        XHt, HHt, penalty = np.zeros((m, r)), np.zeros((r, r)), 0.0
        for cols in self._slices():
            X, H = self.X[:, cols], self.H[:, cols]
            q = coding.quadratic(Gt @ X, H)
            H = solver.solve(q, coding.constraint, H, max_iter, tol)
            self.H[:, cols] = H
            XHt += X @ H.T
            H64 = H.astype(np.float64, copy=False)
            HHt += H64 @ H64.T
            penalty += coding.penalty(H64)
        return DataProducts(XHt, HHt, penalty)

    def residuals2(self, bases: Sequence[Array]) -> Array:
        """See `Panels.residuals2`."""
        out = np.zeros(len(bases))
        small = [B.astype(self.dtype, copy=False) for B in bases]
        for cols in self._slices():
            for i, B in enumerate(small):
                R = self.X[:, cols] - B @ self.H[:, cols]
                out[i] += np.sum(np.square(R), dtype=np.float64)
        return out

    def get_codes(self) -> Array:
        """See `Panels.get_codes`."""
        return self.H

    def set_codes(self, H: Array) -> None:
        """See `Panels.set_codes`."""
        self.H = np.array(H, dtype=self.dtype)

    def column_norms2(self) -> Array:
        """See `Panels.column_norms2`."""
        return self._norms2

    def columns(self, index: Sequence[int] | NDArray[np.intp]) -> Array:
        """See `Panels.columns`."""
        return self.X[:, np.asarray(index, dtype=np.intp)].astype(np.float64)

    def dot(self, G: Array) -> Array:
        """See `Panels.dot`."""
        out = np.empty((G.shape[1], self.shape[1]))
        Gt = G.T.astype(self.dtype, copy=False)
        for cols in self._slices():
            out[:, cols] = Gt @ self.X[:, cols]
        return out

    def leading(self, k: int, members: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """See `Panels.leading`."""
        m = self.shape[0]
        if m <= max(_LARGEST_GRAM, k + 1):
            gram = np.zeros((m, m))
            for X in self._members(members):
                gram += X @ X.T
            values, U = np.linalg.eigh(gram)
        else:
            XXt = LinearOperator((m, m), matvec=lambda v: self._gram_times(v, members), dtype=float)
            values, U = eigsh(XXt, k=k, v0=np.ones(m))
        top = np.argsort(values)[::-1][:k]
        return U[:, top], np.sqrt(np.maximum(values[top], 0))

    def _members(self, members: NDArray[np.bool_] | None) -> Iterator[Array]:
        for cols in self._slices():
            yield self.X[:, cols] if members is None else self.X[:, cols][:, members[cols]]

    def _gram_times(self, v: Array, members: NDArray[np.bool_] | None) -> Array:
        v = v.reshape(-1).astype(self.dtype, copy=False)
        out = np.zeros(self.shape[0])
        for X in self._members(members):
            out += X @ (X.T @ v)
        return out
