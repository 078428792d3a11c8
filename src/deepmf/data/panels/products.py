"""Products of one panel of X: a coding's surrogates in the codes, and sums for those in B."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import DataSurrogates
from deepmf.core.terms import DataTerm
from deepmf.data.panels.base import Coding, squared_answer

Sums = Sequence[Any]
"""Arrays or surrogates that add up over columns."""


class Products:
    """Surrogates of any data terms, panel by panel.

    Parameters
    ----------
    panel : function
        Some neighboring columns of X.
    coding : Coding
        The problem whose terms they are.
    dtype : dtype
        Of the data.
    """

    def __init__(self, panel: Callable[[slice], Any], coding: Coding, dtype: np.dtype) -> None:
        self.panel, self.terms, self.dtype = panel, coding.terms, dtype
        self.coupling = coding.coupling
        self.tau, self.V = 0.0, np.zeros((coding.rank, 1), dtype)

    def shift(self, tau: float, V: Array | float) -> None:
        """Add ``tau/2 ||H||^2 - <V, H>``, from a penalty on the codes, to every panel."""
        self.tau = tau
        if isinstance(V, float):
            self.V = np.full(self.V.shape, V, self.dtype)
        else:
            self.V = np.ascontiguousarray(V, dtype=self.dtype)

    def V_of(self, cols: slice) -> Array:
        """V of some columns."""
        return self.V if self.V.shape[1] == 1 else self.V[:, cols]

    def of_codes(self, P: Any, H: Array, cols: slice) -> Any:
        """Surrogate of a panel's problem, touching at its codes H."""
        parts = [t.weight * self._codes(t, P, H) for t in self.terms if t.weight]
        if self.tau or np.any(self.V):
            parts.append(Quadratic(((self.tau, 1.0),) if self.tau else (), self.V_of(cols)))
        if self.coupling is not None:
            parts.append(Quadratic.of(A=self.coupling.astype(self.dtype)))
        return reduce(add, parts)

    def _codes(self, t: DataTerm, P: Any, H: Array) -> Any:
        """Surrogate of a term in the codes."""
        return t.fit.codes(P, t.B, H)

    def _basis(self, t: DataTerm, P: Any, H: Array) -> Any:
        """Surrogate of a term in its basis."""
        return t.fit.basis(P, t.B, H)

    def sums(self, P: Any, H: Array) -> Sums:
        """A panel's contribution to the answer, once its codes are H."""
        H64 = H.astype(np.float64, copy=False)
        return [H64 @ H64.T, *(self._basis(t, P, H) for t in self.terms)]

    def answer(self, total: Sums, norm2: float, penalty: float) -> DataSurrogates:
        """The surrogates in B, from the sums over all columns."""
        HHt, *terms = total
        return DataSurrogates(tuple(terms), False, penalty, HHt)


class Squares(Products):
    """Products of squared errors: G'X before the codes are improved, X H' and H H' after."""

    def __init__(self, panel: Callable[[slice], Any], coding: Coding, dtype: np.dtype) -> None:
        super().__init__(panel, coding, dtype)
        self.A = coding.A
        self.Gt = coding.G.T.astype(dtype, copy=False)

    def shift(self, tau: float, V: Array | float) -> None:
        """See `Products.shift`: A + tau I."""
        super().shift(tau, V)
        if tau:
            self.A = self.A + tau * np.eye(len(self.A))

    def GtX(self, P: Any, H: Array, cols: slice) -> Array:
        """G'X + V of a panel whose codes are H."""
        GtX = np.ascontiguousarray(self.Gt @ P)
        GtX += self.V_of(cols)
        return GtX

    def of_codes(self, P: Any, H: Array, cols: slice) -> Quadratic:
        """1/2 <H, A H> - <G'X + V, H>."""
        return Quadratic.of(A=self.A.astype(self.dtype, copy=False), C=self.GtX(P, H, cols))

    def sums(self, P: Any, H: Array) -> Sums:
        """X H' and H H'."""
        H64 = H.astype(np.float64, copy=False)
        return np.asarray(P.astype(np.float64, copy=False) @ H64.T), H64 @ H64.T

    def answer(self, total: Sums, norm2: float, penalty: float) -> DataSurrogates:
        """See `squared_answer`."""
        XHt, HHt = total
        return squared_answer(XHt, HHt, norm2, len(self.terms), penalty)
