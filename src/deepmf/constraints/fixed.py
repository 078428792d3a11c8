"""Known components, held while the others are fitted."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from deepmf._utils.messages import counted
from deepmf.constraints.base import Constraint
from deepmf.constraints.entries import Nonnegative
from deepmf.core.arrays import dense_matrix
from deepmf.core.quadratic import Array, Block

_TOLERATED_VIOLATION = 1e-6


class Fixed(Constraint):
    """{[V, Z] : Z in the set of ``constraint``} on W, {[V; Z] : ...} on H, with V given.

    The first k components are V and never move; the others are free under ``constraint``. With as
    many values as the factor has, all of it is held. In W components are columns (known spectra,
    signatures), in H rows (known maps). Solvers see the free part alone, so each of them works.

    Parameters
    ----------
    values : matrix, m x k for W, k x n for H
        V, in the data's units, itself in the set of ``constraint``.
    constraint : Constraint, optional
        Of the free part; nonnegativity unless given. Under rows that are held it must act on single
        entries, as what is left to a column of proportions would differ from column to column.

    Examples
    --------
    >>> import numpy as np
    >>> from deepmf import Fixed, factorize
    >>> rng = np.random.default_rng(0)
    >>> known = rng.random((20, 2))
    >>> X = np.c_[known, rng.random((20, 1))] @ rng.random((3, 50))
    >>> f = factorize(X, ranks=[3], constraint_W=Fixed(known), max_iter=50, tol=0)
    >>> bool(np.array_equal(f.W[0][:, :2], known))
    True
    """

    name = "fixed"

    def __init__(self, values: Any, constraint: Constraint | None = None) -> None:
        self.values = dense_matrix(values, "Fixed's values").astype(np.float64, copy=False)
        unknown = int(np.count_nonzero(~np.isfinite(self.values)))
        if unknown:
            bad = counted(unknown, "entry that is", "entries that are")
            raise ValueError(
                f"Fixed's values has {bad} NaN or infinite; give components that are known in full."
            )
        self.constraint = Nonnegative() if constraint is None else constraint
        if not isinstance(self.constraint, Constraint) or isinstance(self.constraint, Fixed):
            raise ValueError(
                f"Fixed's constraint must be a set for the free part, such as Simplex(), got "
                f"{constraint!r}."
            )
        tied = self.constraint.separable is None  # then only the free part is asked to meet it
        violation = 0.0 if tied else self.constraint.violation(self.values)
        if violation > _TOLERATED_VIOLATION:
            raise ValueError(
                f"Fixed's values are not in {self.constraint!r}: they are off by {violation:.3g} "
                f"of their size. Give values of that set, or Fixed another constraint."
            )
        self.convex = self.constraint.convex
        self.nonnegative = self.constraint.nonnegative
        self.bounded = self.constraint.bounded

    @property
    def minimizes(self) -> bool:
        """Whether the set of the free part does."""
        return self.constraint.minimizes

    @property
    def inner(self) -> Constraint:
        """Set of the free part."""
        return self.constraint

    def free(self, shape: tuple[int, ...]) -> Block:
        """Block to the right of the values, or below them."""
        rows, columns = self.values.shape
        if rows == shape[0]:
            return slice(None), slice(columns, None)
        return slice(rows, None), slice(None)

    def project(self, M: Array) -> Array:
        """The values, and the free part projected onto its set."""
        out = np.empty_like(M)
        out[: self.values.shape[0], : self.values.shape[1]] = self.values
        block = self.free(M.shape)
        if out[block].size:
            out[block] = self.constraint.project(M[block])
        return out

    def scales(self, M: Array) -> Array | None:
        """Scales of the free columns; 1 for held ones, whose scale is given."""
        block = self.free(M.shape)
        free = self.constraint.scales(M[block]) if M[block].size else None
        if free is None or len(free) == M.shape[1]:
            return None
        return np.append(np.ones(self.values.shape[1]), free)

    def arrange(self, M: Array) -> Array:
        """A start's columns without those nearest in angle to the values, which take their place.

        Each value drops one column, at the least total angle.
        """
        if self.values.shape[0] != M.shape[0]:
            return M
        from scipy.optimize import linear_sum_assignment

        cosines = _unit_columns(self.values).T @ _unit_columns(M)
        _, dropped = linear_sum_assignment(np.arccos(np.clip(cosines, -1, 1)))
        return np.column_stack([self.values, np.delete(M, dropped, axis=1)])

    def objection_on(self, kind: Literal["H", "W"], shape: tuple[int, int]) -> str | None:
        """Components that are rows on W or columns on H, and all that `objection` says."""
        rows, columns = self.values.shape
        if kind == "W" and (rows != shape[0] or columns > shape[1]):
            wanted = f"{shape[0]} rows (components in columns, at most {shape[1]})"
        elif kind == "H" and (columns != shape[1] or rows > shape[0]):
            wanted = f"{shape[1]} columns (components in rows, at most {shape[0]})"
        else:
            return self.objection(shape)
        return f"its values are {rows} x {columns}, but must have {wanted}"

    def objection(self, shape: tuple[int, int]) -> str | None:
        """Values of another size, or rows under a set that ties the entries of a column."""
        rows, columns = self.values.shape
        whole = rows == shape[0], columns == shape[1]
        if not any(whole) or rows > shape[0] or columns > shape[1]:
            return (
                f"its values are {rows} x {columns}, but must have {shape[0]} rows (components in "
                f"columns, at most {shape[1]}) or {shape[1]} columns (components in rows, at most "
                f"{shape[0]})"
            )
        if not whole[0] and self.constraint.separable != "entries":
            return "rows can be held only under a constraint on single entries"
        block = np.empty(shape)[self.free(shape)]
        return self.constraint.objection(block.shape) if block.size else None

    def __repr__(self) -> str:
        rows, columns = self.values.shape
        return f"Fixed({rows} x {columns} values, constraint={self.constraint!r})"


def _unit_columns(M: Array) -> Array:
    norms = np.linalg.norm(M, axis=0)
    return M / np.where(norms > 0, norms, 1)
