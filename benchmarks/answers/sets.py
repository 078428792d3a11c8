"""Data sets with a truth: spectra for scenes, classes for samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfTransformer

from deepmf.data.features import most_variable, rows_of
from deepmf.datasets import load_jasper, load_samson, load_urban, simulated_scene, synthetic

GENES = 3000
"""Most variable genes that are kept of cells."""


@dataclass(frozen=True)
class Answers:
    """A matrix of samples in columns, the ranks to fit, and what is known of each layer."""

    X: Any
    ranks: Sequence[int]
    recipe: str | None
    spectra: dict[int, Any] = field(default_factory=dict)
    """True components, by the number of the layer from 1."""
    labels: dict[int, Any] = field(default_factory=dict)
    """Classes of the samples, by layer."""
    cluster: bool = False
    """Whether codes are clustered by k-means, or else by their largest entry."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings beside the recipe, where the data need some."""
    counts: Any = None
    """The raw counts that X was made of, if it was."""


def scene(load: Callable[[], Any], ranks: Sequence[int]) -> Callable[[int], Answers]:
    """A published scene, whose true components belong to the layers of their number."""

    def loaded(seed: int) -> Answers:
        data = load()
        known = {W.shape[1]: W for W in data.W}
        spectra = {layer: known[r] for layer, r in enumerate(ranks, start=1) if r in known}
        return Answers(data.X, ranks, "scene", spectra=spectra)

    return loaded


def simulated(seed: int) -> Answers:
    """A simulated scene with true components for every layer."""
    data = simulated_scene(random_state=seed)
    spectra = dict(enumerate(data.W, start=1))
    return Answers(data.X, [6, 4, 2], "scene", spectra=spectra)


def of_paper(noise: float) -> Callable[[int], Answers]:
    """The synthetic data of the paper, with six components in three features."""

    def made(seed: int) -> Answers:
        data = synthetic(noise=noise, random_state=seed)
        spectra = dict(enumerate(data.W, start=1))
        return Answers(data.X, [6, 3], "scene", spectra=spectra, settings={"allow_negative": True})

    return made


def cells(seed: int) -> Answers:
    """Sorted blood cells: counts to 1e4, log1p, the most variable genes."""
    folder = _folder() / "cells"
    counts = sparse.csr_array(sparse.load_npz(folder / "pbmc_facs_counts.npz").T, dtype=float)
    X = sparse.csr_array(sparse.diags_array(1e4 / counts.sum(axis=1)) @ counts).log1p().T
    kept = most_variable(X, GENES)
    X, counts = rows_of(X, kept).tocsc(), rows_of(counts.T, kept).tocsc()
    classes = np.load(folder / "pbmc_facs_meta.npz", allow_pickle=True)["celltype"]
    return Answers(X, [15, 5], "cells", labels={1: classes, 2: classes}, counts=counts)


def text(name: str, ranks: Sequence[int], upper: str) -> Callable[[int], Answers]:
    """Documents as sublinear tf-idf of norm 1, with classes for both layers."""

    def loaded(seed: int) -> Answers:
        folder = _folder() / "text"
        counts = sparse.csr_array(sparse.load_npz(folder / f"{name}_counts.npz").T, dtype=float)
        meta = np.load(folder / f"{name}_meta.npz", allow_pickle=True)
        X = sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts))
        labels = {1: meta["label"], 2: meta[upper]}
        return Answers(X.T.tocsc(), ranks, "topics", labels=labels, counts=counts.T.tocsc())

    return loaded


def pictures(name: str, ranks: Sequence[int]) -> Callable[[int], Answers]:
    """Pictures of objects or people."""

    def loaded(seed: int) -> Answers:
        found = np.load(_folder() / "images" / f"{name}.npz")
        classes = {1: found["label"], 2: found["label"]}
        return Answers(found["X"].astype(float), ranks, "images", labels=classes, cluster=True)

    return loaded


def digits(seed: int) -> Answers:
    """Handwritten digits, which come with scikit-learn."""
    X, classes = load_digits(return_X_y=True)
    return Answers(X.T, [20, 10], "images", labels={1: classes, 2: classes}, cluster=True)


SETS: dict[str, Callable[[int], Answers]] = {
    "simulated (6,4,2)": simulated,
    "synthetic .025 (6,3)": of_paper(0.0251),
    "synthetic .16 (6,3)": of_paper(0.1585),
    "digits (20,10)": digits,
    "Samson (3)": scene(load_samson, [3]),
    "Samson (3,2)": scene(load_samson, [3, 2]),
    "Jasper (4)": scene(load_jasper, [4]),
    "Jasper (4,2)": scene(load_jasper, [4, 2]),
    "Jasper (6,4)": scene(load_jasper, [6, 4]),
    "Urban 77x77 (6,4,2)": scene(load_urban, [6, 4, 2]),
    "pbmc (15,5)": cells,
    "20 newsgroups (20,7)": text("20news", [20, 7], "top_level"),
    "tdt2 (60,30)": text("tdt2", [60, 30], "label"),
    "coil20 (60,20)": pictures("coil20", [60, 20]),
    "orl (80,40)": pictures("orl", [80, 40]),
}
"""Data sets by name and ranks; the first four need no files."""

QUICK = ("simulated (6,4,2)", "synthetic .025 (6,3)", "digits (20,10)")


def _folder() -> Path:
    """The folder with research data, or a FileNotFoundError."""
    folder = os.environ.get("DEEPMF_DATA")
    if not folder:
        raise FileNotFoundError("DEEPMF_DATA names no folder with data.")
    return Path(folder)
