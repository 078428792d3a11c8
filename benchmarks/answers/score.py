"""Scores of a layer against true spectra or against classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import normalize

from deepmf.metrics import match

from .methods import Layer
from .sets import Answers


def score(data: Answers, number: int, layer: Layer, seed: int) -> float | None:
    """MRSA to the true spectra (0 is best), or NMI with the classes (1 is best)."""
    if number in data.spectra:
        return float(match(data.spectra[number], layer.W).mean)
    if number in data.labels:
        return nmi(data, number, layer, seed)
    return None


def nmi(data: Answers, number: int, layer: Layer, seed: int) -> float:
    """NMI of the largest code of each sample, or of k-means on codes of norm 1."""
    classes = np.unique(data.labels[number], return_inverse=True)[1]
    return float(normalized_mutual_info_score(classes, _groups(data, classes, layer.H, seed)))


def best_nmi(data: Answers, number: int, layer: Layer, seed: int) -> float:
    """The better NMI of two scales: codes as they are, and components' codes of norm 1."""
    norms = np.linalg.norm(layer.H, axis=1, keepdims=True)
    unit = Layer(layer.W, layer.H / np.maximum(norms, np.finfo(float).tiny))
    return max(nmi(data, number, one, seed) for one in (layer, unit))


def _groups(data: Answers, classes: Any, H: Any, seed: int) -> Any:
    if not data.cluster:
        return np.argmax(H, axis=0)
    number = len(np.unique(classes))
    return KMeans(number, n_init=10, random_state=seed).fit_predict(normalize(H.T))
