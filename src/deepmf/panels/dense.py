"""X as a NumPy array, in either memory order, never copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf.panels.base import Coding
from deepmf.panels.columns import ColumnPanels
from deepmf.quadratic import Array
from deepmf.solvers.dispatch import frozen


class DensePanels(ColumnPanels):
    """Column panels of an array, used as it is."""

    X: Array
    tasks = 32

    def _panel(self, cols: slice) -> Array:
        return self.X[:, cols]

    @staticmethod
    def _norms2_of(P: Array) -> Array:
        return np.einsum("ij,ij->j", P, P, dtype=np.float64)

    @property
    def _entries(self) -> float:
        return self.shape[0]

    @property
    def _fusable(self) -> bool:
        return self.X.flags.c_contiguous or self.X.flags.f_contiguous

    def _fused(self, coding: Coding, kernel: tuple[Any, ...], cols: slice) -> tuple[Array, Array]:
        return fused_pass(self.X, coding, kernel, self.H, cols.start, cols.stop)

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


def fused_pass(
    X: Array, coding: Coding, kernel: tuple[Any, ...], H: Array, first: int, last: int
) -> tuple[Array, Array]:
    """Improve columns first, ..., last - 1 of H in place; their X H' and H H'.

    X is contiguous in one of the two orders.
    """
    from deepmf.panels import fused  # compiles, or loads what was compiled, when first needed

    m, r = coding.G.shape
    A = np.ascontiguousarray(coding.A, dtype=X.dtype)
    HHt = np.zeros((r, r))
    X = frozen(X)
    if X.flags.c_contiguous:
        XHt = np.zeros((m, r))
        G = np.ascontiguousarray(coding.G, dtype=X.dtype)
        fused.update_rows(X, A, G, H, first, last, XHt, HHt, *kernel)
        return XHt, HHt
    HXt = np.zeros((r, m))
    Gt = np.ascontiguousarray(coding.G.T, dtype=X.dtype)
    fused.update_columns(X.T, A, Gt, H, first, last, HXt, HHt, *kernel)
    return HXt.T, HHt
