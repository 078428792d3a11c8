"""Methods that are compared: deepmf by recipe and by default, and what people use today."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF

from deepmf import factorize
from deepmf.data.panels import DensePanels
from deepmf.fitting.recipes import RECIPES
from deepmf.init import snpa, vca

from .sets import Answers

Array = Any

KULLBACK_LEIBLER = "kullback-leibler"

ITERATIONS = 200
"""Iterations of scikit-learn's NMF."""


class Layer(NamedTuple):
    """Components in columns, and the codes of all samples in columns."""

    W: Array
    H: Any = None
    """Needed where classes are known."""


def recipe(data: Answers, seed: int, **more: Any) -> list[Layer]:
    """deepmf with the recipe for this kind of data and no other setting."""
    return _deep(data, seed, recipe=data.recipe, **more)


def default(data: Answers, seed: int) -> list[Layer]:
    """deepmf without any setting but the ranks."""
    return _deep(data, seed)


def counts(data: Answers, seed: int) -> list[Layer]:
    """deepmf with the recipe and the Kullback-Leibler divergence, of raw counts.

    Depth over codes takes squared errors below the first layer.
    """
    over_codes = RECIPES[data.recipe].settings.get("hierarchy") == "codes"
    deeper = "frobenius" if over_codes else KULLBACK_LEIBLER
    losses = [KULLBACK_LEIBLER, *[deeper] * (len(data.ranks) - 1)]
    return recipe(replace(data, X=data.counts), seed, beta_loss=losses)


def nmf(data: Answers, seed: int) -> list[Layer]:
    """scikit-learn NMF, squared error, NNDSVD, each rank by itself."""
    return [_nmf(data.X, r, seed) for r in data.ranks]


def nmf_kl(data: Answers, seed: int) -> list[Layer]:
    """scikit-learn NMF, Kullback-Leibler divergence, each rank by itself."""
    options = {"beta_loss": KULLBACK_LEIBLER, "solver": "mu", "init": "nndsvda"}
    return [_nmf(data.X, r, seed, **options) for r in data.ranks]


def nmf_counts(data: Answers, seed: int) -> list[Layer]:
    """scikit-learn NMF, Kullback-Leibler divergence, of raw counts, each rank by itself."""
    return nmf_kl(replace(data, X=data.counts), seed)


def snpa_nnls(data: Answers, seed: int) -> list[Layer]:
    """Extreme samples by SNPA, and nonnegative least squares."""
    return [_extreme(snpa, data.X, r, seed) for r in data.ranks]


def vca_nnls(data: Answers, seed: int) -> list[Layer]:
    """Extreme samples by VCA, and nonnegative least squares."""
    return [_extreme(vca, data.X, r, seed) for r in data.ranks]


def kmeans(data: Answers, seed: int) -> list[Layer]:
    """k-means of the samples: centers, and one sample's only code is its cluster."""
    layers = []
    for r in data.ranks:
        found = KMeans(r, n_init=10, random_state=seed).fit(data.X.T)
        layers.append(Layer(found.cluster_centers_.T, np.eye(r)[:, found.labels_]))
    return layers


METHODS: dict[str, Callable[[Answers, int], list[Layer]]] = {
    "deepmf, recipe": recipe,
    "deepmf, default": default,
    "deepmf, recipe, KL of counts": counts,
    "NMF": nmf,
    "NMF, KL": nmf_kl,
    "NMF, KL of counts": nmf_counts,
    "SNPA + NNLS": snpa_nnls,
    "VCA + NNLS": vca_nnls,
    "k-means": kmeans,
}

OF_SCENES = ("SNPA + NNLS", "VCA + NNLS")
"""Methods that look for nearly pure samples."""

OF_COUNTS = ("deepmf, recipe, KL of counts", "NMF, KL of counts")
"""Methods that need raw counts."""


def _deep(data: Answers, seed: int, ranks: Any = None, **settings: Any) -> list[Layer]:
    chosen = {"random_state": seed, **data.settings, **settings}
    f = factorize(data.X, data.ranks if ranks is None else ranks, **chosen)
    layers = range(1, f.depth + 1)
    return [Layer(f.basis(k), f.encode(data.X, k) if k in data.labels else None) for k in layers]


def _nmf(X: Array, rank: int, seed: int, **options: Any) -> Layer:
    init = {"init": "nndsvd" if rank <= min(X.shape) else "random", **options}
    if rank > min(X.shape):
        init["init"] = "random"
    X = X.maximum(0) if hasattr(X, "maximum") else np.maximum(X, 0)
    model = NMF(rank, max_iter=ITERATIONS, random_state=seed, **init)
    codes = model.fit_transform(X.T)
    return Layer(model.components_.T, codes.T)


def _extreme(start: Callable[..., Array], X: Array, rank: int, seed: int) -> Layer:
    X = np.asarray(X)
    W = start(DensePanels(np.ascontiguousarray(X)), rank, np.random.default_rng(seed))
    return Layer(W, np.column_stack([nnls(W, x)[0] for x in X.T]))
