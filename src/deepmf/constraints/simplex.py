"""Columns that are proportions: the simplex and the capped simplex."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepmf._utils.threads import do_in_threads, in_threads
from deepmf.constraints.base import Constraint
from deepmf.core.quadratic import Array
from deepmf.core.separable import Separable
from deepmf.kernels.loading import load_kernels

_TASK_ENTRIES = 1 << 14
"""Entries of the columns that a thread minimizes together, about a millisecond's work."""


_LONG = 1000
"""Entries of a column from which a compiled projection in linear time pays."""


class Simplex(Constraint):
    """{M : M >= 0, each column sums to 1}; for W, column-stochastic."""

    name = "simplex"
    separable = "columns"
    nonnegative = True
    bounded = True
    minimizes = True

    def project(self, M: Array) -> Array:
        """argmin over z >= 0, sum z = 1 of ||z - m||, for each column m."""
        return project_simplex(M)

    def minimize(self, q: Any, M: Array) -> Array | None:
        """See `Constraint.minimize`."""
        if not isinstance(q, Separable):
            return None
        found = _compiled(q, M)
        return q.on_simplex(M) if found is None else found

    def scales(self, M: Array) -> Array:
        """Column sums of the nonnegative part; 1 for a column without any."""
        sums = np.maximum(M, 0).sum(axis=0)
        return np.where(sums > 0, sums, 1.0)


class CappedSimplex(Constraint):
    """{M : M >= 0, each column sums to at most 1}."""

    name = "capped-simplex"
    separable = "columns"
    nonnegative = True
    bounded = True
    minimizes = True

    def project(self, M: Array) -> Array:
        """argmin over z >= 0, sum z <= 1 of ||z - m||, for each column m."""
        Z = np.maximum(M, 0)
        over = Z.sum(axis=0) > 1
        if over.any():
            Z[:, over] = project_simplex(M[:, over])
        return Z

    def minimize(self, q: Any, M: Array) -> Array | None:
        """See `Constraint.minimize`."""
        return q.on_simplex(M, capped=True) if isinstance(q, Separable) else None

    def scales(self, M: Array) -> Array:
        """Column sums of the nonnegative part where they exceed 1, else 1."""
        return np.maximum(np.maximum(M, 0).sum(axis=0), 1.0)


def _compiled(q: Separable, M: Array) -> Array | None:
    """The minimizer by the compiled kernel, where that knows the function and succeeds."""
    ridge = q.powers.get(1, 0.0)
    known = set(q.powers) <= {0, -1, 1} and np.ndim(ridge) == 0 and (q.log or not ridge)
    if not known or load_kernels() is None:
        return None
    from deepmf.kernels.simplex_roots import simplex_roots

    c, k = (_columns(sign * np.asarray(q.powers.get(p, 0.0)), M) for p, sign in ((0, 1), (-1, -1)))
    begin, out = _columns(M, M), np.empty(M.T.shape)
    width = max(1, _TASK_ENTRIES // len(M))

    def task(j: int) -> bool:
        last = min(j + width, len(out))
        return bool(simplex_roots(c, k, float(ridge), q.log, begin, j, last, out))

    done = all(list(in_threads(task, range(0, len(out), width))))
    return np.ascontiguousarray(out.T) if done else None


def _columns(A: Array, M: Array) -> Array:
    """A, of M's shape, with its columns as rows in float64."""
    return np.ascontiguousarray(np.broadcast_to(A, M.shape).T, dtype=np.float64)


def project_simplex(M: Array) -> Array:
    """max(m - t, 0) with t such that the column sums to 1."""
    if len(M) < _LONG or not np.isfinite(M).all() or load_kernels() is None:
        return _by_sorting(M)
    from deepmf.kernels.simplex_projection import project_rows

    rows = np.ascontiguousarray(M.T)
    out = np.empty_like(rows)
    do_in_threads(lambda j: project_rows(rows, out, j, j + 1), range(len(rows)))
    return np.ascontiguousarray(out.T)


def _by_sorting(M: Array) -> Array:
    """`project_simplex` in O(r log r) for each column."""
    top = M.max(axis=0, keepdims=True)
    M = M - top  # the projection is blind to shifts; near 0 the sums below keep their digits
    U = np.sort(M, axis=0)[::-1]
    excess = np.cumsum(U, axis=0, dtype=M.dtype) - 1
    count = np.arange(1, len(M) + 1, dtype=M.dtype)[:, None]
    support = np.count_nonzero(U * count > excess, axis=0)
    t = np.take_along_axis(excess, support[None, :] - 1, axis=0) / support.astype(M.dtype)
    return np.maximum(M - t, 0)
