"""What dense and sparse data share: everything that a panel's products can do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.digests import column_hashes
from deepmf._utils.messages import setting
from deepmf._utils.threads import do_in_threads, in_threads
from deepmf.constraints.base import Constraint
from deepmf.core.parameters import check_integer
from deepmf.core.quadratic import Array
from deepmf.core.state import DataProducts
from deepmf.data.panels.base import Coding, Panels
from deepmf.data.panels.svd import leading
from deepmf.kernels.padding import up_to
from deepmf.solvers.base import Solver
from deepmf.solvers.dispatch import frozen, step_ahead

Task = Callable[[slice], DataProducts]
"""Improves some columns' codes and sends back their part of X H', H H' and the penalty."""

_WIDTH = 4096
"""Columns in a panel: wide enough for BLAS, narrow enough for work arrays to be small beside X."""

_NARROWEST = 32
"""Columns of a task come in multiples of this."""

_NARROWEST_PRODUCT = 256
"""The same where BLAS does the products, which has a pace to find."""

_TASK = 3e7
"""Flops in the smallest task for a thread: some tenths of a millisecond."""

_TASK_ENTRIES = 1 << 20
"""Codes that a thread moves ahead in one task."""


class Products:
    """G'X before the codes of a panel are improved, X H' and H H' after.

    Parameters
    ----------
    panel : function
        Some neighbouring columns of X.
    coding : Coding
    dtype : dtype
        Of the data.
    """

    def __init__(self, panel: Callable[[slice], Any], coding: Coding, dtype: np.dtype) -> None:
        self.panel = panel
        self.Gt = coding.G.T.astype(dtype, copy=False)

    def GtX(self, P: Any, H: Array) -> Array:
        """G'X of a panel whose codes are H."""
        return np.ascontiguousarray(self.Gt @ P)

    def of(self, P: Any, H: Array, penalty: float) -> DataProducts:
        """The products of a panel whose codes are H now."""
        H64 = H.astype(np.float64, copy=False)
        XHt = np.asarray(P.astype(np.float64, copy=False) @ H64.T)
        return DataProducts(XHt, H64 @ H64.T, penalty)


class ColumnPanels(Panels):
    """Column panels of a matrix in memory, of any kind that knows ``@``, ``.T`` and its columns.

    Parameters
    ----------
    X : matrix, m x n
        float32 or float64.
    width : int, optional
        Columns in a panel.
    """

    H: Array
    _before: Array | None
    """H_1 before the last update, if it is to be had again."""

    tasks: ClassVar[int]
    """Largest number of tasks into which a compiled pass is split."""

    def __init__(self, X: Any, width: int | None = None) -> None:
        self.X = X
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = X.dtype
        self.width = _WIDTH if width is None else width
        check_integer(setting("panel_size"), self.width, 1)
        self.count = -(-X.shape[1] // self.width)
        self._norms2 = np.empty(X.shape[1])
        for cols, P in self._panels():
            self._norms2[cols] = self._norms2_of(P)
        self.norm2 = float(self._norms2.sum())
        self._take(np.zeros((0, X.shape[1]), dtype=X.dtype))

    @abstractmethod
    def _panel(self, cols: slice) -> Any:
        """Some neighbouring columns of X, as a view."""

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
    def _fused(self, coding: Coding, kernel: tuple[Any, ...]) -> Task:
        """One compiled pass, in which X is read once."""

    def _slices(self, width: int) -> list[slice]:
        n = self.shape[1]
        return [slice(start, min(start + width, n)) for start in range(0, n, width)]

    def _panels(self) -> Iterator[tuple[slice, Any]]:
        for cols in self._slices(self.width):
            yield cols, self._panel(cols)

    # --- the fit -----------------------------------------------------------------------------

    def begin(self, coding: Coding, positive: bool = False) -> None:
        """See `Panels.begin`."""
        K = np.linalg.pinv(coding.A, rcond=1e-10, hermitian=True) @ coding.G.T
        H = np.empty((len(coding.A), self.shape[1]), dtype=self.dtype)
        K = K.astype(self.dtype, copy=False)

        def start(cols: slice) -> None:
            H[:, cols] = K @ self._panel(cols)

        do_in_threads(start, self._slices(self.width))
        if positive:
            H = np.maximum(H, 1e-2 * np.mean(np.abs(H)))
        if coding.constraint.separable is None:
            H = coding.constraint.project(H)
        else:
            for cols in self._slices(self.width):  # without X, which may be on disk
                H[:, cols] = coding.constraint.project(H[:, cols])
        self._take(H)

    def update(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataProducts:
        """See `Panels.update`.

        The tasks' sums are added in their order, so that results do not depend on the threads.
        """
        if coding.momentum is not None:
            self._step_ahead(coding.momentum, coding.constraint)
        kernel = None
        if coding.regularizer is None:
            kernel = solver.column_kernel(coding.A, coding.constraint, self.dtype, max_iter, tol)
        width = self.width
        if kernel is None:
            work = self._general(coding, solver, max_iter, tol)
        else:
            width = self._task_width(coding.G.shape[1])
            if self._fusable(coding.G):
                work = self._fused(coding, kernel)
            else:
                work, width = self._by_blas(coding, kernel), max(width, _NARROWEST_PRODUCT)
        parts = in_threads(work, self._slices(width))
        first = next(parts)
        XHt, HHt, penalty = np.array(first.XHt), np.array(first.HHt), first.penalty
        for part in parts:
            XHt += part.XHt
            HHt += part.HHt
            penalty += part.penalty
        return DataProducts(XHt, HHt, penalty)

    def _by_blas(self, coding: Coding, kernel: tuple[Any, ...]) -> Task:
        """BLAS products with a compiled descent between them."""
        from deepmf.kernels import descent  # compiles, or loads what was compiled, when needed

        A, products = np.ascontiguousarray(coding.A, dtype=self.dtype), self._products(coding)

        def task(cols: slice) -> DataProducts:
            P, H = products.panel(cols), np.ascontiguousarray(self.H[:, cols])
            C, out = frozen(products.GtX(P, H)), np.empty_like(H)
            descent.columns(A, C, frozen(H), out, 0, H.shape[1], *kernel)
            self.H[:, cols] = out
            return products.of(P, out, 0.0)

        return task

    def _general(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> Task:
        """Whatever the set, the penalty and the solver are."""
        products = self._products(coding)

        def task(cols: slice) -> DataProducts:
            P, H = products.panel(cols), self.H[:, cols]
            q = coding.quadratic(products.GtX(P, H), H)
            H = solver.improve(q, coding.constraint, H, max_iter, tol)
            self.H[:, cols] = H
            return products.of(P, H, coding.penalty(H.astype(np.float64, copy=False)))

        return task

    def _products(self, coding: Coding) -> Products:
        """How a panel meets a coding."""
        return Products(self._panel, coding, self.dtype)

    def get_codes(self) -> Array:
        """See `Panels.get_codes`."""
        return self.H

    def set_codes(self, H: Array) -> None:
        """See `Panels.set_codes`."""
        self._take(np.array(H, dtype=self.dtype, order="C"))

    def get_before(self) -> Array | None:
        """See `Panels.get_before`."""
        return self._before

    def set_before(self, H: Array) -> None:
        """See `Panels.set_before`."""
        self._before = np.array(H, dtype=self.dtype, order="C")

    def _take(self, H: Array) -> None:
        self.H, self._before = H, None

    def _step_ahead(self, momentum: float, constraint: Constraint) -> None:
        """H <- P(H + momentum (H - H before)), which is then H before; 0 where there is none."""
        H = self.H
        ahead = np.array(H) if self._before is None else self._before

        def task(cols: slice) -> None:
            step_ahead(H[:, cols], ahead[:, cols], momentum, constraint)

        width = max(self.width, _TASK_ENTRIES // max(len(H), 1))
        width = self.shape[1] if constraint.separable is None else width
        do_in_threads(task, self._slices(width))
        self.H, self._before = ahead, H

    def undo(self) -> None:
        """See `Panels.undo`."""
        if self._before is not None:
            self._take(self._before)

    def column_hashes(self) -> NDArray[np.uint64]:
        """See `Panels.column_hashes`."""
        return np.concatenate([column_hashes(P) for _, P in self._panels()])

    # --- the starts --------------------------------------------------------------------------

    def column_norms2(self) -> Array:
        """See `Panels.column_norms2`."""
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
