"""Data in as many dimensions as there are vertices, where volumes can be measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import counted, setting
from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels
from deepmf.init.base import StartError
from deepmf.init.outliers import usual_columns

_FLAT = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}
"""Width of the hull, relative to the largest singular value, at which it is flat."""


@dataclass(frozen=True)
class Reduced:
    """The usual columns of X in the span of its r leading left singular vectors."""

    index: NDArray[np.intp]
    """Indices of these columns in X."""
    U: Array
    """The singular vectors, m x r."""
    Y: Array
    """U'X of these columns, r x n."""
    P: Array
    """Basis of the differences between columns of Y, r x (r - 1): the principal directions."""

    @property
    def points(self) -> Array:
        """[P'(y - mean y); c] with c the largest norm above it: columns of a hyperplane, r x n.

        Dependent vertices of the hull, and only these, are dependent columns.
        """
        if len(self.Y) == 1:
            return self.Y
        Z = self.P.T @ (self.Y - self.Y.mean(axis=1, keepdims=True))
        return np.vstack([Z, np.full(Z.shape[1], np.linalg.norm(Z, axis=0).max())])


def reduced(panels: Panels, rank: int, who: str) -> Reduced:
    """X without its zero columns and outliers in ``rank`` dimensions."""
    members = usual_columns(panels)
    index = np.flatnonzero(members)
    most = min(panels.shape[0], len(index))
    if rank > most:
        raise StartError(_too_many(who, most, rank))
    U, s = panels.leading(rank, members)
    Y = panels.dot(U)[:, members]
    centered = Y - Y.mean(axis=1, keepdims=True)
    directions, widths, _ = np.linalg.svd(centered @ centered.T)
    flat = np.sqrt(widths[: rank - 1]) <= _FLAT[panels.dtype] * s[0]
    if flat.any():
        raise StartError(_too_many(who, int(np.argmax(flat)) + 1, rank))
    return Reduced(index, U, Y, directions[:, : rank - 1])


def _too_many(who: str, most: int, rank: int) -> str:
    return (
        f"{who} can find at most {counted(most, 'vertex', 'vertices')} in these data, where rank "
        f"{rank} was asked for: vertices need as many dimensions and distinct columns. Lower the "
        f"rank to {most}, or use {setting(init='snpa')} or {setting(init='random')}."
    )
