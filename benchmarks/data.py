"""Benchmark data of any size; real data if DEEPMF_DATA has them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import loadmat

from deepmf.datasets import load_cbcl, simulated_scene

Array = NDArray[np.floating]

BANDS, PIXELS, MATERIALS = 162, 94249, 6


def scene(n: int = PIXELS, m: int = BANDS, seed: int = 0) -> Array:
    """``max(W A diag(b) + noise, 0)``, m x n: mixed pixels of six materials, 1 % noise.

    For 162 bands, W and A are the published ground truth of Urban if DEEPMF_DATA has it (columns of
    A repeated as needed), else spectra of the simulated scene and Dirichlet(0.3) fractions. The
    brightness b is uniform in [0.6, 1.4].
    """
    rng = np.random.default_rng(seed)
    W, A = _urban_truth() if m == BANDS else (None, None)
    if W is None or A is None:
        W = simulated_scene(32, 32, bands=m).W[0]
        A = rng.dirichlet(np.full(MATERIALS, 0.3), n).T
    A = np.take(A, np.arange(n) % A.shape[1], axis=1)
    X = W @ (A * rng.uniform(0.6, 1.4, n))
    noise = rng.standard_normal(X.shape, dtype=np.float32)
    noise *= 0.01 * np.linalg.norm(X) / np.sqrt(X.size)
    X += noise
    return np.maximum(X, 0, out=X)


def scene_source() -> str:
    return "Urban's published truth" if _urban_truth()[0] is not None else "simulated spectra"


@cache
def _urban_truth() -> tuple[Array, Array] | tuple[None, None]:
    folder = os.environ.get("DEEPMF_DATA")
    path = next(iter(Path(folder).rglob("end6_groundTruth.mat")), None) if folder else None
    if path is None:
        return None, None
    truth = loadmat(path)
    return truth["M"].astype(float), np.maximum(truth["A"].astype(float), 0)


def faces() -> tuple[Array, str]:
    """CBCL, 361 x 2429, or images of sparse parts of the same shape; and the name of the source."""
    try:
        return load_cbcl().X, "CBCL"
    except FileNotFoundError:
        pass
    rng = np.random.default_rng(0)
    parts = rng.random((361, 120)) * (rng.random((361, 120)) < 0.15)
    X = parts @ rng.gamma(0.5, 1.0, (120, 2429))
    return X / X.max() + 0.01 * rng.random(X.shape), "synthetic, of CBCL's shape"


def documents(m: int, n: int, density: float, topics: int = 100) -> sparse.csc_array:
    """Counts of m words in n documents, a fraction ``density`` nonzero: low rank plus noise.

    Each word of a document is drawn from a topic of its own mixture (Dirichlet 0.1); each topic
    follows Zipf's law with its own order of words. The number of draws is adjusted to the density.
    """
    rng = np.random.default_rng(0)
    order = np.array([rng.permutation(m) for _ in range(topics)])
    share = np.cumsum(1.0 / (1 + np.arange(m)))
    share /= share[-1]

    def draw(n: int, words: int) -> sparse.csc_array:
        mixture = np.cumsum(rng.dirichlet(np.full(topics, 0.1), n), axis=1)
        topic = np.array([np.searchsorted(c, rng.random(words)) for c in mixture])
        place = np.searchsorted(share, rng.random((n, words)))
        rows = order[np.minimum(topic, topics - 1), np.minimum(place, m - 1)].ravel()
        columns = np.repeat(np.arange(n), words)
        return sparse.csc_array(sparse.coo_array((np.ones(rows.size), (rows, columns)), (m, n)))

    words = wanted = density * m
    for _ in range(5):
        words *= wanted * 200 / draw(200, round(words)).nnz
    return draw(n, round(words))
