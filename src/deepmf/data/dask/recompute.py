"""Panels of an X that does not fit in memory and is recomputed for every pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from deepmf.core.datafit import Datafit
from deepmf.core.quadratic import Array
from deepmf.core.state import DataSurrogates
from deepmf.core.terms import DataTerm
from deepmf.data.matrix import as_numpy
from deepmf.data.panels.base import Coding, Panels
from deepmf.solvers.base import Solver


class RecomputedPanels(Panels):
    """Panels that are made again for every pass; between passes only H_1 is kept.

    Parameters
    ----------
    make : function without arguments
        Gives the panels of X, by reading or computing X.
    """

    any_datafit = True

    def __init__(self, make: Callable[[], Panels]) -> None:
        self._make = make
        first = make()
        self.shape, self.dtype = first.shape, first.dtype
        self.norm2, self.count = first.norm2, first.count
        self._norms2 = first.column_norms2()

    def opened(self) -> Panels:
        """The panels of X with the present codes, for one pass."""
        panels = self._make()
        if len(self.codes.H):
            panels.codes.set(self.codes.H)
        return panels

    def begin(self, coding: Coding, positive: bool = False) -> None:
        """See `Panels.begin`."""
        panels = self._make()
        panels.begin(coding, positive)
        self.codes.take(as_numpy(panels.codes.H))

    def improve(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataSurrogates:
        """See `Panels.improve`."""
        panels = self.opened()
        answer = panels.improve(coding, solver, max_iter, tol)
        self.codes.H[...] = as_numpy(panels.codes.H)
        return answer

    def residuals2(self, bases: Sequence[Array]) -> Array:
        """See `Panels.residuals2`."""
        return self.opened().residuals2(bases)

    def values(self, terms: Sequence[DataTerm]) -> Array:
        """See `Panels.values`."""
        return self.opened().values(terms)

    def row_sums(self) -> Array:
        """See `Panels.row_sums`."""
        return self._make().row_sums()

    def null_distance(self, p: Array, fit: Datafit) -> float:
        """See `Panels.null_distance`."""
        return self._make().null_distance(p, fit)

    def column_norms2(self) -> Array:
        """See `Panels.column_norms2`."""
        return self._norms2

    def columns(self, index: Sequence[int] | NDArray[np.intp]) -> Array:
        """See `Panels.columns`; where none are asked for, nothing is read."""
        return self._make().columns(index) if len(index) else np.empty((self.shape[0], 0))

    def dot(self, G: Array, index: NDArray[np.intp] | None = None) -> Array:
        """See `Panels.dot`; where none are asked for, nothing is read."""
        if index is not None and not len(index):
            return np.empty((G.shape[1], 0))
        return self._make().dot(G, index)

    def leading(self, k: int, members: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """See `Panels.leading`."""
        return self._make().leading(k, members)
