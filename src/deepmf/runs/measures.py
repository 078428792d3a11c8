"""Measures of a fit that need the classes of the samples or the data themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from deepmf.core.quadratic import Array
from deepmf.data.dataset import Dataset
from deepmf.factorization import Factorization
from deepmf.metrics import cluster_scores, hierarchy_agreement, npmi_coherence, topic_diversity

_TOP_COHERENT, _TOP_DIVERSE = 10, 25
"""Top words of a topic for its coherence and for the diversity of all."""


def layer_measures(f: Factorization, data: Dataset) -> list[dict[str, float]]:
    """Measures of each layer by name: against classes where known, and of topics.

    Clusters are k-means of the codes for pictures, and largest codes for other data. Topics are the
    components of sparse data whose features have names.
    """
    topics = (
        sparse.issparse(data.X)
        and data.layout.features is not None
        and data.X.shape[0] >= _TOP_DIVERSE
    )
    found: list[dict[str, float]] = [{} for _ in f.ranks]
    for layer, measures in enumerate(found, start=1):
        W = f.view(layer).W
        if data.labels is not None:
            measures |= _of_classes(f, layer, data)
        if topics and np.isfinite(W).all():
            measures |= _of_topics(W, data.X)
    return found


def _of_classes(f: Factorization, layer: int, data: Dataset) -> dict[str, float]:
    codes = f.view(layer).codes.values
    if not np.isfinite(codes).all():
        return {}
    by = "kmeans" if data.layout.kind == "pictures" else "argmax"
    scores = cluster_scores(codes, data.labels, by)  # type: ignore[arg-type]
    found = dict(zip(("NMI", "ARI", "ACC", "purity"), scores))
    if layer > 1:
        below = f.view(layer - 1).codes.values
        siblings = hierarchy_agreement(f.links(layer), below, data.labels)  # type: ignore[arg-type]
        if np.isfinite(siblings.agreement):
            found |= {
                "sibling agreement": siblings.agreement,
                "agreement by chance": siblings.chance,
            }
    return found


def _of_topics(W: Array, X: Any) -> dict[str, float]:
    coherence = npmi_coherence(W, X, _TOP_COHERENT).mean
    return {"NPMI": coherence, "topic diversity": topic_diversity(W, _TOP_DIVERSE)}
