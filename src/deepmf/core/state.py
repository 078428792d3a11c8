"""The small side of a fit: every factor but H_1, and the surrogates of the data terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.core.surrogate import Surrogate


class DataSurrogates(NamedTuple):
    """All that the small side ever learns of X and H_1."""

    terms: tuple[Surrogate, ...]
    """Surrogates of the model's data terms, each as a function of its basis B."""
    exact: bool = True
    """Whether every surrogate equals its term for all B, so that errors follow from it."""
    penalty: float = 0.0
    """The regularizer's value at H_1, without its strength."""

    gram: Array = np.zeros((0, 0))
    """H H' of the codes on the data side."""

    def __add__(self, other: DataSurrogates) -> DataSurrogates:  # type: ignore[override]
        """Sum of the surrogates of two sets of columns."""
        terms = tuple(a + b for a, b in zip(self.terms, other.terms))
        exact, penalty = self.exact and other.exact, self.penalty + other.penalty
        return DataSurrogates(terms, exact, penalty, self.gram + other.gram)


@dataclass
class State:
    """The small side: every factor but the codes on the data side, and the data's surrogates.

    Layers count from 0 here: ``W[0]`` is the paper's W_1.

    ==========  ======================  ==================  ==================
    hierarchy   W                       H                   on the data side
    ==========  ======================  ==================  ==================
    components  W_1, ..., W_L           (empty), H_2, ...   X, H_1
    codes       W_1, Z_2, ..., Z_L      (empty), ...        X, [H_1; ...; H_L]
    ==========  ======================  ==================  ==================
    """

    W: list[Array] = field(default_factory=list)
    H: list[Array] = field(default_factory=list)
    data: DataSurrogates = field(default_factory=lambda: DataSurrogates(()))
    scales: list[Array] = field(default_factory=list)
    """Mean of each row of H_1, ..., H_{L-1} for depth over codes: the next layer fits codes
    divided by these."""

    def __getitem__(self, factor: tuple[str, int]) -> Array:
        """A factor by its letter and layer."""
        kind, layer = factor
        return (self.W if kind == "W" else self.H)[layer]

    def __setitem__(self, factor: tuple[str, int], M: Array) -> None:
        kind, layer = factor
        (self.W if kind == "W" else self.H)[layer] = M

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.W)

    @property
    def over_codes(self) -> bool:
        """Whether all codes are on the data side, stacked."""
        return bool(self.scales)

    def rows(self, layer: int) -> slice:
        """The rows of a layer's codes among all codes on the data side."""
        if not self.over_codes:
            return slice(0, self.W[0].shape[1])
        ends = np.cumsum([0, *(M.shape[1] for M in self.W)])
        return slice(int(ends[layer]), int(ends[layer + 1]))

    def placed(self, B: Array, layer: int) -> Array:
        """B in the columns that multiply a layer's codes, and zeros in the others."""
        if not self.over_codes:
            return B
        out = np.zeros((len(B), self.rows(self.depth - 1).stop))
        out[:, self.rows(layer)] = B
        return out

    def basis(self, layer: int) -> Array:
        """B such that X ~ B times the codes on the data side is the layer's approximation."""
        if self.over_codes:
            B = self.W[0]
            for Z in self.W[1 : layer + 1]:
                B = B @ Z
            return self.placed(B, layer)
        B = self.W[layer]
        for H in self.H[layer:0:-1]:
            B = B @ H
        return B

    def components(self, layer: int) -> Array:
        """The layer's components as columns: W_l, or W_1 Z_2 ... Z_l for depth over codes."""
        return self.basis(layer)[:, self.rows(layer)] if self.over_codes else self.W[layer]
