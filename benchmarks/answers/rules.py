"""Whether a recipe's answers hold when its weights, the data or the seed change a little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from deepmf import DataCentric, LayerCentric, MinVolume
from deepmf.fitting.recipes import RECIPES
from deepmf.fitting.registry import resolve

from .methods import recipe
from .score import score
from .sets import SETS, Answers

STEPS = (1 / 3, 3.0)
"""Factors by which weights are changed."""

REPETITIONS = 3
"""Timed fits, of which the median is taken."""


class Check(NamedTuple):
    """Scores of the layers with a changed setting, beside those of the recipe alone."""

    name: str
    change: str
    before: list[float]
    after: list[float]


def check(name: str, seeds: int) -> list[Check]:
    """The recipe with other weights and without some rows of the data."""
    data = SETS[name](0)
    before = _scores(data, 0)
    checks = [
        Check(name, change, before, _scores(data, 0, **settings))
        for change, settings in _weights(data)
    ]
    if len(data.ranks) > 1:
        checks.append(cost(name, data))
    if name == "Jasper (4)":
        for seed in range(seeds):
            for rows in (4, 6):
                less = replace(data, X=_without_rows(data.X, rows, seed))
                change = f"without {rows} of 100 image rows, seed {seed}"
                checks.append(Check(name, change, before, _scores(less, seed)))
    return checks


def _weights(data: Answers) -> Iterator[tuple[str, dict[str, Any]]]:
    """The weights of a recipe, one after the other times 1/3 and 3."""
    settings = RECIPES[data.recipe].of_depth(len(data.ranks))
    model, penalty = resolve("model", settings["model"]), settings.get("regularizer_W")
    for factor in STEPS:
        if len(data.ranks) > 1 and isinstance(model, LayerCentric):
            yield f"lam x {factor:.2g}", {"model": LayerCentric(factor * model.lam)}
        elif len(data.ranks) > 1:
            yield f"mu x {factor:.2g}", {"model": DataCentric(factor)}
        if penalty is not None:
            yield f"min-volume x {factor:.2g}", {"regularizer_W": MinVolume(factor)}


def _without_rows(X: Any, count: int, seed: int) -> Any:
    """A 100 x 100 scene without some rows of the image."""
    kept = np.sort(np.random.default_rng(seed).permutation(100)[count:])
    return X.reshape(len(X), 100, 100)[:, :, kept].reshape(len(X), -1)


def _scores(data: Answers, seed: int, **settings: Any) -> list[float]:
    from .__main__ import timed

    layers, _ = timed(recipe, data, seed, **settings)
    scores = [score(data, number, layer, seed) for number, layer in enumerate(layers, start=1)]
    return [value for value in scores if value is not None]


def cost(name: str, data: Answers) -> Check:
    """Seconds of the recipe's fit beside those of its fit of the first rank alone, medians."""
    from .__main__ import timed

    data = replace(data, labels={})  # codes take no part in it
    first = replace(data, ranks=[data.ranks[0]])
    pairs = [
        (timed(recipe, data, 0)[1], timed(recipe, first, 0, tol=1e-4)[1])
        for _ in range(REPETITIONS)
    ]
    deep, flat = (median(seconds) for seconds in zip(*pairs))
    return Check(name, "seconds, beside a flat fit of the first rank", [deep], [flat])
