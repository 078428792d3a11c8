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
from deepmf.metrics import AbundanceErrors, Matching, abundance_rmse, match, sad

OF_TRUTH = ("MRSA", "SAD", "abundance RMSE")
"""Names of the measures against the truth."""

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
    measured : sequence of mapping of str to float
        By layer, measures that need classes or the data, see `deepmf.runs.measures`.
    """

    name: str
    f: Factorization
    config: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    truth: Mapping[int, Truth] = field(default_factory=dict)
    residual: Array | None = None
    notes: Sequence[str] = ()
    measured: Sequence[Mapping[str, float]] = ()

    @cached_property
    def scores(self) -> dict[int, Matching]:
        """Layers matched with their truth, by number: MRSA of each pair, and their mean.

        Layers without a truth are left out, and so are those that diverged or are smaller than it.
        """
        return {
            layer: match(self.truth[layer].W, W)
            for layer, W in enumerate(self._components, start=1)
            if layer in self.truth
            and self.truth[layer].W.shape[1] <= W.shape[1]
            and np.isfinite(W).all()
        }

    @cached_property
    def angles(self) -> dict[int, Array]:
        """Spectral angles in radians of the pairs of `scores`, by layer."""
        return {
            layer: np.diag(sad(self.truth[layer].W, self._components[layer - 1][:, score.order]))
            for layer, score in self.scores.items()
        }

    @cached_property
    def abundances(self) -> dict[int, AbundanceErrors]:
        """Errors of the fractions of the pairs of `scores`, by layer, where the truth has some.

        Layers of signed factors are left out: they have no fractions.
        """
        found = {}
        for layer, score in self.scores.items():
            A, fractions = self.truth[layer].A, self.f.view(layer).fractions
            if A is not None and fractions.kind == "fractions":
                found[layer] = abundance_rmse(A, fractions.values, score.order)
        return found

    @cached_property
    def measures(self) -> list[dict[str, float]]:
        """All measures of each layer by name, those against the truth first."""
        layers: list[dict[str, float]] = [{} for _ in self.f.ranks]
        for layer, score in self.scores.items():
            layers[layer - 1] |= {"MRSA": score.mean, "SAD": float(self.angles[layer].mean())}
            if layer in self.abundances:
                layers[layer - 1]["abundance RMSE"] = self.abundances[layer].overall
        for own, more in zip(layers, self.measured):
            own |= more
        return layers

    @property
    def _components(self) -> list[Array]:
        return [self.f.view(layer).W for layer in range(1, self.f.depth + 1)]

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
