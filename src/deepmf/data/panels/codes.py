"""The codes H_1 of a fit, with the iterate before them for extrapolation and undo."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deepmf._utils.threads import do_in_threads
from deepmf.constraints.base import Constraint
from deepmf.core.quadratic import Array
from deepmf.solvers.dispatch import step_ahead
from deepmf.solvers.positive import positive_ahead

_TASK_ENTRIES = 1 << 20
"""Codes that a thread extrapolates in one task."""


class Step(NamedTuple):
    """An update under way: from P(H + beta (H - to)) into ``to``, which holds the codes before."""

    H: Any
    to: Any
    beta: float


class Codes:
    """H_1 and the codes before the last update, in two buffers that change roles.

    Parameters
    ----------
    H : array, r_1 x n
        The codes; no rows before a start has made some.
    """

    def __init__(self, H: Any) -> None:
        self.H = H
        self._spare: Any = None
        self._behind = False  # whether the spare buffer holds the codes before the last update

    def set(self, H: Any) -> None:
        """Replace the codes by a copy, and forget those before."""
        self.take(self._copy(H))

    def take(self, H: Any) -> None:
        """Replace the codes by an array that nobody else keeps, and forget those before."""
        self.H, self._behind = H, False

    def rescale(self, scales: Array) -> None:
        """Multiply each row by a number, and forget the codes before."""
        self.set(self.H * scales[:, None].astype(self.H.dtype))

    @property
    def before(self) -> Any:
        """The codes before the last extrapolated update; None where there are none."""
        return self._spare if self._behind else None

    def recall(self, before: Any) -> None:
        """Restore, after `set`, what `before` was."""
        self._spare, self._behind = self._copy(before), True

    def step(self, beta: float) -> Step:
        """Let the buffers change roles for an update that begins ahead; `undo` takes it back."""
        spare = self._spare
        if not self._behind:
            beta = 0.0
            if spare is None or spare.shape != self.H.shape or spare.dtype != self.H.dtype:
                spare = self._like(self.H)
        step = Step(self.H, spare, beta)
        self.H, self._spare, self._behind = spare, self.H, True
        return step

    def step_ahead(
        self, beta: float, constraint: Constraint, width: int, positive: bool = False
    ) -> None:
        """H <- P(H + beta (H - H before)), keeping H; some columns at a time, on all threads.

        ``positive``: for updates that keep zeros, see `positive_ahead`.
        """
        H, to, beta = self.step(beta)
        if beta == 0.0:
            to[...] = H
        r, n = H.shape
        width = n if constraint.separable is None else max(width, _TASK_ENTRIES // max(r, 1))

        def task(start: int) -> None:
            cols = slice(start, start + width)
            if positive:
                to[:, cols] = positive_ahead(H[:, cols], to[:, cols], beta, constraint)
            else:
                step_ahead(H[:, cols], to[:, cols], beta, constraint)

        do_in_threads(task, list(range(0, n, width)))

    def undo(self) -> None:
        """Take back the last extrapolated update."""
        if self._behind:
            self.H, self._spare, self._behind = self._spare, self.H, False

    def _copy(self, H: Any) -> Any:
        return np.array(H, dtype=self.H.dtype, order="C")

    def _like(self, H: Array) -> Any:
        return np.empty_like(H)
