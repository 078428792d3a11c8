"""Names of components, features and samples, as pictures, reports and texts write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from deepmf.core.quadratic import Array
from deepmf.data.layout import Layout


def component_ids(layer: int, rank: int) -> list[str]:
    """``L2-1``, ``L2-2``, ...: the components of layer 2, wherever they are spoken of."""
    return [f"L{layer}-{k}" for k in range(1, rank + 1)]


def component_names(names: Sequence[str] | None, layer: int, rank: int) -> list[str]:
    """The given names, or ``L1-1``, ``L1-2``, ..."""
    if names is None:
        return component_ids(layer, rank)
    return _as_many(names, rank, "components")


def feature_names(layout: Layout, m: int, names: Sequence[str] | None = None) -> list[str]:
    """The given names, or the layout's: features, wavelengths or bands; else ``X[i]``.

    Names of all features may be given where X has some of them.
    """
    given = _listed(layout.features) if names is None else names
    if names is not None and layout.kept is not None and np.shape(names) == layout.kept.shape:
        given = np.asarray(names)[layout.kept].tolist()
    if given is not None:
        return _as_many(given, m, "features (rows of X)")
    if layout.wavelengths is not None:
        return [f"{w:.0f} nm" for w in layout.wavelengths]
    if layout.bands is not None:
        return [f"band {b}" for b in layout.bands]
    return [f"X[{i}]" for i in layout.feature_numbers(m)]


def sample_names(layout: Layout, n: int, names: Sequence[str] | None = None) -> list[str]:
    """The given names, or the layout's, else ``X[:, j]``."""
    given = _listed(layout.samples) if names is None else names
    if given is not None:
        return _as_many(given, n, "samples (columns of X)")
    return [f"X[:, {j}]" for j in range(n)]


def layer_names(
    names: Sequence[Sequence[str] | None] | None, ranks: Sequence[int]
) -> list[list[str]]:
    """Names of all layers; those of the last layers may be left out."""
    if isinstance(names, str) or not isinstance(names, Iterable | None):
        raise ValueError(
            f"Names of components must be a list of lists, one per layer, got {names!r}."
        )
    given = [] if names is None else list(names)
    if len(given) > len(ranks):
        raise ValueError(f"{len(given)} lists of names were given for {len(ranks)} layers.")
    given += [None] * (len(ranks) - len(given))
    return [
        component_names(listed, layer, rank)
        for layer, (listed, rank) in enumerate(zip(given, ranks), start=1)
    ]


def top_rows(W: Array, names: Sequence[str], n: int) -> list[list[tuple[str, float]]]:
    """Per column, the names of the n largest ``|W(i, k)|``, largest first, with ``W(i, k)``.

    Zeros are left out.
    """
    largest = np.argsort(-np.abs(W), axis=0, kind="stable")[:n]
    return [
        [(names[i], float(W[i, k])) for i in column if W[i, k] != 0]
        for k, column in enumerate(largest.T)
    ]


def _as_many(names: Sequence[str], count: int, what: str) -> list[str]:
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise ValueError(f"The names of {count} {what} must be a list, got {names!r}.")
    if len(names) != count:
        raise ValueError(f"{len(names)} names were given for {count} {what}.")
    return [str(name) for name in names]


def _listed(names: NDArray[np.str_] | None) -> list[str] | None:
    return None if names is None else names.tolist()
