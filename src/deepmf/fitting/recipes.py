"""Recipes: settings measured to give good answers for a kind of data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from deepmf._utils.messages import SettingError, setting
from deepmf.data.preparation import Preparation
from deepmf.fitting.registry import DEFAULT

NONE = "none"
"""The name that asks for no recipe, no scaling or no penalty."""

DEFAULTS: dict[str, Any] = {
    "model": "layer-centric",
    "hierarchy": "components",
    "normalize": "sum",
    "beta_loss": "frobenius",
    "tol": 1e-4,
}
"""Settings without a recipe; all others are None."""


@dataclass(frozen=True)
class Recipe:
    """Settings for a kind of data; a setting that is given wins over the recipe's."""

    name: str
    data: str
    """The kind of data, in words."""
    settings: Mapping[str, Any]
    """Arguments of `factorize`, as plain data."""
    deeper: Mapping[str, Any]
    """Arguments for every layer but the first."""
    counts: str | None = None
    """Scaling of raw counts."""
    max_features: int | None = None
    """Number of most variable features of raw counts to keep."""

    def of_depth(self, depth: int) -> dict[str, Any]:
        """Arguments of `factorize` for a number of layers."""
        per_layer = {name: [None, *[value] * (depth - 1)] for name, value in self.deeper.items()}
        return {**self.settings, **(per_layer if depth > 1 else {})}


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "scene",
            "hyperspectral images and other mixtures of a few spectra",
            {
                "model": {"name": "layer-centric", "lam": 0.15},
                "regularizer_W": "min-volume",
                "init": ["snpa", "k-means", "mv-dual", DEFAULT],
                "tol": 3e-5,  # volumes shrink slowly
            },
            {},
        ),
        Recipe(
            "topics",
            "documents as counts or weights of words",
            {"model": "data-centric", "normalize": "norm", "init": ["k-means", DEFAULT]},
            {"constraint_H": {"name": "one-parent", "unit": True}},
            counts="sublinear-tfidf",
        ),
        Recipe(
            "cells",
            "expression of genes in cells",
            {
                "model": {"name": "layer-centric", "lam": 0.03},
                "hierarchy": "codes",
                "init": ["k-means", DEFAULT],
            },
            {},
            counts="log",
            max_features=3000,
        ),
        Recipe(
            "images",
            "pictures of faces, objects or digits",
            {
                "model": "data-centric",
                "normalize": "codes",
                "init": ["k-means", DEFAULT],
                "tol": 0.03,  # centers of clusters, a few sweeps on, group pictures best
            },
            {},
        ),
    )
}


def recipe_of(name: object) -> Recipe | None:
    """The recipe of a name; None where none is asked for."""
    if name is None or name == NONE:
        return None
    if isinstance(name, str) and name in RECIPES:
        return RECIPES[name]
    raise SettingError(
        f"{setting('recipe')} must be one of {', '.join(map(repr, RECIPES))} or {NONE!r}, "
        f"got {name!r}."
    )


def preparation_of(
    recipe: Recipe | None, scale: Any = None, max_features: Any = None, beta_loss: Any = None
) -> Preparation:
    """Preparation of X as asked, and of raw counts as the recipe has it for squared errors.

    Divergences have a use for counts as they are.
    """
    if recipe is None or not all_squared(beta_loss):
        return Preparation(scale, max_features)
    return Preparation(scale, max_features, recipe.counts, recipe.max_features)


def with_recipe(
    recipe: Recipe | None, given: Mapping[str, Any], depth: int, held: bool = False
) -> dict[str, Any]:
    """Settings, with the recipe's or else the default in the place of those that are None.

    A recipe's penalty on W is left out where a set for W is given, which it may not suit, and where
    components are ``held``; its sets for H, and components of norm one, are for squared errors
    alone.
    """
    fallback = {**DEFAULTS, **({} if recipe is None else recipe.of_depth(depth))}
    if held or given.get("constraint_W") is not None:
        fallback.pop("regularizer_W", None)
    if not all_squared(given.get("beta_loss")):
        fallback.pop("constraint_H", None)
        if fallback["normalize"] == "norm":
            fallback["normalize"] = DEFAULTS["normalize"]
    return {k: fallback.get(k) if value is None else value for k, value in given.items()}


def all_squared(beta_loss: Any) -> bool:
    """Whether the layers that were asked for are all fitted by squared errors."""
    each = beta_loss if isinstance(beta_loss, list | tuple) else [beta_loss]
    return all(
        given in (DEFAULTS["beta_loss"], 2) for given in each if isinstance(given, str | Real)
    )
