"""One parent each: links of a hierarchy that is a tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepmf._utils.messages import SettingError
from deepmf.constraints.base import Constraint
from deepmf.core.majorized import Majorized
from deepmf.core.quadratic import Array

_ROUNDS = 20
"""Rounds through the columns where these depend on each other."""


class OneParent(Constraint):
    """{H >= 0 : each column has at most one nonzero entry}.

    On H_l with l >= 2 every component of layer l - 1 belongs to a single one of layer l: the
    hierarchy is a tree. On H_1, whose columns are samples, and on W it is refused. Under a
    layer-centric model all layers are fitted with free links first, and the tree to the components
    found, so that siblings are not pulled together. The block of H_l is minimized exactly. For a
    quadratic whose columns are independent, ``A_kk/2 h^2 - c_kj h`` in the one entry of column j,
    that is::

        k = argmax over c_kj > 0 of c_kj^2 / A_kk,    h = c_kj / A_kk
        unit:  k = argmin of A_kk / 2 - c_kj,         h = 1

    and otherwise one column after the other, with the others fixed.

    Parameters
    ----------
    unit : bool
        Whether the entry is 1: the codes of a parent are then the sums of its children's.

    References
    ----------
    Garrett et al., "Hyperspectral unmixing hierarchies", arXiv 2604.16969 (2026), for ``unit``.
    """

    name = "one-parent"
    separable = "columns"
    convex = False
    nonnegative = True

    def __init__(self, unit: bool = False) -> None:
        if not isinstance(unit, bool | np.bool_):
            raise SettingError(f"OneParent's unit must be True or False, got {unit!r}.")
        unit = bool(unit)
        self.unit, self.bounded, self.cone = unit, unit, not unit

    def project(self, M: Array) -> Array:
        """The largest entry of each column, clipped at zero; with ``unit``, 1 in its place."""
        return self._only(M.shape, M.argmax(axis=0), np.maximum(M.max(axis=0), 0.0))

    @property
    def minimizes(self) -> bool:
        """True: a divergence from a factor is minimized over the one entry of each column."""
        return True

    def minimize(self, q: Any, M: Array) -> Array:
        """The exact minimizer, or one column after the other until none changes."""
        if isinstance(q, Majorized):
            ((f, L, _),) = q.parts
            values, costs = f.single(L, 1.0 if self.unit else None)  # type: ignore[attr-defined]
            k = costs.argmin(axis=0)
            return self._only(M.shape, k, np.take_along_axis(values, k[None], axis=0)[0])
        if q.column_separable:
            A = sum(a * b for a, b in q.terms)
            diagonal = np.full(len(M), A) if np.ndim(A) == 0 else np.diag(A)
            return self._best(diagonal, np.broadcast_to(q.C, M.shape))
        M, C = M.copy(), np.broadcast_to(q.C, M.shape)
        terms = [(_matrix(a, len(M)), _matrix(b, M.shape[1])) for a, b in q.terms]
        for _ in range(_ROUNDS):
            before = M.copy()
            for j in range(M.shape[1]):
                own = np.asarray(sum(b[j, j] * a for a, b in terms))
                rest = sum(a @ (M @ b[:, j]) for a, b in terms) - own @ M[:, j]
                M[:, [j]] = self._best(np.diag(own), (C[:, j] - rest)[:, None])
            if np.array_equal(M, before):
                break
        return M

    def _best(self, diagonal: Array, C: Array) -> Array:
        """Each column's minimizer of ``A_kk/2 h^2 - c_kj h`` over its one entry."""
        d = np.maximum(diagonal, np.finfo(float).tiny)[:, None]
        positive = np.maximum(C, 0)
        gains = C - d / 2 if self.unit else positive**2 / d
        k = gains.argmax(axis=0)
        return self._only(C.shape, k, np.take_along_axis(positive / d, k[None], axis=0)[0])

    def _only(self, shape: tuple[int, ...], k: Array, values: Array) -> Array:
        """Zeros but for entry k of each column."""
        out = np.zeros(shape, values.dtype)
        out[k, np.arange(shape[1])] = 1.0 if self.unit else values
        return out


def _matrix(side: Array | float, size: int) -> Array:
    return side * np.eye(size) if isinstance(side, float) else side
