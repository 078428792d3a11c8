"""The small side of a fit: every factor but H_1, and what is known of X through H_1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from deepmf.core.quadratic import Array


class DataProducts(NamedTuple):
    """All that the small side ever learns of X and H_1, m x r_1 and r_1 x r_1 numbers."""

    XHt: Array
    """X H_1'; where entries are missing, one such matrix for each of the loss's data terms, each
    with X filled by that term's own approximation."""
    HHt: Array
    """H_1 H_1'."""
    penalty: float
    """The regulariser's value at H_1, without its strength."""


@dataclass
class State:
    """W_1..W_L, H_2..H_L and the data products; H_1 and X stay in the panels.

    Layers count from 0 here: ``W[0]`` is the paper's W_1. ``H[0]`` has no columns on this side.
    """

    norm2: float
    """||X||^2."""
    W: list[Array] = field(default_factory=list)
    H: list[Array] = field(default_factory=list)
    data: DataProducts = field(default_factory=lambda: DataProducts(np.empty(0), np.empty(0), 0.0))

    def factors(self, kind: str) -> list[Array]:
        """All of W ("W") or of H ("H"), from the first layer on."""
        return self.W if kind == "W" else self.H

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.W)

    def lift(self, layer: int) -> Array:
        """H_l ... H_2, so that H_l ... H_1 = lift(l) H_1 (identity for the first layer)."""
        T = np.eye(self.W[0].shape[1])
        for H in self.H[1 : layer + 1]:
            T = H @ T
        return T

    def chain(self, k: int, layer: int) -> Array:
        """C_l^(k) = W_k H_k ... H_{l+1}: layer k's basis written in the size of layer l's."""
        C = self.W[k]
        for H in self.H[k:layer:-1]:
            C = C @ H
        return C

    def XHt(self, term: int) -> Array:
        """X H_1' as one of the loss's data terms sees X."""
        XHt = self.data.XHt
        return XHt if XHt.ndim == 2 else XHt[term]

    def DDt(self, layer: int) -> Array:
        """D_l D_l', for every layer but the first."""
        T = self.lift(layer - 1)
        return T @ self.data.HHt @ T.T
