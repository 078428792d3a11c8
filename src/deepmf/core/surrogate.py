"""The interface of surrogates: functions of one matrix that lie above a term and touch it."""

from __future__ import annotations

from typing import Any, Protocol

from deepmf.core.quadratic import Array


class Surrogate(Protocol):
    """A function s(M) that lies above a term of the loss and touches it at the current M.

    Decreasing s decreases the term. Surrogates are closed under sums, positive multiples and
    linear changes of their argument, which is all that a block of any model needs. `Quadratic`
    is the surrogate of squared errors; another divergence brings its own.
    """

    def __add__(self, other: Any) -> Any:
        """The sum of two surrogates."""

    def __rmul__(self, weight: float) -> Any:
        """A positive multiple."""

    def through(self, L: Array | None, R: Array | None, M: Array | None = None) -> Any:
        """A surrogate of ``M -> s(L M R)`` that touches it at the given M; None: the identity."""

    def value(self, M: Array) -> float:
        """s(M)."""

    def change(self, M: Array, D: Array) -> float:
        """s(M + D) - s(M)."""
