"""X computed again for every pass and let go of, where it does not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf.core.quadratic import Array
from deepmf.core.state import DataProducts
from deepmf.data.matrix import as_numpy
from deepmf.data.panels.base import Coding, Panels
from deepmf.solvers.base import Solver
from deepmf.solvers.dispatch import step_ahead


class RereadPanels(Panels):
    """Panels that are made anew for every pass; between passes only H_1 is kept.

    Parameters
    ----------
    make : function without arguments
        Gives the panels of X, by reading or computing X.
    """

    _codes: Any
    _before: Any

    def __init__(self, make: Callable[[], Panels]) -> None:
        self._make = make
        first = make()
        self.shape, self.dtype = first.shape, first.dtype
        self.norm2, self.count = first.norm2, first.count
        self._norms2 = first.column_norms2()
        self._take(None)

    def opened(self) -> Panels:
        """The panels of X with the present codes, for one pass."""
        panels = self._make()
        if self._codes is not None:
            panels.set_codes(self._codes)
        return panels

    def begin(self, coding: Coding, positive: bool = False) -> None:
        """See `Panels.begin`."""
        panels = self._make()
        panels.begin(coding, positive)
        self._take(as_numpy(panels.get_codes()))

    def update(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataProducts:
        """See `Panels.update`."""
        if coding.momentum is not None:
            ahead = self._codes.copy() if self._before is None else self._before
            step_ahead(self._codes, ahead, coding.momentum, coding.constraint)
            self._codes, self._before = ahead, self._codes
        panels = self.opened()
        products = panels.update(replace(coding, momentum=None), solver, max_iter, tol)
        self._codes = as_numpy(panels.get_codes())
        return products

    def undo(self) -> None:
        """See `Panels.undo`."""
        if self._before is not None:
            self._take(self._before)

    def _take(self, H: Any) -> None:
        self._codes, self._before = H, None

    def residuals2(self, bases: Sequence[Array]) -> Array:
        """See `Panels.residuals2`."""
        return self.opened().residuals2(bases)

    def get_codes(self) -> Any:
        """See `Panels.get_codes`."""
        return np.zeros((0, self.shape[1]), self.dtype) if self._codes is None else self._codes

    def set_codes(self, H: Any) -> None:
        """See `Panels.set_codes`."""
        self._take(np.array(H, dtype=self.dtype, order="C"))

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
