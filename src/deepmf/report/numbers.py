"""Arrays as short lists of JSON: rounded, thinned, quantized."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf.core.quadratic import Array

NO_DATA = 255
"""The code of a pixel without a value; values use the codes 0 to 254."""


def rounded(values: ArrayLike, digits: int = 5) -> list[Any]:
    """Nested lists of floats with N significant digits; None where not finite."""
    a = np.asarray(values, dtype=np.float64)
    if a.ndim > 1:
        return [rounded(row, digits) for row in a]
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in a.tolist()]


def root(squares: Array) -> Array:
    """``sqrt(max(s, 0))``: from relative squared errors to relative errors."""
    return np.sqrt(np.maximum(squares, 0))


def thinned(length: int, most: int) -> NDArray[np.intp]:
    """At most N of the indices 0 .. length - 1, equally spaced, with both ends."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(np.intp))


def bins(pieces: list[slice], most: int) -> list[slice]:
    """Each piece cut into bins of one width, the smallest that gives at most ``most`` in all."""
    total = sum(p.stop - p.start for p in pieces)
    width = max(1, -(-total // max(1, most - len(pieces))))
    return [slice(a, min(a + width, p.stop)) for p in pieces for a in range(p.start, p.stop, width)]


def extremes(values: Array, parts: list[slice]) -> Array:
    """Smallest and largest value of each bin, one after the other: peaks outlive thinning."""
    return np.array([v for p in parts for v in (values[p].min(), values[p].max())])


def block_mean(picture: Array, block: int) -> Array:
    """Means over block x block pixels, of those that have a value; NaN where none has."""
    if block == 1:
        return picture
    rows, cols = (-(-side // block) for side in picture.shape)
    padded = np.full((rows * block, cols * block), np.nan)
    padded[: picture.shape[0], : picture.shape[1]] = picture
    blocks = padded.reshape(rows, block, cols, block)
    known = np.isfinite(blocks)
    count = known.sum(axis=(1, 3))
    total = np.where(known, blocks, 0).sum(axis=(1, 3))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def quantized(picture: Array) -> dict[str, Any]:
    """``value = lo + code (hi - lo) / 254``: one byte a pixel, row after row, in base64.

    ``top`` is the 99th percentile: colors end there, so that a few outliers do not dim the rest.
    """
    known = np.isfinite(picture)
    values = picture[known]
    lo, hi = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    codes = np.full(picture.shape, NO_DATA, dtype=np.uint8)
    step = (hi - lo) / (NO_DATA - 1)
    codes[known] = np.rint((values - lo) / step) if step > 0 else 0
    top = float(np.percentile(values, 99)) if values.size else hi
    return {
        "lo": lo,
        "hi": hi,
        "top": top if top > lo else hi,
        "codes": b64encode(codes.tobytes()).decode("ascii"),
    }


def composite(red: Array, green: Array, blue: Array) -> str:
    """Three pictures as one in color: three bytes a pixel, row after row, in base64.

    All three share one scale, which ends at their 99th percentile, and are brightened by a
    square root, as eyes and screens expect.
    """
    picture = np.stack([red, green, blue], axis=-1)
    known = picture[np.isfinite(picture)]
    top = float(np.percentile(known, 99)) if known.size else 0.0
    shares = np.clip(np.nan_to_num(picture) / (top if top > 0 else 1), 0, 1)
    return b64encode(np.rint(255 * np.sqrt(shares)).astype(np.uint8).tobytes()).decode("ascii")
