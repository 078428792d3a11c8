"""The horizontal axis of curves, which all components share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.data.layout import Layout
from deepmf.report.numbers import bins, extremes, rounded
from deepmf.report.texts import short

_FEW_ROWS = 40
"""Up to here rows without names are bars; more are a curve."""


class Axis(NamedTuple):
    """The horizontal axis of curves, which all components share."""

    label: str
    x: Array
    pieces: list[slice]
    parts: list[slice] | None
    """Bins that are shown by their extremes if there are too many values."""
    ticks: list[str] | None = None
    """Names of the places, where they are few."""

    @classmethod
    def of(cls, layout: Layout, m: int, points: int) -> Axis | None:
        """None where components are pictures, or bars: named features, or few rows."""
        if layout.kind == "pictures":
            return None
        if layout.wavelengths is not None:
            label, x = "wavelength (nm)", np.asarray(layout.wavelengths, dtype=np.float64)
        elif layout.bands is not None:
            label, x = "band", np.asarray(layout.bands, dtype=np.float64)
        elif layout.kind == "scene":
            label, x = "band", np.asarray(layout.feature_numbers(m) + 1, dtype=np.float64)
        elif layout.features is not None or m <= _FEW_ROWS:
            return None
        else:
            label, x = "row", np.asarray(layout.feature_numbers(m) + 1, dtype=np.float64)
        pieces = layout.pieces() or [slice(0, m)]
        parts = bins(pieces, points // 2) if m > points else None
        return cls(label, x, pieces, parts, layout.band_ticks())

    def curve(self, values: Array) -> list[float | None]:
        """A component's values, or the extremes of its bins."""
        return rounded(values if self.parts is None else extremes(values, self.parts))

    def content(self) -> dict[str, Any]:
        """Label, places and pieces of the points that `curve` gives, and how many rows each is."""
        if self.parts is None:
            return {
                "label": self.label,
                "x": rounded(self.x, 7),
                "pieces": [[p.start, p.stop] for p in self.pieces],
                "binned": 1,
                "ticks": None if self.ticks is None else [short(name) for name in self.ticks],
            }
        first = [
            k for k, p in enumerate(self.parts) if any(p.start == q.start for q in self.pieces)
        ]
        ends = [*first[1:], len(self.parts)]
        return {
            "label": self.label,
            "x": rounded(np.repeat([self.x[p].mean() for p in self.parts], 2), 7),
            "pieces": [[2 * a, 2 * b] for a, b in zip(first, ends)],
            "binned": self.parts[0].stop - self.parts[0].start,
            "ticks": None,
        }
