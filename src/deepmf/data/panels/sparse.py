"""X as a SciPy sparse matrix, never made dense: memory and time go with its nonzeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf.core.quadratic import Array
from deepmf.core.terms import DataTerm
from deepmf.data.matrix import Stats
from deepmf.data.panels.base import Coding
from deepmf.data.panels.columns import ColumnPanels, Task
from deepmf.data.panels.counts import CountPass, log_sums_sparse
from deepmf.data.panels.products import Squares, Sums
from deepmf.kernels.padding import EVEN, TILE, VECTOR, aligned, padded, up_to
from deepmf.solvers.dispatch import frozen

if TYPE_CHECKING:
    from deepmf.kernels.descent import Descent

_COLUMNS = 256
"""Columns whose codes the compiled pass improves together."""

_BLOCK = 1 << 19
"""Entries of the residual that are formed together: 4 MB."""

_DIGITS = 1e-7
"""Relative squared error below which traces have lost too many of float64's digits."""


class SparsePanels(ColumnPanels):
    """Column panels of a matrix in compressed columns.

    Parameters
    ----------
    X : sparse array or matrix, m x n
        float32 or float64, each entry listed once. CSC (the transpose of CSR) is used as it is,
        any other kind is converted once.
    width : int, optional
        Columns in a panel.
    stats : Stats, optional
        Statistics of X, if they have been gathered.
    """

    tasks = 8  # each sends back m x r_1 numbers, which may be as many as its nonzeros

    def __init__(self, X: Any, width: int | None = None, stats: Stats | None = None) -> None:
        super().__init__(sparse.csc_array(X), width, stats)

    def _panel(self, cols: slice) -> Any:
        first, last = self.X.indptr[[cols.start, cols.stop]]
        parts = (
            self.X.data[first:last],
            self.X.indices[first:last],
            self.X.indptr[cols.start : cols.stop + 1] - first,
        )
        return sparse.csc_array(parts, shape=(self.shape[0], cols.stop - cols.start))

    @staticmethod
    def _norms2_of(P: Any) -> Array:
        return P.astype(np.float64).power(2).sum(axis=0)

    @property
    def _entries(self) -> float:
        return self.X.nnz / self.shape[1]

    def _fusable(self, G: Array) -> bool:
        return True

    def _fused(self, coding: Coding, squares: Squares, descent: Descent) -> Task:
        from deepmf.kernels import fused  # compiles, or loads compiled code, when first needed

        r, V = coding.rank, squares.V
        A = padded(squares.A, self.dtype, EVEN, EVEN)
        G = padded(-coding.G, self.dtype, 1, VECTOR)
        X = self._parts

        def task(cols: slice) -> Sums:
            XHt = aligned(len(G), G.shape[1], np.float64)
            HHt = aligned(len(A), up_to(TILE, r), np.float64)
            ends = (cols.start, cols.stop, _COLUMNS)
            fused.update_sparse(*X, A, G, V, self.codes.H, *ends, XHt, HHt, descent)
            return XHt[:, :r], HHt[:r, :r]

        return task

    def _general_width(self, terms: Sequence[DataTerm]) -> int:
        """See `ColumnPanels`; some distances make a panel dense."""
        dense = any(t.fit.needs_zeros for t in terms)
        return max(1, min(self.width, _BLOCK // self.shape[0])) if dense else self.width

    @property
    def _parts(self) -> list[Array]:
        return [frozen(part) for part in (self.X.data, self.X.indices, self.X.indptr)]

    def _counted(self, one_pass: CountPass) -> Task:
        X, H = self._parts, self.codes.H
        return lambda cols: one_pass.sparse(X, H, cols.start, cols.stop)

    def _log_sums(self, terms: Sequence[DataTerm], cols: slice) -> Array:
        return log_sums_sparse(self._parts, terms, self.codes.H, cols.start, cols.stop)

    def _stored(self, cols: slice) -> Array:
        first, last = self.X.indptr[[cols.start, cols.stop]]
        return np.asarray(self.X.data[first:last])

    def residuals2(self, bases: Sequence[Array]) -> Array:
        """See `Panels.residuals2`.

        ``||X||^2 - 2 <B, X H'> + <B'B, H H'>``, always in float64, costs as much as the nonzeros.
        It is right to 1e-15 ||X||^2, so where less than 1e-7 ||X||^2 is left the residual itself is
        formed, a few columns at a time. That costs as much as dense data would, but such fits are
        rare: sparse data are seldom of low rank.
        """
        XHt = np.zeros((self.shape[0], len(self.codes.H)))
        for cols, P in self._panels():
            XHt += P.astype(np.float64, copy=False) @ self.codes.H[:, cols].T.astype(np.float64)
        H = self.codes.H.astype(np.float64, copy=False)
        HHt = H @ H.T
        out = [self.norm2 + float(np.sum(B * (B @ HHt - 2 * XHt))) for B in bases]
        exact = [e if e >= _DIGITS * self.norm2 else self._residual2(B) for e, B in zip(out, bases)]
        return np.array(exact, dtype=float)

    def _residual2(self, B: Array) -> float:
        total = 0.0
        step = max(1, _BLOCK // self.shape[0])
        for start in range(0, self.shape[1], step):
            cols = slice(start, min(start + step, self.shape[1]))
            total += float(
                np.sum(np.square(self._panel(cols).toarray() - B @ self.codes.H[:, cols]))
            )
        return total

    def columns(self, index: Sequence[int] | NDArray[np.intp]) -> Array:
        """See `Panels.columns`."""
        dense: Array = self._some(index).toarray()
        return dense

    def leading(self, k: int, members: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """See `Panels.leading`; some columns are copied once rather than chosen every time."""
        if members is None:
            return super().leading(k)
        return SparsePanels(self.X[:, members], self.width).leading(k)
