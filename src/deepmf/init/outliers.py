"""Columns that a start may use: neither zero nor outliers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels

Members = NDArray[np.bool_]

_SHARE = 100
"""At most one column in this many is an outlier."""

_FAR = 3.0
"""An outlier is longer than all but this share of the columns by more than this factor."""

_NEAR = 0.5
"""Distance, relative to its length, within which another column vouches for a column."""

_BATCH = 64
"""Columns that are compared with the others together."""


def usual_columns(panels: Panels) -> Members:
    """Mask of the columns that are neither zero nor outliers.

    With ``q`` the largest norm once the longest hundredth of the columns is left out, column j is
    an outlier if ``||x_j|| > 3 q`` and no other column lies within ``||x_j|| / 2`` of it. Fewer
    than a hundred columns have no outliers.
    """
    norms = np.sqrt(panels.column_norms2())
    usual = norms > 0
    few = np.count_nonzero(usual) // _SHARE
    if few:
        q = np.partition(norms, -few - 1)[-few - 1]
        long = np.flatnonzero(norms > _FAR * q)
        usual[long[_alone(panels, norms, long, np.flatnonzero(norms > _NEAR * _FAR * q))]] = False
    return usual


def _alone(
    panels: Panels, norms: Array, long: NDArray[np.intp], others: NDArray[np.intp]
) -> Members:
    """Mask of the long columns that none of the others is near; shorter ones cannot be."""
    alone = np.ones(len(long), dtype=bool)
    for first in range(0, len(long), _BATCH):
        some = long[first : first + _BATCH]
        norm2 = norms[some, None] ** 2
        inner = panels.dot(panels.columns(some), others)
        near = norm2 - 2 * inner + norms[others] ** 2 <= _NEAR**2 * norm2
        near &= some[:, None] != others
        alone[first : first + _BATCH] = ~near.any(axis=1)
    return alone
