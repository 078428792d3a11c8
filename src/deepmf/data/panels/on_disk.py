"""X on disk, read one panel at a time and never held as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepmf.data.on_disk import OnDisk
from deepmf.data.panels.base import Coding
from deepmf.data.panels.columns import Task
from deepmf.data.panels.dense import DensePanels, FusedPass
from deepmf.data.panels.products import Squares, Sums

if TYPE_CHECKING:
    from deepmf.kernels.descent import Descent


class OnDiskPanels(DensePanels):
    """Column panels of an `OnDisk` matrix; H_1 is in memory."""

    X: Any

    def __init__(self, X: OnDisk, width: int | None = None) -> None:
        super().__init__(X, X.width if width is None else width, X.stats)

    def _task_width(self, r: int) -> int:
        return self.width

    @property
    def _contiguous(self) -> bool:
        return True

    def _fused(self, coding: Coding, squares: Squares, descent: Descent) -> Task:
        one_pass = FusedPass(coding, squares, descent, self.dtype)

        def task(cols: slice) -> Sums:
            H = np.ascontiguousarray(self.codes.H[:, cols])
            V = np.ascontiguousarray(squares.V_of(cols))
            sums = one_pass(self._panel(cols), H, V, 0, H.shape[1])
            self.codes.H[:, cols] = H
            return sums

        return task
