"""Where on Earth a scene is, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from deepmf.data.layout import Layout


def place_of(layout: Layout) -> dict[str, str]:
    """``coordinates`` and ``pixel size`` of a scene, as far as its file says."""
    header = layout.header
    said = str(header.get("envi", {}).get("map info", "")).strip("{} ")
    info = [part.strip() for part in said.split(",")]
    found = {"coordinates": _system(header, info), "pixel size": _size(layout, info)}
    return {name: said for name, said in found.items() if said}


def _system(header: Mapping[str, Any], info: list[str]) -> str:
    """The name of the coordinate system."""
    texts = [header.get("crs", ""), header.get("envi", {}).get("coordinate system string", "")]
    for attrs in header.get("crs_variable", {}).values():
        texts += [attrs.get("crs_wkt", ""), attrs.get("spatial_ref", "")]
    for text in texts:
        if named := re.search(r'\w+\["([^"]+)"', str(text)):
            return named[1].replace("_", " ")
    for attrs in header.get("crs_variable", {}).values():
        if "grid_mapping_name" in attrs:
            return str(attrs["grid_mapping_name"]).replace("_", " ")
    words = [word for word in (info[:1] + info[7:10]) if word and "=" not in word]
    return " ".join(words)


def _size(layout: Layout, info: list[str]) -> str:
    """Width x height of a pixel, in the units of the coordinates."""
    if "transform" in layout.header:
        a, b, _, d, e, _ = layout.header["transform"]
        return f"{np.hypot(a, d):.6g} x {np.hypot(b, e):.6g}"
    if len(info) > 6:
        return f"{info[5]} x {info[6]}"
    steps = []
    for ticks in (layout.x, layout.y):
        if ticks is None or ticks.dtype.kind not in "uif" or len(ticks) < 2:
            return ""
        steps.append(abs(float(ticks[-1]) - float(ticks[0])) / (len(ticks) - 1))
    return f"{steps[0]:.6g} x {steps[1]:.6g}"
