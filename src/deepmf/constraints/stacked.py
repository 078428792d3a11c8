"""A product of sets, one for the rows of each layer's codes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from deepmf.constraints.base import Constraint
from deepmf.core.quadratic import Array
from deepmf.core.separable import Separable

_BY_SCOPE = ("entries", "columns")


class Stacked(Constraint):
    """{M : the rows of each part lie in the part's set}.

    Parameters
    ----------
    parts : sequence of Constraint
        The sets.
    sizes : sequence of int
        The number of rows of each.
    """

    def __init__(self, parts: Sequence[Constraint], sizes: Sequence[int]) -> None:
        self.parts, self.sizes = tuple(parts), tuple(sizes)
        kinds = {part.separable for part in parts}
        self.separable = None if None in kinds else max(kinds, key=_BY_SCOPE.index)  # type: ignore[misc]
        self.convex = all(part.convex for part in parts)
        self.nonnegative = all(part.nonnegative for part in parts)
        self.bounded = all(part.bounded for part in parts)

    @property
    def minimizes(self) -> bool:
        """See `Constraint.minimizes`."""
        return all(part.minimizes for part in self.parts)

    def minimize(self, q: Any, M: Array) -> Array | None:
        """See `Constraint.minimize`: each part on its own rows."""
        if not isinstance(q, Separable):
            return None
        ends = np.cumsum([0, *self.sizes])
        blocks = [(slice(a, b), slice(None)) for a, b in pairwise(ends)]
        own = (P.minimize(q.part(M.shape, b), M[b]) for P, b in zip(self.parts, blocks))
        return np.vstack(list(own))  # type: ignore[arg-type]

    def project(self, M: Array) -> Array:
        """Each part projected onto its set."""
        ends = np.cumsum([0, *self.sizes])
        return np.vstack([P.project(M[a:b]) for P, (a, b) in zip(self.parts, pairwise(ends))])


def stacked(parts: Sequence[Constraint], sizes: Sequence[int]) -> Constraint:
    """The product of some sets: one of them where all are the same and act on entries."""
    first = parts[0]
    if first.separable == "entries" and all(part == first for part in parts):
        return first
    return Stacked(parts, sizes)
