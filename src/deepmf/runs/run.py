"""A fit together with what it takes to show it and to repeat it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepmf.core.quadratic import Array
from deepmf.data.dataset import Truth
from deepmf.factorization import Factorization
from deepmf.hierarchy.names import component_ids
from deepmf.metrics import match

DOUBTFUL = 15.0
"""MRSA above which a component bears a true one's name with a question mark."""


class Score(NamedTuple):
    """One layer against its truth, component by component of the fit."""

    order: NDArray[np.intp]
    """The component paired with each true one."""
    distances: Array
    """MRSA of each pair, in the truth's order."""
    mean: float


@dataclass(frozen=True, eq=False)
class Run:
    """A finished fit.

    Attributes
    ----------
    name : str
        Of the data.
    f : Factorization
        With the data's layout.
    config : str
        The settings, as the TOML text that repeats the fit.
    facts : mapping of str to str
        Short facts to show: file, size, duration, versions.
    truth : mapping of int to Truth
        By layer, from 1; empty where nothing is known.
    residual : array of n floats, optional
        ||x_j - W_1 h_j|| / ||x_j|| of each sample.
    notes : sequence of str
        Warnings of the fit.
    """

    name: str
    f: Factorization
    config: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    truth: Mapping[int, Truth] = field(default_factory=dict)
    residual: Array | None = None
    notes: Sequence[str] = ()

    def score(self, layer: int) -> Score | None:
        """The layer against its truth, where that is known and the fit did not diverge."""
        known, W = self.truth.get(layer), self.f.basis(layer)
        if known is None or known.W.shape[1] > W.shape[1] or not np.isfinite(W).all():
            return None
        return Score(*match(known.W, W))

    def names(self, layer: int) -> list[str]:
        """``L1-3 water``: layer, number, and the true component it is paired with, if any.

        ``L1-3 water?`` where the two are far from each other, above MRSA 15.
        """
        names = component_ids(layer, self.f.ranks[layer - 1])
        score = self.score(layer)
        if score is not None:
            for name, k, distance in zip(self.truth[layer].names, score.order, score.distances):
                names[k] += f" {name}" + ("?" if distance > DOUBTFUL else "")
        return names

    def titles(self, layer: int) -> list[str]:
        """`names`, each with its MRSA on a second line."""
        titles = self.names(layer)
        score = self.score(layer)
        if score is not None:
            for k, distance in zip(score.order, score.distances):
                titles[k] += f"\nMRSA {distance:.1f}"
        return titles
