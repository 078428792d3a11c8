"""Stopping rules of a fit, and the limits of one block update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from deepmf._utils.messages import SettingError, setting
from deepmf.core.parameters import check_integer, check_number
from deepmf.fitting.history import Progress

Callback = Callable[[Progress], object]
"""Called after every sweep; a true return value stops the fit."""

CUT = ("max_time", "callback", "interrupted")
"""Reasons that end not only one run of sweeps but all that would follow."""

REASONS = ("tol", "max_iter", *CUT, "diverged")
"""Reasons to stop, the gravest last."""

_DIVERGED = 1e8
"""Relative squared error at which a model without a loss of its own is given up."""


@dataclass(frozen=True)
class Control:
    """Limits of a fit."""

    max_iter: int = 500
    tol: float = 1e-4
    max_time: float | None = None
    inner_iter: int = 10
    inner_tol: float = 0.01
    augment: int | None = None
    """Sweeps of each layer alone before the next one is added; None: until it settles."""
    extrapolate: bool = True
    """Whether sweeps start ahead of where the last one ended, see `Extrapolation`."""
    callbacks: Sequence[Callback] | None = None

    def __post_init__(self) -> None:
        for name, least in (("max_iter", 0), ("inner_iter", 1), ("augment", 0)):
            if name != "augment" or self.augment is not None:
                check_integer(setting(name), getattr(self, name), least)
        if not isinstance(self.extrapolate, bool | np.bool_):
            raise SettingError(
                f"{setting('extrapolate')} must be True or False, got {self.extrapolate!r}."
            )
        for name in ("tol", "inner_tol", "max_time"):
            if name != "max_time" or self.max_time is not None:
                check_number(setting(name), getattr(self, name), 0)
        calls = self.callbacks
        if calls is not None and not (
            isinstance(calls, list | tuple) and all(map(callable, calls))
        ):
            raise ValueError(f"callbacks must be a function or a list of functions, got {calls!r}.")

    def reason(
        self, rows: Sequence[Progress], fit_term: float, consistent: bool, taken: bool
    ) -> str | None:
        """Reason to stop after the last sweep; None: continue.

        Parameters
        ----------
        rows : sequence of Progress
            The history.
        fit_term : float
            The loss without penalties.
        consistent : bool
            Whether sweeps decrease one loss; otherwise they may diverge.
        taken : bool
            Whether the sweep was kept.
        """
        now = rows[-1]
        decrease = rows[-2].objective - now.objective
        if [call for call in self.callbacks or () if call(now)]:
            return "callback"
        if not consistent and not max(now.layer_errors.max(), now.data_errors.max()) < _DIVERGED:
            return "diverged"
        if self.max_time is not None and now.time >= self.max_time:
            return "max_time"
        change = decrease if consistent else abs(decrease)
        return "tol" if taken and self.tol > 0 and change <= self.tol * fit_term else None
