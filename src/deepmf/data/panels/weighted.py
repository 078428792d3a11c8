"""Panels of X with missing entries or weights, filled by the fit itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.digests import column_hashes
from deepmf._utils.threads import do_in_threads, in_threads
from deepmf.core.datafit import Datafit, SquaredError
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import DataSurrogates
from deepmf.core.terms import DataTerm
from deepmf.data.panels.base import Coding
from deepmf.data.panels.dense import DensePanels
from deepmf.data.panels.products import Products, Squares, Sums
from deepmf.data.weighted import Weighted, WeightedBlock
from deepmf.kernels.padding import up_to
from deepmf.solvers import FastProjectedGradient

_PART, _STEP = 1 << 17, 32
"""Entries of X whose residuals are formed together, a megabyte; columns are a multiple of this."""

_ROUNDS, _SETTLED = 1000, 1e-10
"""Limits of the rounds of filling and improving codes that are tied together."""


class WeightedPanels(DensePanels):
    r"""Column panels of a `Weighted` matrix, X and V in [0, 1].

    ::

        sum V (X - B H)^2  <=  ||X~ - B H||^2 + const,    X~ = V X + (1 - V) B H now

    (products with V entry by entry), with equality now: what decreases the right decreases the
    left. So each data term B has an X~ of its own, and with the residual R = V (X - B H) its
    products are ``B'X~ = B'R + B'B H`` and ``X~ H' = R H' + B H H'``. H_1's problem is filled
    before its update, the surrogates in B from the new codes.

    Starts, which have no factors yet, see every row's missing entries filled by its mean.
    """

    X: Any
    weighted = True

    def __init__(self, X: Weighted, width: int | None = None) -> None:
        self._means = X.means.astype(X.dtype)[:, None]
        super().__init__(X, X.width if width is None and X.on_disk else width, X.stats)

    def _filled(self, P: WeightedBlock) -> Array:
        filled = P.rest(self._means, np.ones((1, P.X.shape[1]), self.dtype))[1]
        filled += self._means
        return filled

    def _panel(self, cols: slice) -> Array:
        return self._filled(self.X[:, cols])

    def _some(self, index: Sequence[int] | NDArray[np.intp]) -> Array:
        filled = self._filled(self.X[:, np.asarray(index, dtype=np.intp)])
        return filled.astype(np.float64)

    def _task_width(self, r: int) -> int:
        if self.X.on_disk:
            return self.width
        return min(super()._task_width(r), up_to(_STEP, max(1, _PART // self.shape[0])))

    def _fusable(self, G: Array) -> bool:
        return False

    def _products(self, coding: Coding) -> Products:
        if coding.squared:
            return _FilledSquares(self.X, coding, self.dtype)
        return _WeightedProducts(lambda cols: self.X[:, cols], coding, self.dtype)

    def check_datafits(self, terms: Sequence[DataTerm]) -> None:
        """See `Panels.check_datafits`; only some distances know weights."""
        squared = [type(t.fit) is SquaredError for t in terms]
        wrong = [t.fit for t in terms if not t.fit.weightable]
        if not all(squared) and wrong:
            raise ValueError(
                f"{wrong[0]!r} cannot be fitted to weighted or incomplete data"
                f"{' beside other distances' if any(squared) else ''}: it has no weights of "
                f"entries. Leave weights out, or use a beta divergence for every layer that is "
                f"compared with the data."
            )

    def size(self, fit: Datafit) -> float:
        """See `Panels.size`: against each row's mean, times a number for each column."""
        if type(fit) is SquaredError:
            return self.norm2
        B, held = self._means.astype(np.float64), self.codes.H
        sums = [((P.V * P.known).sum(axis=0), B[:, 0] @ P.V) for P in self._blocks()]
        known, mean = (np.concatenate(parts) for parts in zip(*sums))
        self.codes.set(np.divide(known, mean, out=np.zeros_like(known), where=mean > 0)[None])
        value = float(self.values([DataTerm(1.0, B, fit)])[0])
        self.codes.take(held)
        return 2 * value

    def _distances(self, terms: Sequence[DataTerm]) -> Array:
        """See `ColumnPanels.values`: each entry times its weight."""

        def task(cols: slice) -> Array:
            P, H = self.X[:, cols], self.codes.H[:, cols]
            return np.array([t.fit.value(P.known, t.B, H, P.V) for t in terms])  # type: ignore

        return np.sum(list(in_threads(task, self._slices(self.width))), axis=0)

    def column_hashes(self) -> NDArray[np.uint64]:
        """See `Panels.column_hashes`; missing entries count as zeros."""
        return np.concatenate([column_hashes(P.known) for P in self._blocks()])

    def weight_hashes(self) -> NDArray[np.uint64]:
        """See `Panels.weight_hashes`."""
        return np.concatenate([column_hashes(P.V) for P in self._blocks()])

    def _blocks(self) -> Iterator[WeightedBlock]:
        return (self.X[:, cols] for cols in self._slices(self.width))

    def residuals2(self, bases: Sequence[Array]) -> Array:
        """See `Panels.residuals2`: sum V (X - B H_1)^2."""
        small = [B.astype(self.dtype, copy=False) for B in bases]

        def task(cols: slice) -> list[float]:
            P, H = self.X[:, cols], self.codes.H[:, cols]
            rests = (P.rest(B, H) for B in small)
            return [np.einsum("ij,ij", R, VR, dtype=np.float64) for R, VR in rests]

        parts = in_threads(task, self._slices(self._task_width(len(self.codes.H))))
        return np.sum(list(parts), axis=0)

    def residuals(self, index: NDArray[np.intp], B: Array) -> Array:
        """See `Panels.residuals`: V (X - B H_1)."""
        P = self.X[:, np.asarray(index, dtype=np.intp)]
        return P.rest(B.astype(self.dtype), self.codes.H[:, index])[1].astype(np.float64)

    def code(self, coding: Coding, max_iter: int, tol: float) -> None:
        """See `Panels.code`: each column's own problem, over what is observed of it.

        ::

            min over h in the set of  1/2 <h, A_v h> - <c, h>,
            A_v = sum_k w_k B_k' diag(v) B_k,    c = sum_k w_k B_k' (v x)

        Where the set ties columns together, they are filled and improved until they settle.
        """
        if not coding.squared:
            super().code(coding, max_iter, tol)
            return
        if coding.constraint.separable is None:
            self._settle(coding, max_iter, tol)
            return
        solver, constraint = FastProjectedGradient(), coding.constraint
        H = np.empty((coding.rank, self.shape[1]), dtype=self.dtype)

        def task(cols: slice) -> None:
            P = self.X[:, cols]
            V = P.V
            C = coding.G.T @ (V * P.known).astype(np.float64, copy=False)
            for j, v in enumerate(V.T.astype(np.float64, copy=False), start=cols.start):
                A = sum(t.weight * ((t.B.T * v) @ t.B) for t in coding.terms if t.weight)
                A = A if coding.coupling is None else A + coding.coupling
                c = C[:, [j - cols.start]]
                h = constraint.project(np.linalg.pinv(A, rcond=1e-10, hermitian=True) @ c)
                q = coding.with_penalty(Quadratic.of(A=A, C=c), h)
                H[:, [j]] = solver.solve(q, constraint, h, max_iter, tol)

        do_in_threads(task, self._slices(self.width))
        self.codes.take(H)

    def _settle(self, coding: Coding, max_iter: int, tol: float) -> None:
        self.begin(coding)
        bases, weights = [t.B for t in coding.terms], [t.weight for t in coding.terms]
        last = np.inf
        for _ in range(_ROUNDS):
            now = float(self.residuals2(bases) @ weights)
            if last - now <= _SETTLED * self.norm2:
                break
            last = now
            self.update(coding, FastProjectedGradient(), max_iter, tol)


class _WeightedProducts(Products):
    """Surrogates of distances whose entries have weights."""

    def _codes(self, t: DataTerm, P: WeightedBlock, H: Array) -> Any:
        return t.fit.codes(P.known, t.B, H, P.V)  # type: ignore[call-arg]

    def _basis(self, t: DataTerm, P: WeightedBlock, H: Array) -> Any:
        return t.fit.basis(P.known, t.B, H, P.V)  # type: ignore[call-arg]


class _FilledSquares(Squares):
    """Products with X~ for each of a coding's data terms."""

    def __init__(self, X: Weighted, coding: Coding, dtype: np.dtype) -> None:
        super().__init__(lambda cols: X[:, cols], coding, dtype)
        self._filling = coding.of_terms.astype(dtype, copy=False)
        self._bases = [t.B.astype(dtype, copy=False) for t in coding.terms]

    def GtX(self, P: Any, H: Array, cols: slice) -> Array:
        """sum_k w_k B_k' X~_k + V, where sum_k w_k B_k' X~_k = sum_k w_k B_k' R_k + A H."""
        GtX = self._filling @ H
        for t, B in zip(self.terms, self._bases):
            if t.weight:
                GtX += t.weight * (B.T @ P.rest(B, H)[1])
        GtX += self.V_of(cols)
        return GtX

    def sums(self, P: Any, H: Array) -> Sums:
        """H H' and X~_k H' = R_k H' + B_k H H' for every k."""
        H64 = H.astype(np.float64, copy=False)
        HHt = H64 @ H64.T
        rests = (P.rest(B, H)[1].astype(np.float64, copy=False) for B in self._bases)
        return [HHt, *(R @ H64.T + t.B @ HHt for R, t in zip(rests, self.terms))]

    def answer(self, total: Sums, norm2: float, penalty: float) -> DataSurrogates:
        """Quadratics above the terms (up to a constant), each with its own X~ H'."""
        HHt, *XHts = total
        above = tuple(Quadratic(((1.0, HHt),), XHt) for XHt in XHts)
        return DataSurrogates(above, False, penalty, HHt)
