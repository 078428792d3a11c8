"""Extrapolation between sweeps, undone where the objective rose."""

from __future__ import annotations

from typing import Any

from deepmf.core.quadratic import Array
from deepmf.core.terms import Factor, H
from deepmf.fitting.sweep import Sweep
from deepmf.solvers.positive import positive_ahead

_FIRST = 0.5
"""beta at first."""

_GROWTH, _CEILING_GROWTH, _DECAY = 1.05, 1.01, 0.5
"""Growth of beta and of its ceiling after a success, and decay of beta after a failure."""


class Extrapolation:
    """Starts each sweep ahead of where the last one ended.

    ::

        M  <-  P(M + beta (M - M before)),    for every factor M of the layers being swept

    If the objective is higher after such a sweep than before it, the sweep is undone, the next
    one starts where the last good one ended, and beta is halved; otherwise beta grows, up to a
    ceiling just below where it failed last. So the objective never increases from sweep to sweep.

    Parameters
    ----------
    sweep : Sweep
        The sweep to be run; its state and panels are those that move.

    References
    ----------
    Ang, Gillis, "Accelerating nonnegative matrix factorization algorithms using extrapolation",
    Neural Computation 31 (2019).
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._beta, self._ceiling = _FIRST, 1.0
        self._before = self._now = self._factors()
        self._data = sweep.state.data
        self._moving = False

    def run(self) -> None:
        """Step ahead, then sweep."""
        sweep, s = self._sweep, self._sweep.state
        self._now, self._data = self._factors(), s.data
        beta = self._beta if self._moving else 0.0
        if beta:
            for factor, M in self._now.items():
                constraint, _ = sweep.problem.layers[factor.layer].of(factor.kind)
                before = self._before[factor]
                if sweep.problem.keeps_zeros:
                    s[factor] = positive_ahead(M, before, beta, constraint)
                else:
                    s[factor] = constraint.project(M + beta * (M - before))
        sweep.ahead = beta
        sweep.run()
        self._before = self._now

    def succeeded(self) -> None:
        """Extrapolate further next time."""
        if self._moving:
            self._beta = min(self._beta * _GROWTH, self._ceiling)
            self._ceiling = min(self._ceiling * _CEILING_GROWTH, 1.0)
        self._moving = True

    def failed(self) -> None:
        """Undo the sweep; the next one starts where this one should have."""
        s = self._sweep.state
        for factor, M in self._now.items():
            s[factor] = M
        if H(0) in self._sweep.blocks:
            s.data = self._data
            self._sweep.panels.codes.undo()
        self._ceiling = self._beta
        self._beta *= _DECAY
        self._moving = False

    def memory(self) -> dict[str, Any]:
        """All that the next sweep depends on besides the state, as plain data."""
        return {
            "beta": self._beta,
            "ceiling": self._ceiling,
            "moving": self._moving,
            "before": list(self._before.values()),
        }

    def recall(self, memory: dict[str, Any]) -> None:
        """Resume from what `memory` gave."""
        self._beta, self._ceiling = memory["beta"], memory["ceiling"]
        self._moving = memory["moving"]
        self._before = dict(zip(self._before, memory["before"]))

    def _factors(self) -> dict[Factor, Array]:
        """The factors that move, H_1 apart."""
        return {
            factor: self._sweep.state[factor] for factor in self._sweep.blocks if factor != H(0)
        }
