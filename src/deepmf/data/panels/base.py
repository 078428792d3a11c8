"""What a kind of data is: X and H_1 in column panels, behind one narrow bridge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.digests import column_hashes
from deepmf.constraints.base import Constraint
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import DataProducts
from deepmf.regularizers.base import Regularizer
from deepmf.solvers import FastProjectedGradient, Solver

_HASHED_ENTRIES = 1 << 20
"""Entries of X that are hashed together."""


@dataclass(frozen=True)
class Coding:
    """H_1's problem: min over H in a set of 1/2 <H, A H> - <G'X, H> + strength * penalty(H)."""

    A: Array
    G: Array
    constraint: Constraint
    regularizer: Regularizer | None = None
    strength: float = 0.0
    momentum: float | None = None
    """Begin at P(H + momentum (H - H before)) and keep H, for `Panels.undo`; None: begin at H."""
    terms: tuple[tuple[float, Array], ...] = ()
    """(weight, B) of each ``weight/2 ||X - B H||^2`` that A and G are made of, for panels that are
    not `complete`; by default G is the only B."""

    def quadratic(self, GtX: Array, H: Array) -> Quadratic:
        """The quadratic of some columns, from their G'X and current codes."""
        q = Quadratic.of(A=self.A.astype(GtX.dtype, copy=False), C=GtX)
        if self.regularizer is None:
            return q
        return (q + self.strength * self.regularizer.majorize(H)).astype(GtX.dtype)

    @property
    def data_terms(self) -> tuple[tuple[float, Array], ...]:
        """What `terms` says or means."""
        return self.terms or ((1.0, self.G),)

    def penalty(self, H: Array) -> float:
        """The regulariser's value at some columns, without its strength."""
        return 0.0 if self.regularizer is None else self.regularizer.value(H)


class Panels(ABC):
    """X (m x n, columns are data points) and its codes H_1, split into groups of columns.

    This is all a fit asks of the data, so a new kind of data is one subclass and knows nothing of
    models. Products come back in float64 whatever the data's type.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    norm2: float
    """||X||^2."""
    count: int
    """Number of panels."""
    complete: ClassVar[bool] = True
    """Whether every entry of X counts, and as much as any other."""

    def close(self) -> None:  # noqa: B027
        """Let go of what is held elsewhere; the panels are of no use after it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- the fit -----------------------------------------------------------------------------

    @abstractmethod
    def begin(self, coding: Coding, positive: bool = False) -> None:
        """Start the codes at the projected least-squares solution (made positive if asked)."""

    @abstractmethod
    def update(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataProducts:
        """Improve the codes in one pass over X; send back X H', H H' and the penalty."""

    def code(self, coding: Coding, max_iter: int, tol: float) -> None:
        """Codes from scratch, as good as so many iterations can make them."""
        self.begin(coding)
        self.update(coding, FastProjectedGradient(), max_iter, tol)

    @abstractmethod
    def undo(self) -> None:
        """Take back the last update, whose coding had a momentum."""

    @abstractmethod
    def residuals2(self, bases: Sequence[Array]) -> Array:
        """||X - B H_1||^2 for each B, from the residuals themselves, in one pass."""

    @abstractmethod
    def get_codes(self) -> Any:
        """H_1, in the kind of array the panels work on."""

    @abstractmethod
    def set_codes(self, H: Any) -> None:
        """Replace H_1."""

    def get_before(self) -> Any:
        """H_1 before the last update where the next one may step ahead from it, else None."""
        return None

    def set_before(self, H: Any) -> None:
        """After `set_codes`: what `get_before` gave."""
        raise NotImplementedError(f"{type(self).__name__} cannot go on from a checkpoint.")

    def own(self, M: Any) -> Any:
        """A NumPy array, or what `get_codes` gave, as results hold it: of the data's kind."""
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
