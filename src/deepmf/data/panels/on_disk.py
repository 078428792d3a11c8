"""X on disk, read one panel at a time and never held as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf.core.quadratic import Array
from deepmf.core.state import DataProducts
from deepmf.data.on_disk import Stored
from deepmf.data.panels.base import Coding
from deepmf.data.panels.columns import Task
from deepmf.data.panels.dense import DensePanels, FusedPass


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
    def _contiguous(self) -> bool:
        return True

    def _fused(self, coding: Coding, kernel: tuple[Any, ...]) -> Task:
        one_pass = FusedPass(coding, kernel, self.dtype)

        def task(cols: slice) -> DataProducts:
            H = np.ascontiguousarray(self.H[:, cols])
            products = one_pass(self._panel(cols), H, 0, H.shape[1])
            self.H[:, cols] = H
            return products

        return task

    def _some(self, index: Sequence[int] | NDArray[np.intp]) -> Array:
        return self.X.some(np.asarray(index, dtype=np.intp))
