"""All figures of a run, for papers and slides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.plots import (
    plot_errors,
    plot_hierarchy,
    plot_maps,
    plot_pictures,
    plot_residual,
    plot_spectra,
    plot_words,
)
from deepmf.plots.style import save_figure
from deepmf.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_figures(folder: Path, run: Run, prefix: str = "") -> int:
    """Save each figure as PDF and PNG; how many there are."""
    count = 0
    for name, figure in figures(run):
        save_figure(figure, folder, f"{prefix}{name}")
        count += 1
    return count


def figures(run: Run) -> Iterator[tuple[str, Figure]]:
    """Name and figure: the layer graph, each layer in its own way, errors, residuals."""
    f, kind = run.f, run.f.layout.kind
    layers = range(1, f.depth + 1)
    yield "hierarchy", plot_hierarchy(f, names=run.names)
    for layer in layers:
        own = run.titles(layer)
        if kind == "scene":
            yield f"maps-layer-{layer}", plot_maps(f, layer, names=own)
            yield f"spectra-layer-{layer}", plot_spectra(f, layer, None, _truth(run, layer), own)
        elif kind == "pictures":
            yield f"pictures-layer-{layer}", plot_pictures(f, layer)
        else:
            yield f"words-layer-{layer}", plot_words(f, layer, names=own)
    yield "errors", plot_errors(f)
    if run.residual is not None:
        yield "residual", plot_residual(f, residual=run.residual)


def _truth(run: Run, layer: int) -> Array | None:
    """True spectra in the order of the components, where there is one for each."""
    score = run.scores.get(layer)
    if score is None or len(score.order) < run.f.ranks[layer - 1]:
        return None
    return run.truth[layer].W[:, np.argsort(score.order)]
