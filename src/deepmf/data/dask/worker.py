"""Blocks of columns of X and their codes, as one worker of a cluster holds them."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf._utils.threads import limit_threads, single_blas
from deepmf.constraints import Constraint, Unconstrained
from deepmf.core.datafit import Datafit
from deepmf.core.quadratic import Array
from deepmf.core.state import DataSurrogates
from deepmf.core.terms import DataTerm
from deepmf.data.dask.recompute import RecomputedPanels
from deepmf.data.matrix import Found, Matrix, Stats, as_numpy
from deepmf.data.panels.base import Coding, Panels
from deepmf.data.panels.columns import ColumnPanels
from deepmf.data.validation import in_memory
from deepmf.solvers import FastProjectedGradient, Solver
from deepmf.solvers.positive import inward

_CODE_ITER, _CODE_TOL = 5_000, 1e-6
"""Limits for recomputing lost codes. For squared errors and convex sets they are tight enough that
the objective cannot rise; steps for divergences approach the best codes more slowly."""

_MAJORIZED = 20
"""Rounds of this under a regularizer, each from its majorizer at the last round's codes."""

_STRIP = 4096
"""Columns brought back from a device together."""

Members = dict[int, NDArray[np.bool_]] | None
"""Selected columns of each block; ``None``: all."""

_shares: WeakValueDictionary[str, ColumnStore] = WeakValueDictionary()
"""Actors in this process, so that tasks find them without sending them."""


@dataclass(frozen=True)
class WorkerOptions:
    """Options of a worker."""

    threads: int
    """Number of threads."""
    alone: bool
    """Whether the worker has a process of its own."""
    device: Any = None
    """The PyTorch device that blocks are processed on; ``None``: NumPy."""
    width: int | None = None
    """Columns in a panel."""


@dataclass(frozen=True)
class RemoteFailure:
    """An error of the work itself, as opposed to one on the way to a worker."""

    error: Exception


class ColumnStore:
    """Dask actor that holds blocks of X and their codes; only small matrices come and go.

    Every method works on the actor's own blocks, in their order. Results are numbers and arrays
    that add up over workers, or dictionaries by the blocks' numbers.

    Parameters
    ----------
    name : str
        Identifies this actor among all.
    held : dict of matrices
        Blocks that stay in memory, by their numbers.
    recipes : dict of bytes
        Blocks that do not fit: a pickled task graph and its key, computed again for every pass.
    options : WorkerOptions
    coding : Coding, optional
        The problem that codes the blocks, where a share is built in the middle of a fit.
    """

    def __init__(
        self,
        name: str,
        held: dict[int, Any],
        recipes: dict[int, bytes],
        options: WorkerOptions,
        coding: Coding | None = None,
    ) -> None:
        _shares[name] = self
        self.options = options
        self._children: list[Any] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="deepmf-share")
        self._readers: dict[int, Callable[[], Matrix]] = {
            **{j: partial(_same, self._prepared(block)) for j, block in held.items()},
            **{j: partial(self._computed, *pickle.loads(r)) for j, r in recipes.items()},
        }
        self._held = set(held)
        self._stats: dict[int, Stats] = {}
        self._parts: dict[int, Panels] = {}
        self._fresh = coding is not None  # codes that no update has seen
        self._settling = False  # in the last update they were made as good as can be
        self._done: tuple[int, Any] = (0, None)  # the last update and its result
        with self._threads():
            self.group(options.width)
            if coding is not None:
                self.code(coding)

    # --- being asked -------------------------------------------------------------------------

    def link(self, children: list[Any]) -> None:
        """Other shares, as actors, that are asked through this one."""
        self._children = children

    async def tree(self, method: str, packed: bytes) -> Any:
        """The method's result here plus those of the children, added in a fixed order."""
        below = [child.tree(method, packed) for child in self._children]
        total = await self.own(method, packed)
        for other in below:
            total = merged(total, await other)
        return total

    async def own(self, method: str, packed: bytes) -> Any:
        """The method's result here, without blocking the worker's event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._attempt, method, packed)

    def _attempt(self, method: str, packed: bytes) -> Any:
        try:
            with self._threads():
                return getattr(self, method)(*pickle.loads(packed))
        except Exception as error:
            return RemoteFailure(error)

    @contextmanager
    def _threads(self) -> Iterator[None]:
        """The worker's threads and no more: passes are split among them, and BLAS stays on each.

        Workers that share a process leave BLAS alone: its setting is the process's.
        """
        with (
            limit_threads(self.options.threads),
            single_blas() if self.options.alone else nullcontext(),
        ):
            yield

    # --- the blocks --------------------------------------------------------------------------

    def group(self, width: int | None) -> None:
        """Make panels of the given width; the codes are lost."""
        self.options = replace(self.options, width=width)
        for j in sorted(self._readers):
            held = j in self._held
            self._parts[j] = self._panels(j) if held else RecomputedPanels(partial(self._panels, j))

    def _panels(self, j: int) -> Panels:
        block = self._readers[j]()
        self._stats.setdefault(j, block.stats._replace(norms2=None))
        panels: Panels = block.panels(self.options.width)
        return panels

    def _computed(self, graph: dict[Any, Any], key: Any) -> Matrix:
        from dask.local import get_sync

        return self._prepared(get_sync(graph, key))

    def _prepared(self, block: Any) -> Matrix:
        """A block as a matrix, on the worker's device if it has one."""
        A = in_memory(block)
        A = type(A)(_aligned(A.array))
        return A if self.options.device is None else A.on(self.options.device)

    def stats(self) -> dict[int, Stats]:
        """Statistics of every block, without those of its columns."""
        return self._stats

    def find(self, test: Callable[[Any], Any], transposed: bool) -> dict[int, Found | None]:
        """Entries of every block, or of its transpose, for which a test holds."""
        found = {}
        for j in self._parts:
            block = self._readers[j]()
            block.transposed = transposed
            found[j] = block.find(test)
        return found

    # --- the fit -----------------------------------------------------------------------------

    def begin(self, coding: Coding) -> None:
        """See `Panels.begin`."""
        for part in self._parts.values():
            part.begin(coding)

    def begin_free(self, coding: Coding) -> float:
        """Least-squares codes without the constraint; the sum of their sizes."""
        self.begin(replace(coding, constraint=Unconstrained()))
        return sum(float(np.abs(H).sum(dtype=float)) for H in self.codes().values())

    def raise_codes(self, floor: float, constraint: Constraint) -> None:
        """Codes raised to at least a given size, then projected."""
        for j, H in self.codes().items():
            own = constraint.project(np.maximum(H, floor))
            self._parts[j].codes.set(inward(own, constraint))

    def update(self, number: int, coding: Coding, solver: Solver, max_iter: int, tol: float) -> Any:
        """See `Panels.update`; codes that replaced lost ones are first made as good as can be.

        The answer is X H', H H' and the penalty where all terms are squared errors, and otherwise
        the surrogates. An update that is asked for again, as another worker was lost, is not done
        again.
        """
        if number == self._done[0]:
            return self._done[1]
        if self._fresh and max_iter:
            self.code(coding)
            self._settling, self._fresh = True, False
        else:
            self._settling = False
        parts = self._parts.values()
        answers = [part.update(coding, solver, max_iter, tol) for part in parts]
        total: Any = answers[0]
        if coding.squared:
            m, r = coding.G.shape
            total = (np.zeros((m, r)), np.zeros((r, r)), 0.0)
            for answer in answers:
                q: Any = answer.terms[0]
                total = merged(total, (q.C, q.terms[0][1], answer.penalty))
        else:
            for answer in answers[1:]:
                total = merged(total, answer)
        self._done = (number, total)
        return total

    def undo(self) -> None:
        """See `Panels.undo`; codes that replaced lost ones are then to be sought again."""
        self._fresh = self._fresh or self._settling
        for part in self._parts.values():
            part.codes.undo()

    def code(self, coding: Coding) -> None:
        """Solve the blocks' coding problem from scratch; from codes without zeros if they stay."""
        coding = replace(coding, ahead=None)
        for part in self._parts.values():
            part.begin(coding, positive=coding.keeps_zeros)
            for _ in range(1 if coding.regularizer is None else _MAJORIZED):
                part.update(coding, FastProjectedGradient(), _CODE_ITER, _CODE_TOL)

    def residuals2(self, bases: Sequence[Array]) -> Array:
        """See `Panels.residuals2`."""
        return sum((p.residuals2(bases) for p in self._parts.values()), np.zeros(len(bases)))

    def values(self, terms: Sequence[DataTerm]) -> Array:
        """See `Panels.values`."""
        return sum((p.values(terms) for p in self._parts.values()), np.zeros(len(terms)))

    def row_sums(self) -> Array:
        """See `Panels.row_sums`."""
        return sum((p.row_sums() for p in self._parts.values()), np.zeros((self._rows, 1)))

    def null_distance(self, p: Array, fit: Datafit) -> float:
        """See `Panels.null_distance`."""
        return sum(part.null_distance(p, fit) for part in self._parts.values())

    def codes(self) -> dict[int, Array]:
        """H_1 of every block."""
        return {j: as_numpy(part.codes.H) for j, part in self._parts.items()}

    def set_codes(self, codes: dict[int, Array]) -> None:
        """Replace H_1 of some blocks."""
        for j, H in codes.items():
            self._parts[j].codes.set(H)

    # --- the starts --------------------------------------------------------------------------

    def column_norms2(self) -> dict[int, Array]:
        """See `Panels.column_norms2`."""
        return {j: part.column_norms2() for j, part in self._parts.items()}

    def columns(self, index: dict[int, NDArray[np.intp]]) -> dict[int, Array]:
        """See `Panels.columns`, for some blocks."""
        return {j: self._parts[j].columns(wanted) for j, wanted in index.items()}

    def dot(self, G: Array, index: dict[int, NDArray[np.intp] | None]) -> dict[int, Array]:
        """See `Panels.dot`, for some blocks."""
        return {j: self._parts[j].dot(G, wanted) for j, wanted in index.items()}

    def halves_norms2(self, G: Array) -> Array:
        """See `Panels.halves_norms2`."""
        parts = self._parts.values()
        return sum((p.halves_norms2(G) for p in parts), np.zeros((2, G.shape[1])))

    def gram(self, members: Members) -> Array:
        """X X' of all or some columns."""
        return sum((P @ P.T for P in self._strips(members)), np.zeros((self._rows, self._rows)))

    def gram_times(self, v: Array, members: Members) -> Array:
        """X X' v, or of some columns."""
        return sum((P @ (P.T @ v) for P in self._strips(members)), np.zeros(self._rows))

    @property
    def _rows(self) -> int:
        return next(iter(self._parts.values())).shape[0]

    def _strips(self, members: Members) -> Iterator[Any]:
        """The columns of X, or some of them, a few at a time and of the data's kind."""
        for j, part in self._parts.items():
            panels = part.opened() if isinstance(part, RecomputedPanels) else part
            mask = None if members is None else members[j]
            if isinstance(panels, ColumnPanels):
                yield from panels._members(mask)
            else:
                index = np.arange(panels.shape[1]) if mask is None else np.flatnonzero(mask)
                for start in range(0, len(index), _STRIP):
                    yield panels.columns(index[start : start + _STRIP])


def merged(a: Any, b: Any) -> Any:
    """Results of two shares as one: added up, or put side by side; failure wins."""
    if isinstance(a, RemoteFailure) or isinstance(b, RemoteFailure):
        return a if isinstance(a, RemoteFailure) else b
    if isinstance(a, dict):
        return a | b
    if isinstance(a, DataSurrogates):
        return a + b
    if isinstance(a, tuple):
        return tuple(x + y for x, y in zip(a, b))
    return None if a is None else a + b


class WrongWorkerError(RuntimeError):
    """A task came to a worker that does not have the share it needs."""


def codes_here(name: str, block: int) -> Array:
    """A task on a share's worker: the codes of one block, without a copy."""
    if name not in _shares:
        raise WrongWorkerError(
            "The worker that held these codes was lost, and they with it. The factorization f has "
            "all it needs to code X again: f.encode(X). Of several starts, fit from the best again."
        )
    return _shares[name].codes()[block]


def set_codes_here(name: str, block: int, H: Array) -> None:
    """A task on a share's worker: replace the codes of one block."""
    _shares[name].set_codes({block: H})


def _aligned(block: Any) -> Any:
    """The matrix as compiled code wants it: what came in a message may begin at any byte."""
    if sparse.issparse(block):
        parts = (block.data, block.indices, block.indptr)
        return block if all(part.flags.aligned for part in parts) else block.copy()
    return np.require(block, requirements="A")


def _same(block: Any) -> Any:
    return block
