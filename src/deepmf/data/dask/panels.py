"""Panels whose columns of X and codes stay on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf.core.datafit import Datafit, SquaredError
from deepmf.core.quadratic import Array
from deepmf.core.state import DataSurrogates
from deepmf.core.terms import DataTerm
from deepmf.data.dask.pool import WorkerPool
from deepmf.data.panels.base import Coding, Panels, squared_answer
from deepmf.data.panels.codes import Codes
from deepmf.data.panels.svd import leading
from deepmf.solvers.base import Solver
from deepmf.solvers.positive import LOWEST

Index = Sequence[int] | NDArray[np.intp]


class RemoteCodes(Codes):
    """Codes that stay on the workers; as an array they are a Dask array."""

    def __init__(self, workers: WorkerPool) -> None:
        self._workers = workers
        self._rank = 0
        self._found: Any = None

    @property
    def H(self) -> Any:
        """The codes, without rows before there are any."""
        if self._found is None:
            empty = np.zeros((0, self._workers.X.shape[1]), self._workers.dtype)
            self._found = self._workers.codes(self._rank) if self._rank else empty
        return self._found

    @property
    def before(self) -> None:
        """No checkpoint needs the codes before: the workers alone know them."""

    def changed(self, rank: int) -> None:
        """Note that the workers have new codes."""
        self._rank, self._found = rank, None

    def set(self, H: Any) -> None:
        """See `Codes.set`."""
        self._workers.set_codes(H)
        self.changed(H.shape[0])

    def undo(self) -> None:
        """See `Codes.undo`."""
        self._workers.sum("undo")
        self._found = None


class ClusterPanels(Panels):
    """Column panels that stay on their workers.

    A sweep sends A and G to every worker and brings X H' and H H' back, m x r_1 + r_1 x r_1 numbers
    each way whatever n is. For divergences it brings the surrogates, whose coefficients are as many
    for each term. `column_norms2` and `dot`, which only starts ask for, bring one or a few
    numbers for each column.
    """

    any_datafit = True

    def __init__(self, workers: WorkerPool, norm2: float) -> None:
        self._workers = workers
        self.shape, self.dtype = workers.X.shape, workers.dtype
        self.norm2 = norm2
        self.count = len(workers.ends)
        self._updates = 0

    @cached_property
    def codes(self) -> RemoteCodes:
        """See `Panels.codes`."""
        return RemoteCodes(self._workers)

    def close(self) -> None:
        """See `Panels.close`."""
        self._workers.close()

    # --- the fit -----------------------------------------------------------------------------

    def begin(self, coding: Coding, positive: bool = False) -> None:
        """See `Panels.begin`."""
        self._expect(coding)
        if not positive:
            self._workers.sum("begin", coding)
            return
        mean = self._workers.sum("begin_free", coding) / (coding.rank * self.shape[1])
        self._workers.sum("raise_codes", LOWEST * mean, coding.constraint)

    def update(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataSurrogates:
        """See `Panels.update`; workers extrapolate their own codes.

        Where a worker is lost, others code its columns to optimality for this coding, which no
        codes they had can beat: the objective still falls (for a convex set, to rounding). Codes
        for divergences are only nearly optimal, so that it may rise there by a little.
        """
        self._expect(coding)
        self._updates += 1
        args = (self._updates, coding, solver, max_iter, tol)
        found = self._workers.sum("update", *args)
        # copies are aligned, and our own
        if not coding.squared:
            surrogates: DataSurrogates = deepcopy(found)
            return surrogates
        XHt, HHt, penalty = found
        return squared_answer(
            np.array(XHt), np.array(HHt), self.norm2, len(coding.terms), float(penalty)
        )

    def improve(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataSurrogates:
        """See `Panels.improve`."""
        return self.update(replace(coding, ahead=None), solver, max_iter, tol)

    def _expect(self, coding: Coding) -> None:
        self.check_datafits(coding.terms)
        self._workers.coding = coding
        self.codes.changed(coding.rank)

    def residuals2(self, bases: Sequence[Array]) -> Array:
        """See `Panels.residuals2`."""
        return np.asarray(self._workers.sum("residuals2", list(bases)))

    def values(self, terms: Sequence[DataTerm]) -> Array:
        """See `Panels.values`."""
        if all(type(t.fit) is SquaredError for t in terms):
            return super().values(terms)
        return np.array(self._workers.sum("values", list(terms)))

    def row_sums(self) -> Array:
        """See `Panels.row_sums`."""
        return np.array(self._workers.sum("row_sums"))

    def null_distance(self, p: Array, fit: Datafit) -> float:
        """See `Panels.null_distance`: column sums stay on their workers."""
        return float(self._workers.sum("null_distance", p, fit))

    # --- the starts --------------------------------------------------------------------------

    def column_norms2(self) -> Array:
        """See `Panels.column_norms2`."""
        return self._workers.joined(self._workers.each("column_norms2", lambda _: ()))

    def columns(self, index: Index) -> Array:
        """See `Panels.columns`."""
        local, place = self._split(index)
        if not local:
            return np.empty((self.shape[0], 0))
        pieces = self._workers.each("columns", lambda blocks: _those(local, blocks))
        return self._workers.joined(pieces)[:, place]

    def dot(self, G: Array, index: NDArray[np.intp] | None = None) -> Array:
        """See `Panels.dot`."""
        if index is None:
            pieces = self._workers.each("dot", lambda blocks: (G, dict.fromkeys(blocks)))
            return self._workers.joined(pieces)
        local, place = self._split(index)
        if not local:
            return np.empty((G.shape[1], 0))
        pieces = self._workers.each("dot", lambda blocks: _those(local, blocks, G))
        return self._workers.joined(pieces)[:, place]

    def halves_norms2(self, G: Array) -> Array:
        """See `Panels.halves_norms2`: sums, so that nothing of n's size comes back."""
        return np.asarray(self._workers.sum("halves_norms2", G))

    def leading(self, k: int, members: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """See `Panels.leading`: from Gram matrices, or products with them, added over workers."""
        workers = self._workers

        def masks(blocks: list[int], of: NDArray[np.bool_]) -> dict[int, NDArray[np.bool_]]:
            return {j: of[workers.columns(j)] for j in blocks}

        def added(method: str, *args: Any) -> Array:
            if members is None:
                return np.asarray(workers.sum(method, *args, None))
            return np.asarray(workers.each(method, lambda blocks: (*args, masks(blocks, members))))

        return leading(self.shape[0], k, lambda: added("gram"), lambda v: added("gram_times", v))

    def _split(self, index: Index) -> tuple[dict[int, NDArray[np.intp]], NDArray[np.intp]]:
        """Columns by block, counted from its first, and the positions of the wanted ones."""
        wanted = np.asarray(index, dtype=np.intp)
        wanted = np.where(wanted < 0, wanted + self.shape[1], wanted)
        blocks = np.searchsorted(self._workers.ends, wanted, side="right")
        order = np.argsort(blocks, kind="stable")
        local = {
            int(j): wanted[blocks == j] - self._workers.columns(int(j)).start
            for j in np.unique(blocks)
        }
        place = np.empty(len(wanted), dtype=np.intp)
        place[order] = np.arange(len(wanted))
        return local, place


def _those(
    local: dict[int, NDArray[np.intp]], blocks: list[int], *args: Any
) -> tuple[Any, ...] | None:
    """Arguments for a share that has some of the columns; ``None``: it has none."""
    own = {j: local[j] for j in blocks if j in local}
    return (*args, own) if own else None
