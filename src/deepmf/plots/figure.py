"""The figure that the pictures are drawn on. The one module that loads Matplotlib at once."""

from __future__ import annotations

import io
import warnings
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

_FILES: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "deepmf",
    "savefig.dpi": 300,
    "image.composite_image": False,
}
"""Text that can be edited, images of 300 dpi that stay apart, ids that repeat."""


class JournalFigure(Figure):
    """A Matplotlib figure whose files are as journals ask for them, whatever the global style."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """See `matplotlib.figure.Figure.savefig`; ``dpi`` is 300 unless given."""
        with mpl.rc_context(_FILES), warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"Glyph \d+ .* missing")  # names of any script
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        """PNG for notebooks, which show only pyplot figures by themselves."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()
