"""X as a NumPy array, in either memory order, never copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf.core.quadratic import Array
from deepmf.core.state import DataProducts
from deepmf.data.panels.base import Coding
from deepmf.data.panels.columns import ColumnPanels, Task
from deepmf.kernels.padding import EVEN, TILE, VECTOR, padded, up_to
from deepmf.solvers.dispatch import frozen

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

    def _fused(self, coding: Coding, kernel: tuple[Any, ...]) -> Task:
        one_pass = FusedPass(coding, kernel, self.dtype)
        return lambda cols: one_pass(self.X, self.H, cols.start, cols.stop)

    def residuals2(self, bases: Sequence[Array]) -> Array:
        """See `Panels.residuals2`."""
        out = np.zeros(len(bases))
        small = [B.astype(self.dtype, copy=False) for B in bases]
        for cols, P in self._panels():
            for i, B in enumerate(small):
                out[i] += np.sum(np.square(P - B @ self.H[:, cols]), dtype=np.float64)
        return out

    def columns(self, index: Sequence[int] | NDArray[np.intp]) -> Array:
        """See `Panels.columns`."""
        return self._some(index)


class FusedPass:
    """The compiled pass over columns of arrays that are contiguous in one of the two orders."""

    def __init__(self, coding: Coding, kernel: tuple[Any, ...], dtype: np.dtype) -> None:
        m, self.r = coding.G.shape
        self.kernel = kernel
        self.A = padded(coding.A, dtype, EVEN, EVEN)
        self.G = padded(-coding.G, dtype, 1, EVEN)
        self.Gt = padded(-coding.G.T, dtype, EVEN, VECTOR)
        columns = _BLOCK_BYTES // (m * dtype.itemsize) // _BLOCK_STEP * _BLOCK_STEP
        self.block = min(max(columns, _BLOCK_STEP), _WIDEST_BLOCK)

    def __call__(self, X: Array, H: Array, first: int, last: int) -> DataProducts:
        """Improve columns first, ..., last - 1 of H in place; their X H' and H H'."""
        from deepmf.kernels import fused  # compiles, or loads what was compiled, when first needed

        m, r, X = len(X), self.r, frozen(X)
        wide = up_to(TILE, r)
        HHt = np.zeros((len(self.A), wide))
        if X.flags.c_contiguous:
            XHt = np.zeros((up_to(EVEN, m), wide))
            fused.update_rows(X, self.A, self.G, H, first, last, self.block, XHt, HHt, *self.kernel)
            return DataProducts(XHt[:m, :r], HHt[:r, :r], 0.0)
        HXt = np.zeros(self.Gt.shape)
        fused.update_columns(
            X.T, self.A, self.Gt, H, first, last, self.block, HXt, HHt, *self.kernel
        )
        return DataProducts(HXt.T[:m, :r], HHt[:r, :r], 0.0)
