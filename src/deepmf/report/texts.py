"""Texts of the page: names, meanings of columns, descriptions of fits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from deepmf.data.layout import Layout
from deepmf.data.preparation import words_of
from deepmf.factorization import Factorization

_LONGEST_NAME = 200

_STOPPED = {
    "tol": "stopped by tol",
    "max_iter": "stopped by max_iter",
    "max_time": "stopped by max_time",
    "callback": "stopped by a callback",
    "interrupted": "interrupted",
    "diverged": "stopped because it diverged",
}

_DISTANCES = {
    "frobenius": "squared errors",
    "kullback-leibler": "the Kullback-Leibler divergence",
    "itakura-saito": "the Itakura-Saito divergence",
}

_COLUMNS = {
    "MRSA": "angle between the layer's components and the true ones, after removal of their "
    "means; mean over the components, from 0 (same shape) to 100; lower is better",
    "SAD": "spectral angle of the same pairs in radians (1 rad is 57.3 degrees); mean over the "
    "components; lower is better",
    "abundance RMSE": "root mean square error of the fractions of the same pairs, which sum to "
    "1 in every pixel, from 0 to 1; lower is better",
    "NMI": "normalized mutual information of clusters and classes, from 0 to 1; higher is better. "
    "A sample's cluster is its largest code; for pictures, clusters are k-means of codes of norm 1",
    "ARI": "Rand index of clusters and classes, adjusted for chance: 0 for random clusters, at "
    "most 1; higher is better",
    "ACC": "share of samples whose cluster is paired with their class, at the best one-to-one "
    "pairing; higher is better",
    "purity": "share of samples in the largest class of their cluster; it rises with the number of "
    "clusters",
    "sibling agreement": "share of pairs of components with one parent in this layer whose samples "
    "mostly have the same class, from 0 to 1; higher is better",
    "agreement by chance": "sibling agreement to expect if parents were exchanged at random",
    "NPMI": "normalized pointwise mutual information of the 10 top features of a component over "
    "the samples, mean over the layer, from -1 to 1; higher is better",
    "topic diversity": "share of different features among the 25 top features of all components of "
    "the layer; higher is better",
    "error": "‖X − W_l H_l ⋯ H_1‖ / ‖X‖: how far layer l is from the data; lower is better",
    "layer error": "‖W_{l−1} − W_l H_l‖ / ‖W_{l−1} at the start‖, W_0 being X: how far layer l is "
    "from the layer above it; lower is better",
    "explained": "share of the data that layer l explains: 1 minus the part of the deviance that "
    "it leaves (of ‖X‖² for squared errors); higher is better, and shares by different distances "
    "do not compare",
    "layer explained": "share that layer l explains of what it fits, the layer above it; higher is "
    "better",
    "sparsity": "Hoyer's measure of the components, mean over the layer: 0 where all entries have "
    "the same size, 1 where one alone is not zero",
    "instability": "mean MRSA between matched components of layer 1 from two seeds: 0 where the "
    "seed does not matter",
    "sweeps": "updates of all factors",
    "seconds": "of the fit, without the compilation of kernels; median over the seeds",
}
"""Meanings of the columns of a ranking, by their names without layer and unit."""


def explained(column: str) -> tuple[str, str] | None:
    """Name and meaning of a ranking's column, ``layer error 2 %``; None where it is unknown."""
    name = re.sub(r"^layer \d+: | \d+|\(?%\)?", "", column).strip()
    return (name, _COLUMNS[name]) if name in _COLUMNS else None


def short(text: object) -> str:
    """Names come from files and may be of any length."""
    whole = str(text)
    return whole if len(whole) <= _LONGEST_NAME else whole[: _LONGEST_NAME - 1] + "…"


def numbered(names: Sequence[str]) -> list[str]:
    """The names, with numbers where several are the same."""
    count, seen = Counter(names), Counter[str]()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(f"{name} {seen[name]}" if count[name] > 1 else name)
    return labels


def model_name(f: Factorization) -> str:
    """The loss's name, or its class's."""
    return f.problem.loss.name or type(f.problem.loss).__name__


def summary(f: Factorization) -> str:
    """One sentence on a fit: the data, the ranks, the model and the reason it stopped."""
    m, n = len(f.W[0]), f.H[0].shape[1]
    ranks = " > ".join(str(r) for r in f.ranks)
    parts = "component" if f.ranks == [1] else "components"
    sweeps = "sweep" if f.n_iter == 1 else "sweeps"
    said = words_of(f.layout)
    prepared = f" ({said})" if said else ""
    return (
        f"{_size(f.layout, m, n)}{prepared} factored into {ranks} {parts} by the "
        f"{model_name(f)} model{_distance(f)}; "
        f"{f.n_iter} {sweeps}, {_STOPPED.get(f.stop_reason, f'stopped by {f.stop_reason}')}."
    )


def _distance(f: Factorization) -> str:
    """The distance of the fit, or those of its layers, where there are others than squares."""
    if not f.problem.fits:
        return ""
    named = f.problem.beta_loss
    each = named if isinstance(named, list) else [named]
    said = [_DISTANCES[b] if isinstance(b, str) else f"the beta divergence {b:.3g}" for b in each]
    return f" and {', then '.join(said)}"


def _size(layout: Layout, m: int, n: int) -> str:
    if layout.kind == "pictures" and layout.image_shape is not None:
        return f"{n} pictures of {layout.image_shape[0]} × {layout.image_shape[1]} pixels"
    if layout.kind == "scene":
        return f"{m} bands × {n} pixels"
    rows = "rows" if layout.features is None else "features"
    return f"{m} {rows} × {n} {'columns' if layout.samples is None else 'samples'}"


def duration(seconds: float) -> tuple[str, str]:
    """A number of few digits and its unit."""
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= 1.5 * size or (unit == "s" and seconds >= 0.1):
            return digits(seconds / size), unit
    return digits(1000 * seconds), "ms"


def digits(number: float) -> str:
    """As many decimals as others beside it: 1.90 and 12.34, 340; 0.00123."""
    return f"{number:.2f}" if 0.1 <= abs(number) < 100 else f"{number:.3g}"
