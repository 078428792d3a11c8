"""The interface of the data side: X in column panels, the codes H_1, and one pass per sweep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.digests import column_hashes
from deepmf._utils.messages import SettingError, setting
from deepmf.constraints import Constraint, Unconstrained
from deepmf.core.datafit import Datafit, SquaredError
from deepmf.core.divergence import BetaDivergence, beta_of
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import DataSurrogates
from deepmf.core.terms import DataTerm
from deepmf.data.matrix import as_numpy
from deepmf.data.panels.codes import Codes
from deepmf.regularizers.base import Regularizer
from deepmf.solvers import FastProjectedGradient, Solver
from deepmf.solvers.positive import LOWEST, inward

_HASHED_ENTRIES = 1 << 20
"""Entries of X that are hashed together."""


@dataclass(frozen=True)
class Coding:
    """H_1's problem: min over H in a set of sum_k w_k d(X, B_k H) + strength * penalty(H).

    For squared errors that is ``1/2 <H, A H> - <G'X, H>`` plus the penalty.
    """

    terms: tuple[DataTerm, ...]
    constraint: Constraint
    regularizer: Regularizer | None = None
    strength: float = 0.0
    ahead: float | None = None
    """Begin at P(H + ahead (H - H before)) and keep H for `Codes.undo`; None: begin at H."""
    coupling: Array | None = None
    """T of a further term ``1/2 <H, T H>``, which ties the codes of several layers."""

    @classmethod
    def of(
        cls,
        B: Array,
        constraint: Constraint,
        regularizer: Regularizer | None = None,
        strength: float = 0.0,
        ahead: float | None = None,
    ) -> Coding:
        """The problem with the single term ``1/2 ||X - B H||^2``."""
        return cls((DataTerm(1.0, B),), constraint, regularizer, strength, ahead)

    @property
    def rank(self) -> int:
        """Rows of H."""
        return self.terms[0].B.shape[1]

    @property
    def squared(self) -> bool:
        """Whether every term is a squared error."""
        return all(type(t.fit) is SquaredError for t in self.terms)

    @property
    def keeps_zeros(self) -> bool:
        """Whether zeros of the codes may stay: they begin at positive numbers then."""
        return any(t.fit.nonnegative for t in self.terms)

    @cached_property
    def A(self) -> Array:
        """``sum_k w_k B_k' B_k + T``."""
        return self.of_terms if self.coupling is None else self.of_terms + self.coupling

    @cached_property
    def of_terms(self) -> Array:
        """``sum_k w_k B_k' B_k``."""
        return np.asarray(sum(t.weight * (t.B.T @ t.B) for t in self.terms if t.weight))

    @cached_property
    def G(self) -> Array:
        """``sum_k w_k B_k``."""
        return np.asarray(sum(t.weight * t.B for t in self.terms if t.weight))

    @cached_property
    def least_squares(self) -> Array:
        """K such that K X are the codes of least squares without the constraint."""
        return np.linalg.pinv(self.A, rcond=1e-10, hermitian=True) @ self.G.T

    def shift(self, H: Array) -> tuple[float, Array | float] | None:
        """(tau, V) where ``tau/2 ||H||^2 - <V, H>`` lies above the penalty; None: another form.

        A shift adds ``tau I`` to A and V to G'X, so that the compiled passes carry it. It may tie
        columns together: it is found once per pass, from all codes.
        """
        if self.regularizer is None:
            return 0.0, 0.0
        return (self.strength * self.regularizer.majorize(H)).shift

    def with_penalty(self, q: Any, H: Array) -> Any:
        """The surrogate of some columns plus that of the penalty at their codes."""
        if self.regularizer is None:
            return q
        q = q + self.strength * self.regularizer.majorize(H)
        return q.astype(H.dtype) if isinstance(q, Quadratic) else q

    def penalty(self, H: Array) -> float:
        """The regularizer's value at some columns, without its strength."""
        if self.regularizer is None:
            return 0.0
        return self.regularizer.value(H.astype(np.float64, copy=False))


class Panels(ABC):
    """X (m x n, columns are data points) and its codes H_1, split into groups of columns.

    This is all a fit asks of the data, so a new kind of data is one subclass that knows nothing
    of models. Products come back in float64 whatever the data's type.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    norm2: float
    """||X||^2."""
    count: int = 1
    """Number of panels."""
    width: int = 1 << 12
    """Columns in a panel."""
    any_datafit: ClassVar[bool] = False
    """Whether terms may be other distances than squared errors."""
    may_tie_columns: ClassVar[bool] = False
    """Whether `improve` finds `Coding.shift` from all codes, so that a penalty may tie columns."""
    weighted: ClassVar[bool] = False
    """Whether entries of X are missing or have weights."""

    @cached_property
    def codes(self) -> Codes:
        """H_1, without rows at first."""
        return Codes(np.zeros((0, self.shape[1]), self.dtype))

    def close(self) -> None:  # noqa: B027
        """Release what is held elsewhere; the panels cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- the fit -----------------------------------------------------------------------------

    def begin(self, coding: Coding, positive: bool = False) -> None:
        """Start the codes at the projected least-squares solution (made positive if asked)."""
        H = self.dot(coding.least_squares.T).astype(self.dtype, copy=False)
        self._begin_at(H, coding.constraint, positive)

    def _begin_at(self, H: Array, constraint: Constraint, positive: bool) -> None:
        """Start at these codes, projected."""
        if positive:
            H = np.maximum(H, LOWEST * np.mean(np.abs(H)))
        if constraint.separable is None:
            H = constraint.project(H)
        else:
            for start in range(0, self.shape[1], self.width):
                cols = slice(start, start + self.width)
                own = constraint.project(H[:, cols])
                H[:, cols] = inward(own, constraint) if positive else own
        self.codes.take(H)

    def update(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataSurrogates:
        """Improve the codes in one pass over X; answer each term by its surrogate in B."""
        self.check_datafits(coding.terms)
        if coding.ahead is not None:
            how = coding.ahead, coding.constraint, self.width, coding.keeps_zeros
            self.codes.step_ahead(*how)
            coding = replace(coding, ahead=None)
        return self.improve(coding, solver, max_iter, tol)

    @abstractmethod
    def improve(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataSurrogates:
        """`update` from the codes as they are: change ``codes.H``, send back the surrogates."""

    def code(self, coding: Coding, max_iter: int, tol: float) -> None:
        """Find the codes from scratch, as good as that many iterations can make them."""
        self.begin(coding, positive=coding.keeps_zeros)
        self.update(coding, FastProjectedGradient(), max_iter, tol)

    @abstractmethod
    def residuals2(self, bases: Sequence[Array]) -> Array:
        """||X - B H_1||^2 for each B, from the residuals themselves, in one pass."""

    def values(self, terms: Sequence[DataTerm]) -> Array:
        """d(X, B H_1) for each term, without its weight."""
        self.check_datafits(terms)
        return 0.5 * self.residuals2([t.B for t in terms])

    def size(self, fit: Datafit) -> float:
        """See `Datafit.size`: of X. The codes stay as they are."""
        if type(fit) is SquaredError:
            return self.norm2
        rows = self.row_sums()
        return 2 * self.null_distance(rows / (rows.sum() or 1.0), fit)

    def row_sums(self) -> Array:
        """The sums of X's rows, m x 1. The codes stay as they are."""
        held, (m, n) = self.codes.H, self.shape
        self.codes.set(np.ones((1, n)))
        still = Coding.of(np.ones((m, 1)), Unconstrained())
        answer = self.improve(still, FastProjectedGradient(), 0, 1.0).terms[0]
        self.codes.take(held)
        return answer.C  # type: ignore[attr-defined]  # X 1, of a squared error

    def null_distance(self, p: Array, fit: Datafit) -> float:
        """d(X, p c) with the sums c of X's columns. The codes stay as they are."""
        held = self.codes.H
        self.codes.set(self.dot(np.ones((self.shape[0], 1))))
        value = float(self.values([DataTerm(1.0, p, fit)])[0])
        self.codes.take(held)
        return value

    def check_datafits(self, terms: Sequence[DataTerm]) -> None:
        """Refuse distances that this kind of data cannot be fitted with."""
        other = [t.fit for t in terms if type(t.fit) is not SquaredError]
        if other and not self.any_datafit:
            fit = other[0]
            named = isinstance(fit, BetaDivergence)
            wanted = setting(beta_loss=beta_of(fit)) if named else repr(fit)
            raise SettingError(
                f"{wanted} cannot be fitted to data of this kind ({type(self).__name__}), which "
                f"know squared errors alone. Give X as an array or a sparse matrix, without "
                f"{setting('device')}."
            )

    def own(self, M: Any) -> Any:
        """A NumPy array, or ``codes.H``, as results hold it: of the data's kind."""
        return M.astype(self.dtype, copy=False)

    # --- checkpoints -------------------------------------------------------------------------

    def column_hashes(self) -> NDArray[np.uint64]:
        """A hash of each column of X, see `deepmf._utils.digests`; by default from `columns`."""
        n, width = self.shape[1], max(1, _HASHED_ENTRIES // self.shape[0])
        parts = (np.arange(k, min(k + width, n)) for k in range(0, n, width))
        return np.concatenate([column_hashes(self.columns(part)) for part in parts])

    def weight_hashes(self) -> NDArray[np.uint64] | None:
        """A hash of each column of the weights; None where every entry counts the same."""
        return None

    # --- the starts --------------------------------------------------------------------------

    @abstractmethod
    def column_norms2(self) -> Array:
        """||x_j||^2 for each column."""

    @abstractmethod
    def columns(self, index: Sequence[int] | NDArray[np.intp]) -> Array:
        """Some columns of X, in float64."""

    def residuals(self, index: NDArray[np.intp], B: Array) -> Array:
        """Some columns of X - B H_1, in float64."""
        H = as_numpy(self.codes.H[:, index])
        return self.columns(index) - B @ H.astype(np.float64, copy=False)

    @abstractmethod
    def dot(self, G: Array, index: NDArray[np.intp] | None = None) -> Array:
        """G'X (k x n), or of some columns of X."""

    def halves_norms2(self, G: Array) -> Array:
        """||(G'X)_+||^2 and ||(G'X)_-||^2 for each row of G'X, 2 x k."""
        GtX = self.dot(G)
        return np.array([np.sum(np.maximum(s * GtX, 0) ** 2, axis=1) for s in (1, -1)])

    @abstractmethod
    def leading(self, k: int, members: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """The k leading left singular vectors and values of X, or of some of its columns."""


def squared_answer(
    XHt: Array, HHt: Array, norm2: float, terms: int, penalty: float
) -> DataSurrogates:
    """The answer to squared terms of complete data: one quadratic that equals them all.

    ::

        1/2 ||X - B H||^2  =  1/2 <B, B H H'> - <B, X H'> + 1/2 ||X||^2
    """
    q = Quadratic(((1.0, HHt),), XHt, 0.5 * norm2)
    return DataSurrogates((q,) * terms, True, penalty, HHt)
