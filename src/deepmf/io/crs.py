"""Coordinate system and pixel size of a scene, as text."""

from __future__ import annotations

import re

import numpy as np

from deepmf.data.layout import Layout
from deepmf.data.provenance import Georeference


def place_of(layout: Layout) -> dict[str, str]:
    """``coordinates`` and ``pixel size`` of a scene, as far as its file says."""
    known = layout.georeference
    info = [part.strip() for part in known.envi.get("map info", "").strip("{} ").split(",")]
    found = {"coordinates": _system(known, info), "pixel size": _pixel_size(layout, info)}
    return {name: text for name, text in found.items() if text}


def _system(known: Georeference, info: list[str]) -> str:
    """The name of the coordinate system."""
    texts = [known.crs, known.envi.get("coordinate system string", "")]
    for attrs in known.grid_mapping.values():
        texts += [attrs.get("crs_wkt", ""), attrs.get("spatial_ref", "")]
    for text in texts:
        if named := re.search(r'\w+\["([^"]+)"', str(text)):
            return named[1].replace("_", " ")
    for attrs in known.grid_mapping.values():
        if "grid_mapping_name" in attrs:
            return str(attrs["grid_mapping_name"]).replace("_", " ")
    words = [word for word in (info[:1] + info[7:10]) if word and "=" not in word]
    return " ".join(words)


def _pixel_size(layout: Layout, info: list[str]) -> str:
    """Width x height of a pixel, in the units of the coordinates."""
    if layout.georeference.transform is not None:
        a, b, _, d, e, _ = layout.georeference.transform
        return f"{np.hypot(a, d):.6g} x {np.hypot(b, e):.6g}"
    if len(info) > 6:
        return f"{info[5]} x {info[6]}"
    steps = []
    for ticks in (layout.x, layout.y):
        if ticks is None or ticks.dtype.kind not in "uif" or len(ticks) < 2:
            return ""
        steps.append(abs(float(ticks[-1]) - float(ticks[0])) / (len(ticks) - 1))
    return f"{steps[0]:.6g} x {steps[1]:.6g}"
