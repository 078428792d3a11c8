"""Data sets: X, its layout, and the truth of each layer if it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf.data.layout import Layout

Array = NDArray[np.float64]


class Truth(NamedTuple):
    """True components of one layer, m x k, and their names."""

    W: Array
    names: Sequence[str]
    note: str = ""
    """Note on what was done to make them fit the data."""
    A: Array | None = None
    """True abundances, k x n, in the order of the samples; codes may have any scale."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """``X ~ W[0] H[0], W[0] ~ W[1] H[1], ...`` with what is known of the truth.

    Columns of X are data points (pixels, faces), as in the paper.

    Attributes
    ----------
    name : str
    X : m x n
        An array, possibly memory-mapped, or a SciPy sparse matrix.
    layout : Layout
        Names, wavelengths and pictures.
    W : list of ndarray
        True bases, ``W[l]`` is m x r_l. As many layers as are known, possibly none.
    H : list of ndarray
        True factors: ``H[0]`` r_1 x n (the codes), ``H[1]`` r_2 x r_1, ... Never more than W.
    names : list of list of str
        Names of the components of each layer of W.
    A : list of ndarray or None
        True abundances of the samples for each layer of W, r_l x n; empty where none are known.
    labels : array of n str, optional
        Classes of the samples.
    notes : list of str
        How the data were read: what was chosen, scaled or left out. A note that advises a setting
        is a `Message`.
    """

    name: str
    X: Any
    layout: Layout = field(default_factory=Layout)
    W: list[Array] = field(default_factory=list)
    H: list[Array] = field(default_factory=list)
    names: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    A: list[Array | None] = field(default_factory=list)
    labels: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together."""
        m, n = self.X.shape
        if len(self.names) != len(self.W) or len(self.H) > len(self.W):
            raise ValueError(
                f"{self.name}: {len(self.W)} bases come with {len(self.names)} lists of names and "
                f"{len(self.H)} factors, but each basis needs its names and each factor its basis."
            )
        for layer, (Wl, names) in enumerate(zip(self.W, self.names)):
            if Wl.shape != (m, len(names)):
                raise ValueError(
                    f"{self.name}: W[{layer}] has shape {Wl.shape}, but with the rows of X and one "
                    f"column per name it must be {(m, len(names))}."
                )
        lower = [n, *(len(names) for names in self.names)]
        for layer, Hl in enumerate(self.H):
            if Hl.shape != (lower[layer + 1], lower[layer]):
                raise ValueError(
                    f"{self.name}: H[{layer}] has shape {Hl.shape}, but to join its layers it must "
                    f"be {(lower[layer + 1], lower[layer])}."
                )
        if len(self.A) not in (0, len(self.W)):
            raise ValueError(
                f"{self.name}: {len(self.W)} bases come with {len(self.A)} abundances; give one or "
                f"None for each."
            )
        for layer, (Al, names) in enumerate(zip(self.A, self.names)):
            if Al is not None and Al.shape != (len(names), n):
                raise ValueError(
                    f"{self.name}: A[{layer}] has shape {Al.shape}, but with one row per name and "
                    f"the columns of X it must be {(len(names), n)}."
                )
        self.layout.check((m, n), self.name)

    def __repr__(self) -> str:
        truth = " > ".join(str(len(names)) for names in self.names) or "none"
        return f"Dataset({self.name!r}, X {self.X.shape[0]} x {self.X.shape[1]}, truth: {truth})"

    def prepared(self, X: Any, layout: Layout) -> Dataset:
        """Copy with X scaled, or with some of its features, which the true components have too."""
        kept = layout.kept
        W = self.W if kept is None else [M[kept] for M in self.W]
        return replace(self, X=X, layout=layout, W=W)

    @property
    def truths(self) -> list[Truth]:
        """The true components of each layer with their names and abundances."""
        known = zip_longest(self.W, self.names, self.A)
        return [Truth(W, names, A=A) for W, names, A in known]

    @property
    def wavelengths(self) -> Array | None:
        """Band centers in nanometers."""
        return self.layout.wavelengths

    @property
    def image_shape(self) -> tuple[int, int] | None:
        """The picture's shape, where X holds pictures."""
        return self.layout.image_shape

    def image(self, values: ArrayLike) -> Array:
        """One value per pixel as a picture, see `Layout.image`."""
        return self.layout.image(values)
