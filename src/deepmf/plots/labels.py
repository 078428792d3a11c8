"""Names of components, features and samples, as pictures and reports write them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepmf.layout import Layout, component_ids


def component_names(names: Sequence[str] | None, layer: int, rank: int) -> list[str]:
    """The given names, or ``L1-1``, ``L1-2``, ..."""
    if names is None:
        return component_ids(layer, rank)
    return _as_many(names, rank, "components")


def feature_names(layout: Layout, m: int, names: Sequence[str] | None = None) -> list[str]:
    """The given names, or the layout's: features, wavelengths or bands; else ``X[i]``."""
    given = _listed(layout.features) if names is None else names
    if given is not None:
        return _as_many(given, m, "features (rows of X)")
    if layout.wavelengths is not None:
        return [f"{w:.0f} nm" for w in layout.wavelengths]
    if layout.bands is not None:
        return [f"band {b}" for b in layout.bands]
    return [f"X[{i}]" for i in range(m)]


def sample_names(layout: Layout, n: int, names: Sequence[str] | None = None) -> list[str]:
    """The given names, or the layout's, else ``X[:, j]``."""
    given = _listed(layout.samples) if names is None else names
    if given is not None:
        return _as_many(given, n, "samples (columns of X)")
    return [f"X[:, {j}]" for j in range(n)]


def shorten(text: str, inches: float, points: float) -> str:
    """The text, with an ellipsis in its middle where letters of this size would not fit."""
    room = max(2, int(inches * 72 / (0.58 * points)))
    if len(text) <= room:
        return text
    end = (room - 1) * 2 // 5  # of names that begin alike, the end tells
    return text[: room - 1 - end].rstrip() + "…" + text[len(text) - end :].lstrip()


def heading(text: str, inches: float, points: float) -> str:
    """A name in a panel's title, each of its lines shortened."""
    return "\n".join(shorten(line, inches, points) for line in text.splitlines())


def wrap(text: str, inches: float, points: float) -> str:
    """The text in as many lines as letters of this size need."""
    return "\n".join(textwrap.wrap(text, max(10, int(inches * 72 / (0.56 * points)))))


def _as_many(names: Sequence[str], count: int, what: str) -> list[str]:
    if len(names) != count:
        raise ValueError(f"{len(names)} names were given for {count} {what}.")
    return [str(name) for name in names]


def _listed(names: NDArray[np.str_] | None) -> list[str] | None:
    return None if names is None else names.tolist()
