"""The small side of a fit: every factor but H_1, and the surrogates of the data terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from deepmf.core.quadratic import Array
from deepmf.core.surrogate import Surrogate


class DataSurrogates(NamedTuple):
    """All that the small side ever learns of X and H_1."""

    terms: tuple[Surrogate, ...]
    """For each data term of the model, a surrogate of it as a function of its basis B."""
    exact: bool = True
    """Whether every surrogate equals its term for all B, so that errors follow from it."""
    penalty: float = 0.0
    """The regularizer's value at H_1, without its strength."""

    def __add__(self, other: DataSurrogates) -> DataSurrogates:  # type: ignore[override]
        """Those of the columns of both."""
        terms = tuple(a + b for a, b in zip(self.terms, other.terms))
        return DataSurrogates(terms, self.exact and other.exact, self.penalty + other.penalty)


@dataclass
class State:
    """W_1..W_L, H_2..H_L and the data's surrogates; H_1 and X stay on the data side.

    Layers count from 0 here: ``W[0]`` is the paper's W_1. ``H[0]`` has no columns on this side.
    """

    W: list[Array] = field(default_factory=list)
    H: list[Array] = field(default_factory=list)
    data: DataSurrogates = field(default_factory=lambda: DataSurrogates(()))

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

    def basis(self, layer: int) -> Array:
        """W_l H_l ... H_2, so that X ~ basis(l) H_1."""
        B = self.W[layer]
        for H in self.H[layer:0:-1]:
            B = B @ H
        return B
