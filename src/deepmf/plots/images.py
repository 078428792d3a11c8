"""Images of values: the picture's shape, its colors and their range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.factorization import Factorization
from deepmf.plots.style import NO_DATA, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

ToPicture = Callable[[Array], Array]
Picture = ToPicture | tuple[int, int]
"""Turns one value per pixel into a picture: a function, or rows and columns (row by row)."""

Box = tuple[float, float, float, float]
"""Left, right, bottom, top."""

_BRIGHTEST = 99.5
"""Percentile at which colors end: a few outliers would dim the rest."""

_NEARLY = 1.05
"""Ratio of the largest value to that percentile up to which colors end at the largest value."""

_OTHER = {
    "columns": "Here a column of W is a picture, not a row of codes: see plot_pictures.",
    "rows": "Here a row of codes is a picture, not a column of W: see plot_maps.",
}


def to_picture(
    f: Factorization, image: Picture | None, pixels: Literal["columns", "rows"]
) -> ToPicture:
    """The given image, or the layout's; ``pixels`` says which side of X the pixels must be."""
    if image is None:
        if f.layout.image_shape is None:
            raise ValueError(
                "The shape of the pictures is not known: pass image=(rows, cols), or fit data "
                "whose layout has image_shape."
            )
        if f.layout.pixels != pixels:
            raise ValueError(f"{_OTHER[pixels]} Or pass image=(rows, cols).")
        return f.layout.image
    if callable(image):
        return image
    return _reshape(image, f.H[0].shape[1] if pixels == "columns" else len(f.W[0]))


def _reshape(image: tuple[int, int], count: int) -> ToPicture:
    shape = tuple(image)
    if len(shape) != 2 or prod(shape) != count:
        raise ValueError(f"image={shape} does not hold {count} pixels; pass (rows, cols).")
    return lambda values: np.reshape(values, shape)


class Scale(NamedTuple):
    """Colors and the values at both ends of them."""

    cmap: str
    low: float
    high: float
    beyond: Literal["neither", "max", "both"] = "neither"
    """Ends of the scale that values lie beyond."""

    @classmethod
    def of(
        cls,
        values: Array,
        cmap: str = "viridis",
        percentile: float = _BRIGHTEST,
        signed: bool = False,
    ) -> Scale:
        """Colors from 0 up; with negative values, blue over white to red, symmetric around 0."""
        known = values[np.isfinite(values)]
        sizes = np.abs(known) if known.size else np.zeros(1)
        largest = float(sizes.max())
        high = float(np.percentile(sizes, percentile)) or largest or 1.0
        high = largest if high < largest <= _NEARLY * high else high
        if signed or np.any(known < 0):
            return cls("RdBu_r", -high, high, "both" if largest > high else "neither")
        return cls(cmap, 0.0, high, "max" if largest > high else "neither")


def draw_image(ax: Axes, picture: Array, scale: Scale, **options: Any) -> AxesImage:
    """The picture, pixel by pixel, gray where it is NaN."""
    import matplotlib as mpl

    cmap = mpl.colormaps[scale.cmap].with_extremes(bad=NO_DATA)
    return ax.imshow(
        picture,
        cmap=cmap,
        vmin=scale.low,
        vmax=scale.high,
        interpolation="nearest",
        interpolation_stage="data",
        **options,
    )


def draw_frame(ax: Axes, box: Box, fill: str = "none") -> None:
    """A thin line around a box."""
    from matplotlib.patches import Rectangle

    left, right, bottom, top = box
    ax.add_patch(Rectangle((left, bottom), right - left, top - bottom, fc=fill, ec="0.6", lw=0.4))


def is_flat(picture: Array) -> bool:
    """Whether it is so wide that a color bar fits better below it."""
    return picture.shape[0] < 0.6 * picture.shape[1]


def draw_bar(fig: Figure, shown: AxesImage, scale: Scale, axes: Sequence[Axes]) -> Colorbar:
    """A color bar for these panels, as long as one of them, with few ticks in small print."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    flat = is_flat(shown.get_array())  # type: ignore[arg-type]
    where: Any = {"location": "bottom" if flat else "right", "extend": scale.beyond}
    if len(axes) == 1:
        place = (0, -0.13, 1, 0.06) if flat else (1.04, 0, 0.05, 1)
        bar = fig.colorbar(shown, cax=axes[0].inset_axes(place), **where)
    else:
        bar = fig.colorbar(shown, ax=list(axes), shrink=0.6, pad=0.03, **where)
    bar.ax.tick_params(labelsize=SMALL)
    bar.locator = MaxNLocator(4)
    bar.formatter = FuncFormatter(lambda value, _: f"{value:.3g}")
    bar.update_ticks()
    return bar


def whole_figure(fig: Figure, bottom: float = 0.0) -> Axes:
    """Invisible axes over the whole figure that count in inches, upwards from ``bottom``."""
    width, height = fig.get_size_inches()
    fig.set_layout_engine("none")
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set(xlim=(0, width), ylim=(bottom, bottom + height), autoscale_on=False)
    return ax
