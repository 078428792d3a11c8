"""Small pictures of single components, for the layer graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.factorization import Factorization
from deepmf.plots.graph import Size
from deepmf.plots.images import (
    Box,
    Picture,
    Scale,
    ToPicture,
    draw_frame,
    draw_image,
    to_picture,
)
from deepmf.plots.style import write
from deepmf.plots.texts import shorten
from deepmf.plots.top_features import top_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WORDS = 4
_LINE = 0.095
"""Height of a word in inches."""


class Thumbnails:
    """Draws component k of a layer into a box, in the way that suits the data.

    A scene's is its map, a picture's the component itself, a table's the largest features by name,
    and a curve where there are no names.
    """

    def __init__(
        self, f: Factorization, image: Picture | None, features: Sequence[str] | None = None
    ) -> None:
        self.f = f
        self.note = ""
        self.draw, self.size = self._choose(image, features)

    def _choose(
        self, image: Picture | None, features: Sequence[str] | None
    ) -> tuple[Callable[[Axes, Box, int, int], None], Size]:
        f, layout = self.f, self.f.layout
        if features is not None and image is None:
            return self._of_words(features)
        if layout.kind == "pictures" or (layout.kind == "table" and _is_of_features(image, f)):
            self._picture = to_picture(f, image, "rows")
            self._signed = any(float(W.min()) < 0 for W in f.W)
            large = "red: positive, blue: negative" if self._signed else "black: large"
            self.note = f"each component has its own scale, {large}"
            return self._component, self._image_size(f.W[0][:, 0], 0.24, 0.8)
        if image is not None or layout.kind == "scene":
            self._picture = to_picture(f, image, "columns")
            self._amounts = [f.view(layer).fractions.values for layer in range(1, f.depth + 1)]
            self.note = "each map has its own color scale"
            return self._map, self._image_size(f.H[0][0], 0.4, 1.0)
        if layout.features is not None:
            return self._of_words(None)
        self.note = "each component has its own scale"
        return self._curve, Size(0.4, 1.0, 0.6)

    _picture: ToPicture

    def _of_words(
        self, features: Sequence[str] | None
    ) -> tuple[Callable[[Axes, Box, int, int], None], Size]:
        layers = range(1, self.f.depth + 1)
        self._tops = [top_features(self.f, layer, _WORDS, features) for layer in layers]
        self.note = f"the {_WORDS} largest features of each component"
        return self._words, Size(0.68, 0.85, 0.6)

    def _image_size(self, values: Array, smallest: float, largest: float) -> Size:
        rows, cols = self._picture(values).shape
        return Size(smallest, largest, rows / cols)

    def _map(self, ax: Axes, box: Box, layer: int, k: int) -> None:
        held = self._amounts[layer - 1][k]
        self._image(ax, self._picture(held), Scale.of(held), box, layer, k)

    def _component(self, ax: Axes, box: Box, layer: int, k: int) -> None:
        w = self.f.W[layer - 1][:, k]
        scale = Scale.of(w, "gray_r", percentile=100, signed=self._signed)
        self._image(ax, self._picture(w), scale, box, layer, k)

    def _image(self, ax: Axes, picture: Array, scale: Scale, box: Box, layer: int, k: int) -> None:
        draw_image(ax, picture, scale, extent=box, aspect="auto", gid=f"layer-{layer}-{k + 1}")
        draw_frame(ax, box)

    def _words(self, ax: Axes, box: Box, layer: int, k: int) -> None:
        left, right, bottom, top = box
        points = 72 * _LINE * 0.8
        room = right - left - 0.04
        for line, (word, _) in enumerate(self._tops[layer - 1][k]):
            y = (bottom + top) / 2 + (1.5 - line) * _LINE
            text = shorten(word, room, points)
            gid = f"layer-{layer}-{k + 1}"
            write(ax, (left + right) / 2, y, text, points, va="center_baseline", gid=gid)
        draw_frame(ax, box, fill="white")

    def _curve(self, ax: Axes, box: Box, layer: int, k: int) -> None:
        left, right, bottom, top = box
        w = self.f.W[layer - 1][:, k]
        low, high = min(0.0, float(w.min())), max(0.0, float(w.max()))
        x = np.linspace(left, right, len(w))
        y = bottom + (top - bottom) * (0.05 + 0.9 * (w - low) / ((high - low) or 1.0))
        draw_frame(ax, box, fill="white")
        ax.plot(x, y, color="0.15", lw=0.7, gid=f"layer-{layer}-{k + 1}")


def _is_of_features(image: Picture | None, f: Factorization) -> bool:
    """Whether a given shape can only be that of a column of W."""
    m, n = len(f.W[0]), f.H[0].shape[1]
    return isinstance(image, tuple) and prod(image) == m != n
