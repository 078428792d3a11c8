"""What all pictures share: the library, colours and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deepmf.quadratic import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#F0E442",
)
"""Okabe and Ito's palette, told apart by colour-blind readers."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure outside pyplot's global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "Pictures need Matplotlib, which is not installed: pip install 'deepmf[plots]'."
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


Picture = Callable[[Array], Array] | tuple[int, int]
"""From one value per pixel to a picture: a function, or rows and columns (row after row)."""


def as_picture(image: Picture, values: Array) -> Array:
    """Values as a picture."""
    return image(values) if callable(image) else np.reshape(values, image)


def component_names(names: Sequence[str] | None, rank: int) -> list[str]:
    """The given names, or 1, 2, ..."""
    if names is None:
        return [str(k) for k in range(1, rank + 1)]
    if len(names) != rank:
        raise ValueError(f"{len(names)} names were given for {rank} components.")
    return list(names)


def color(k: int) -> str:
    """The k-th colour, going round."""
    return COLORS[k % len(COLORS)]


def plain_axes(ax: Any) -> None:
    """No frame on top and right."""
    ax.spines[["top", "right"]].set_visible(False)
