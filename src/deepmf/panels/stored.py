"""X on disk, read one panel at a time and never held as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf.panels.base import Coding
from deepmf.panels.dense import DensePanels, fused_pass
from deepmf.quadratic import Array
from deepmf.stored import Stored


class StoredPanels(DensePanels):
    """Column panels of a `Stored` matrix; H_1 is in memory."""

    X: Any

    def __init__(self, X: Stored, width: int | None = None) -> None:
        super().__init__(X, X.width if width is None else width)

    def _panel(self, cols: slice) -> Array:
        return self.X.columns(cols.start, cols.stop)

    def _task_width(self, r: int) -> int:
        return self.width

    @property
    def _fusable(self) -> bool:
        return True

    def _fused(self, coding: Coding, kernel: tuple[Any, ...], cols: slice) -> tuple[Array, Array]:
        H = np.ascontiguousarray(self.H[:, cols])
        sums = fused_pass(self._panel(cols), coding, kernel, H, 0, H.shape[1])
        self.H[:, cols] = H
        return sums

    def _some(self, index: Sequence[int] | NDArray[np.intp]) -> Array:
        return self.X.some(np.asarray(index, dtype=np.intp))
