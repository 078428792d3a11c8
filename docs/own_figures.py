"""Image scraper of the gallery: figures made by deepmf.plots are not known to pyplot."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

_shown: list[Figure] = []


def own_figures(block: object, variables: dict, gallery: dict) -> str:
    """Save the figures that an example has assigned to names since the last block."""
    paths = []
    for value in variables["example_globals"].values():
        if isinstance(value, Figure) and not any(value is old for old in _shown):
            _shown.append(value)
            paths.append(next(variables["image_path_iterator"]))
            value.savefig(paths[-1], dpi=110, bbox_inches="tight", facecolor="white")
    plt.close("all")
    return figure_rst(paths, gallery["src_dir"])
