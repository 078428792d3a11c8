"""A fit together with what it takes to show it and to repeat it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.data.dataset import Truth
from deepmf.factorization import Factorization
from deepmf.hierarchy.names import component_ids
from deepmf.metrics import Matching, match

DOUBTFUL = 15.0
"""MRSA above which the name of a matched true component gets a question mark."""


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

    @cached_property
    def scores(self) -> dict[int, Matching]:
        """Layers matched with their truth, by number: MRSA of each pair, and their mean.

        Layers without a truth are left out, and so are those that diverged or are smaller than it.
        """
        return {
            layer: match(self.truth[layer].W, W)
            for layer, W in enumerate(self.f.W, start=1)
            if layer in self.truth
            and self.truth[layer].W.shape[1] <= W.shape[1]
            and np.isfinite(W).all()
        }

    @cached_property
    def names(self) -> list[list[str]]:
        """Per layer ``L1-3 water``: layer, number, and the matched true component, if any.

        ``L1-3 water?`` where the two are far from each other, above MRSA 15.
        """
        names = [component_ids(k, rank) for k, rank in enumerate(self.f.ranks, start=1)]
        for layer, score in self.scores.items():
            for name, k, distance in zip(self.truth[layer].names, score.order, score.distances):
                names[layer - 1][k] += f" {name}" + ("?" if distance > DOUBTFUL else "")
        return names

    def titles(self, layer: int) -> list[str]:
        """The layer's `names`, each with its MRSA on a second line."""
        titles = list(self.names[layer - 1])
        if layer in self.scores:
            score = self.scores[layer]
            for k, distance in zip(score.order, score.distances):
                titles[k] += f"\nMRSA {distance:.1f}"
        return titles
