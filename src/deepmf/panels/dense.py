"""X as a NumPy array, in either memory order, never copied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepmf.panels.columns import ColumnPanels
from deepmf.quadratic import Array


class DensePanels(ColumnPanels):
    """Column panels of an array, used as it is."""

    X: Array

    def _panel(self, cols: slice) -> Array:
        return self.X[:, cols]

    @staticmethod
    def _norms2_of(P: Array) -> Array:
        return np.sum(np.square(P, dtype=np.float64), axis=0)

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
