"""X as a NumPy array, in either memory order, never copied."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepmf.core.quadratic import Array
from deepmf.core.terms import DataTerm
from deepmf.data.panels.base import Coding
from deepmf.data.panels.columns import ColumnPanels, Task
from deepmf.data.panels.counts import CountPass, log_sums_dense
from deepmf.data.panels.products import Squares, Sums
from deepmf.kernels.padding import EVEN, TILE, VECTOR, padded, up_to
from deepmf.solvers.dispatch import frozen

if TYPE_CHECKING:
    from deepmf.kernels.descent import Descent

_BLOCK_BYTES = 3 << 17
"""Size of a block of X, of which two must fit in a core's second-level cache."""

_G_BYTES = 1 << 17
"""Largest G of the compiled pass, which goes through all of it for every few columns."""

_BLOCK_STEP, _WIDEST_BLOCK = 32, 256
"""A block's columns: a multiple of the former, at most the latter."""


class DensePanels(ColumnPanels):
    """Column panels of an array, used as it is."""

    X: Array
    tasks = 64

    def _panel(self, cols: slice) -> Array:
        return self.X[:, cols]

    @staticmethod
    def _norms2_of(P: Array) -> Array:
        return np.einsum("ij,ij->j", P, P, dtype=np.float64)

    @property
    def _entries(self) -> float:
        return self.shape[0]

    def _fusable(self, G: Array) -> bool:
        return self._contiguous and G.size * self.dtype.itemsize <= _G_BYTES

    @property
    def _contiguous(self) -> bool:
        return self.X.flags.c_contiguous or self.X.flags.f_contiguous

    def _fused(self, coding: Coding, squares: Squares, descent: Descent) -> Task:
        one_pass = FusedPass(coding, squares, descent, self.dtype)
        return lambda cols: one_pass(self.X, self.codes.H, squares.V, cols.start, cols.stop)

    def _counted(self, one_pass: CountPass) -> Task:
        products = one_pass.products

        def task(cols: slice) -> Sums:
            H = np.ascontiguousarray(self.codes.H[:, cols])
            V = np.ascontiguousarray(products.V_of(cols))
            sums = one_pass.dense(frozen(self._panel(cols)), V, H, 0, H.shape[1])
            self.codes.H[:, cols] = H
            return sums

        return task

    def _log_sums(self, terms: Sequence[DataTerm], cols: slice) -> Array:
        H = np.ascontiguousarray(self.codes.H[:, cols])
        return log_sums_dense(frozen(self._panel(cols)), terms, H, 0, H.shape[1])

    def _stored(self, cols: slice) -> Array:
        return self._panel(cols)

    def residuals2(self, bases: Sequence[Array]) -> Array:
        """See `Panels.residuals2`."""
        out = np.zeros(len(bases))
        small = [B.astype(self.dtype, copy=False) for B in bases]
        for cols, P in self._panels():
            for i, B in enumerate(small):
                out[i] += np.sum(np.square(P - B @ self.codes.H[:, cols]), dtype=np.float64)
        return out

    def columns(self, index: Sequence[int] | NDArray[np.intp]) -> Array:
        """See `Panels.columns`."""
        return self._some(index)


class FusedPass:
    """The compiled pass over columns of arrays that are contiguous in one of the two orders."""

    def __init__(self, coding: Coding, squares: Squares, descent: Descent, dtype: np.dtype) -> None:
        self.G, self.dtype, self.descent = coding.G, dtype, descent
        self.A = padded(squares.A, dtype, EVEN, EVEN)
        m, self.r = coding.G.shape
        columns = _BLOCK_BYTES // (m * dtype.itemsize) // _BLOCK_STEP * _BLOCK_STEP
        self.block = min(max(columns, _BLOCK_STEP), _WIDEST_BLOCK)

    @cached_property
    def _rows(self) -> Array:
        """-G for an X whose rows are contiguous."""
        return padded(-self.G, self.dtype, 1, EVEN)

    @cached_property
    def _columns(self) -> Array:
        """-G' for an X whose columns are contiguous."""
        return padded(-self.G.T, self.dtype, EVEN, VECTOR)

    def __call__(self, X: Array, H: Array, V: Array, first: int, last: int) -> Sums:
        """Improve columns first, ..., last - 1 of H in place; their X H' and H H'."""
        from deepmf.kernels import fused  # compiles, or loads compiled code, when first needed

        m, r, X = len(X), self.r, frozen(X)
        wide = up_to(TILE, r)
        HHt = np.zeros((len(self.A), wide))
        ends = (first, last, self.block)
        if X.flags.c_contiguous:
            XHt = np.zeros((up_to(EVEN, m), wide))
            fused.update_rows(X, self.A, self._rows, V, H, *ends, XHt, HHt, self.descent)
            return XHt[:m, :r], HHt[:r, :r]
        HXt = np.zeros(self._columns.shape)
        fused.update_columns(X.T, self.A, self._columns, V, H, *ends, HXt, HHt, self.descent)
        return HXt.T[:m, :r], HHt[:r, :r]
