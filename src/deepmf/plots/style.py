"""Style of all figures: sizes, colors and grids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ONE_COLUMN, TWO_COLUMNS, PAGE_HEIGHT = 3.5, 7.2, 8.8
"""Widths and height of a journal page, in inches."""

SMALL, NORMAL, TITLE = 6.0, 7.0, 8.0
"""Sizes of text in points."""

COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
"""Palette of Okabe and Ito for color-blind readers, without yellow, which is pale on paper."""

NO_DATA = "0.85"
"""The gray of pixels without data."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure outside pyplot's global state, in inches; see `deepmf.plots.figure`."""
    try:
        from deepmf.plots.figure import JournalFigure
    except ImportError:
        raise ImportError(
            "Pictures need Matplotlib, which is not installed: pip install 'deepmf[plots]'."
        ) from None
    return JournalFigure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PDF and as PNG; equal figures give equal files."""
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
    figure.savefig(folder / f"{name}.png", dpi=150)


def color(k: int) -> str:
    """The k-th color, going round."""
    return COLORS[k % len(COLORS)]


def plain_axes(ax: Any) -> None:
    """No frame on top and right."""
    ax.spines[["top", "right"]].set_visible(False)


class Grid(NamedTuple):
    """Panels in rows that are as full as can be."""

    panels: int
    rows: int
    columns: int
    panel: float
    """Width of one, in inches."""

    @classmethod
    def of(cls, count: int, width: float, smallest: float, largest: float) -> Grid:
        """As few rows as panels of the smallest width allow, none wider than the largest."""
        rows = -(-count // max(1, int(width / smallest)))
        columns = -(-count // rows)
        return cls(count, rows, columns, min(largest, width / columns))

    def axes(self, fig: Figure, **options: Any) -> Iterator[Axes]:
        """The panels, row by row; places beyond the last stay empty."""
        grid = fig.subplots(self.rows, self.columns, squeeze=False, **options)
        for ax in grid.flat[self.panels :]:
            ax.set_visible(False)
        for k, ax in enumerate(grid.flat[: self.panels]):
            if k + self.columns >= self.panels:  # the last of its column, with or without sharex
                ax.tick_params(labelbottom=True)
            yield ax


def note(fig: Figure, text: str) -> None:
    """A line in small print below the panels."""
    fig.supxlabel(text, fontsize=SMALL, color="0.35")


def write(ax: Axes, x: float, y: float, text: str, points: float, **options: Any) -> None:
    """A name from the data, in which a dollar is a dollar; by default centered above the point."""
    style = {"ha": "center", "va": "bottom", **options}
    ax.text(x, y, text, fontsize=points, parse_math=False, **style)
