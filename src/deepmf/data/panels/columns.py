"""Column panels of a matrix in memory: what dense and sparse data share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.digests import column_hashes
from deepmf._utils.messages import setting
from deepmf._utils.threads import do_in_threads, in_threads
from deepmf.core.datafit import SquaredError
from deepmf.core.parameters import check_integer
from deepmf.core.quadratic import Array
from deepmf.core.state import DataSurrogates
from deepmf.core.terms import DataTerm
from deepmf.data.matrix import Stats
from deepmf.data.panels.base import Coding, Panels
from deepmf.data.panels.counts import CountPass, CountProducts, compiled, own_log_sum
from deepmf.data.panels.products import Products, Squares, Sums
from deepmf.data.panels.svd import leading
from deepmf.kernels.padding import up_to
from deepmf.solvers.base import Solver
from deepmf.solvers.dispatch import frozen

if TYPE_CHECKING:
    from deepmf.kernels.descent import Descent

Task = Callable[[slice], Sums]
"""Improves some columns' codes and returns their part of the sums over columns."""

_WIDTH = 4096
"""Columns in a panel: wide enough for BLAS, narrow enough for work arrays to be small beside X."""

_NARROWEST = 32
"""Columns of a task come in multiples of this."""

_NARROWEST_PRODUCT = 256
"""Columns of a task whose products BLAS forms, which needs wider blocks to reach full speed."""

_TASK = 3e7
"""Flops in the smallest task for a thread: some tenths of a millisecond."""


class ColumnPanels(Panels):
    """Column panels of a matrix in memory, of any kind that knows ``@``, ``.T`` and its columns.

    Parameters
    ----------
    X : matrix, m x n
        float32 or float64.
    width : int, optional
        Columns in a panel.
    stats : Stats, optional
        Statistics of X, if they have been gathered.
    """

    any_datafit, may_tie_columns = True, True
    tasks: ClassVar[int]
    """Largest number of tasks into which a compiled pass is split."""

    def __init__(self, X: Any, width: int | None = None, stats: Stats | None = None) -> None:
        self.X = X
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = X.dtype
        self.width = _WIDTH if width is None else width
        check_integer(setting("panel_size"), self.width, 1)
        self.count = -(-X.shape[1] // self.width)
        self._norms2 = None if stats is None else stats.norms2
        self.norm2 = float(self.column_norms2().sum()) if stats is None else stats.norm2

    @abstractmethod
    def _panel(self, cols: slice) -> Any:
        """Some neighboring columns of X, as a view."""

    @staticmethod
    @abstractmethod
    def _norms2_of(P: Any) -> Array:
        """Squared norms of a panel's columns, in float64."""

    def _task_width(self, r: int) -> int:
        """Columns of a task: it depends on the problem alone, so that results do too."""
        flops = 4 * self._entries * r + 20 * r * (r + 8)
        tasks = max(1, min(self.tasks, int(flops * self.shape[1] / _TASK)))
        return up_to(_NARROWEST, -(-self.shape[1] // tasks))

    @property
    @abstractmethod
    def _entries(self) -> float:
        """Entries of X in a column, on average."""

    @abstractmethod
    def _fusable(self, G: Array) -> bool:
        """Whether `_fused` beats `_by_blas`."""

    @abstractmethod
    def _fused(self, coding: Coding, squares: Squares, descent: Descent) -> Task:
        """One compiled pass, in which X is read once."""

    def _slices(self, width: int) -> list[slice]:
        n = self.shape[1]
        return [slice(start, min(start + width, n)) for start in range(0, n, width)]

    def _panels(self) -> Iterator[tuple[slice, Any]]:
        for cols in self._slices(self.width):
            yield cols, self._panel(cols)

    # --- the fit -----------------------------------------------------------------------------

    def begin(self, coding: Coding, positive: bool = False) -> None:
        """See `Panels.begin`; on all threads, in the data's own type."""
        K = coding.least_squares.astype(self.dtype, copy=False)
        H = np.empty((coding.rank, self.shape[1]), dtype=self.dtype)

        def start(cols: slice) -> None:
            H[:, cols] = K @ self._panel(cols)

        do_in_threads(start, self._slices(self.width))
        self._begin_at(H, coding.constraint, positive)

    def improve(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataSurrogates:
        """See `Panels.improve`.

        The tasks' sums are added in their order, so that results do not depend on the threads.
        """
        products, descent = self._products(coding), None
        shift = coding.shift(self.codes.H)
        penalize = coding.regularizer is not None and coding.regularizer.separable
        if shift is not None:
            products.shift(*shift)
        elif not penalize and self.count > 1:
            raise ValueError(
                f"{coding.regularizer!r} ties the columns of H together with a majorizer other "
                f"than tau/2 ||M||^2 - <C, M>: return Quadratic.of(A=tau, C=C), tau a float."
            )
        width = self.width
        if shift is not None and isinstance(products, Squares):
            set_H = coding.constraint
            descent = solver.column_kernel(products.A, set_H, self.dtype, max_iter, tol)
        if isinstance(products, CountProducts) and shift is not None:
            width = self._task_width(coding.rank)
            work = self._counted(CountPass(products, not solver.keeps_zeros, max_iter, tol))
        elif descent is None or not isinstance(products, Squares):
            work = self._general(coding, products, solver, max_iter, tol, shift is None)
            width = self._general_width(coding.terms)
        else:
            width = self._task_width(coding.rank)
            if self._fusable(coding.G):
                work = self._fused(coding, products, descent)
            else:
                work, width = self._by_blas(products, descent), max(width, _NARROWEST_PRODUCT)

        def task(cols: slice) -> tuple[Sums, float]:
            sums = work(cols)
            return sums, coding.penalty(self.codes.H[:, cols]) if penalize else 0.0

        parts = in_threads(task, self._slices(width))
        first, penalty = next(parts)
        total = [np.array(own) if isinstance(own, np.ndarray) else own for own in first]
        for part, extra in parts:
            for k, own in enumerate(part):
                total[k] += own
            penalty += extra
        if not penalize:
            penalty = coding.penalty(self.codes.H)
        return products.answer(total, self.norm2, penalty)

    def _by_blas(self, squares: Squares, descent: Descent) -> Task:
        """BLAS products with a compiled descent between them."""
        from deepmf.kernels import descent as kernels  # compiles, or loads compiled code

        A, H_1 = np.ascontiguousarray(squares.A, dtype=self.dtype), self.codes.H

        def task(cols: slice) -> Sums:
            P, H = squares.panel(cols), np.ascontiguousarray(H_1[:, cols])
            C, out = frozen(squares.GtX(P, H, cols)), np.empty_like(H)
            kernels.columns(A, C, frozen(H), out, 0, H.shape[1], descent)
            H_1[:, cols] = out
            return squares.sums(P, out)

        return task

    def _general(
        self,
        coding: Coding,
        products: Products,
        solver: Solver,
        max_iter: int,
        tol: float,
        penalize: bool,
    ) -> Task:
        """Task for any set, penalty and solver; penalties other than shifts are added per panel."""
        H_1 = self.codes.H

        def task(cols: slice) -> Sums:
            P, H = products.panel(cols), H_1[:, cols]
            q = products.of_codes(P, H, cols)
            if penalize:
                q = coding.with_penalty(q, H)
            H = solver.improve(q, coding.constraint, H, max_iter, tol)
            H_1[:, cols] = H
            return products.sums(P, H)

        return task

    def _products(self, coding: Coding) -> Products:
        """The products a coding needs from one panel."""
        kind = (
            Squares if coding.squared else CountProducts if CountProducts.can(coding) else Products
        )
        return kind(self._panel, coding, self.dtype)

    @abstractmethod
    def _counted(self, one_pass: CountPass) -> Task:
        """The compiled pass of a Kullback-Leibler divergence."""

    @abstractmethod
    def _log_sums(self, terms: Sequence[DataTerm], cols: slice) -> Array:
        """Sums of ``x log(B h)`` over some columns, compiled, for each term."""

    @cached_property
    def _own_log_sum(self) -> float:
        """Sum of ``x log x - x``."""
        return sum(
            in_threads(lambda cols: own_log_sum(self._stored(cols)), self._slices(self.width))
        )

    @abstractmethod
    def _stored(self, cols: slice) -> Array:
        """Entries of some columns that may be other than zero."""

    def values(self, terms: Sequence[DataTerm]) -> Array:
        """See `Panels.values`."""
        self.check_datafits(terms)
        out = np.zeros(len(terms))
        squared = np.array([type(t.fit) is SquaredError for t in terms])
        if squared.any():
            out[squared] = 0.5 * self.residuals2([t.B for t, s in zip(terms, squared) if s])
        if not squared.all():
            out[~squared] = self._distances([t for t, s in zip(terms, squared) if not s])
        return out

    def _distances(self, terms: Sequence[DataTerm]) -> Array:
        """`values` of terms that are not squared errors."""
        if compiled([t.fit for t in terms], len(self.codes.H)):
            logs = in_threads(lambda cols: self._log_sums(terms, cols), self._slices(self.width))
            hsum = self.codes.H.sum(axis=1, dtype=np.float64)
            products = np.array([t.B.sum(axis=0) @ hsum for t in terms])
            return self._own_log_sum + products - np.sum(list(logs), axis=0)

        def task(cols: slice) -> Array:
            P, H = self._panel(cols), self.codes.H[:, cols]
            return np.array([t.fit.value(P, t.B, H) for t in terms])

        return np.sum(list(in_threads(task, self._slices(self._general_width(terms)))), axis=0)

    def _general_width(self, terms: Sequence[DataTerm]) -> int:
        """Columns of a panel where no compiled pass applies."""
        return self.width

    def column_hashes(self) -> NDArray[np.uint64]:
        """See `Panels.column_hashes`."""
        return np.concatenate([column_hashes(P) for _, P in self._panels()])

    # --- the starts --------------------------------------------------------------------------

    def column_norms2(self) -> Array:
        """See `Panels.column_norms2`; measured only if nobody has before."""
        if self._norms2 is None:
            self._norms2 = np.concatenate([self._norms2_of(P) for _, P in self._panels()])
        return self._norms2

    def dot(self, G: Array, index: NDArray[np.intp] | None = None) -> Array:
        """See `Panels.dot`."""
        if index is not None:
            out = np.empty((G.shape[1], len(index)))
            for start in range(0, len(index), self.width):  # not all of them in memory at once
                some = index[start : start + self.width]
                out[:, start : start + len(some)] = G.T @ self._some(some)
            return out
        out = np.empty((G.shape[1], self.shape[1]))
        Gt = G.T.astype(self.dtype, copy=False)
        for cols, P in self._panels():
            out[:, cols] = Gt @ P
        return out

    def _some(self, index: Sequence[int] | NDArray[np.intp]) -> Any:
        """Some columns of X, of its kind, in float64."""
        return self.X[:, np.asarray(index, dtype=np.intp)].astype(np.float64)

    def leading(self, k: int, members: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """See `Panels.leading`."""
        return leading(
            self.shape[0],
            k,
            lambda: self._gram(members),
            lambda v: self._gram_times(v, members),
        )

    def _gram(self, members: NDArray[np.bool_] | None) -> Array:
        gram = np.zeros((self.shape[0], self.shape[0]))
        for P in self._members(members):
            gram = gram + P @ P.T
        return gram

    def _members(self, members: NDArray[np.bool_] | None) -> Iterator[Any]:
        for cols, P in self._panels():
            yield P if members is None else P[:, members[cols]]

    def _gram_times(self, v: Array, members: NDArray[np.bool_] | None) -> Array:
        v = v.astype(self.dtype, copy=False)
        out = np.zeros(self.shape[0])
        for P in self._members(members):
            out += P @ (P.T @ v)
        return out
