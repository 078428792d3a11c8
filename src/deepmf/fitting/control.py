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
"""Reasons to stop, the most serious last."""

_LEAST_EXPLAINED = 0.01
"""Smallest explained fraction of the data's squares that makes the stopping rule stricter."""

_LATEST = 5
"""Sweeps over which a decrease is judged where a penalty is gradual."""

_TINY = 0.1
"""Fraction of the tolerance below which it does not matter whether decreases grow."""

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
        self,
        rows: Sequence[Progress],
        fit_term: float,
        consistent: bool,
        taken: bool,
        gradual: bool = False,
        ahead: bool = True,
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
        gradual : bool
            Whether a penalty gains on the loss slowly at first.
        ahead : bool
            Whether the sweep was extrapolated. One that was not, and yet increased the objective,
            is at the limit of its digits: the next would do the same.
        """
        now = rows[-1]
        decrease = rows[-2].objective - now.objective
        if [call for call in self.callbacks or () if call(now)]:
            return "callback"
        if not consistent and not max(now.layer_errors.max(), now.data_errors.max()) < _DIVERGED:
            return "diverged"
        if self.max_time is not None and now.time >= self.max_time:
            return "max_time"
        if self.tol > 0 and not (taken or ahead):
            return "tol"
        change = decrease if consistent else abs(decrease)
        small = self.tol * fit_term * min(1.0, _explained(now))
        slow = taken and self.tol > 0 and change <= small
        return "tol" if slow and not (gradual and _gathers_speed(rows, small)) else None


def _gathers_speed(rows: Sequence[Progress], small: float) -> bool:
    """Whether the decrease over the latest sweeps is not small, or grows.

    A volume begins to shrink by little, and by more and more as extrapolation gathers speed.
    """
    if len(rows) <= 2 * _LATEST:
        return True
    before, middle, now = (rows[k].objective for k in (-1 - 2 * _LATEST, -1 - _LATEST, -1))
    limit = _LATEST * small
    return middle - now > min(limit, max(before - middle, _TINY * limit))


def _explained(now: Progress) -> float:
    """Explained over unexplained squares of the data, by the layer that explains most.

    Of data that are mostly noise, such as texts, components explain a few percent only, and a
    decrease that is small beside the loss may be large beside these.
    """
    errors = now.data_errors if np.isfinite(now.data_errors).any() else now.layer_errors
    left = float(np.nanmin(errors))
    return max(1 - left, _LEAST_EXPLAINED) / left if left > 0 else 1.0
