"""Section 5.2.1: hyperspectral scenes in two or three layers, minimum volume, all models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deepmf.datasets import Dataset, load_jasper, load_samson, load_urban, simulated_scene
from deepmf.factorization import Factorization
from deepmf.metrics import match
from deepmf.paper.folder import Folder
from deepmf.paper.models import DEEP, IMPROVED, SINGLE, Setting, fit_deep, fit_single
from deepmf.paper.parallel import in_parallel
from deepmf.plots import plot_errors, plot_hierarchy, plot_maps
from deepmf.plots.style import color, new_figure, plain_axes
from deepmf.quadratic import Array
from deepmf.regularizers import MinVolume

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_URBAN = {
    "MMF": (16.98, 12.35),
    "LC-DMF": (9.48, 8.42),
    "DC-DMF": (22.95, 14.15),
    "Tri-DMF": (26.07, 20.07),
    SINGLE: (16.98, 7.74),
}
"""The paper's table of MRSA on the full Urban scene, layers 1 and 2."""

MODELS = (*DEEP, SINGLE, IMPROVED)


class Scene(NamedTuple):
    """A data set with its ranks, and which layer each known truth belongs to."""

    data: Dataset
    ranks: tuple[int, ...]
    truth: dict[int, int]
    """From the fit's layer (from 0) to the truth's index in ``data.W``."""


def open_scene(name: str, folder: str | None = None, seed: int = 0) -> Scene:
    """A scene by name; ``simulated-3`` and the like differ in their map and noise."""
    if name == "urban":
        return Scene(load_urban(folder), (6, 4, 2), {0: 0, 1: 1})
    if name == "samson":
        return Scene(load_samson(folder), (3, 2), {0: 0})
    if name == "samson-deep":
        return Scene(load_samson(folder), (6, 3), {1: 0})
    if name == "jasper":
        return Scene(load_jasper(folder), (4, 2), {0: 0})
    if name == "simulated" or name.startswith("simulated-"):
        number = int(name.removeprefix("simulated").removeprefix("-") or seed)
        return Scene(simulated_scene(random_state=number), (6, 4, 2), {0: 0, 1: 1, 2: 2})
    raise ValueError(
        f"Unknown scene {name!r}: expected urban, samson, samson-deep, jasper, or simulated "
        f"(simulated-1, simulated-2, ... for other maps)."
    )


def setting(ranks: tuple[int, ...], sweeps: int) -> Setting:
    """The paper's: hierarchical clustering, 50 of the sweeps to augment it, kappa-tilde 1e-2."""
    augment = min(50, sweeps // 2)
    return Setting(ranks, sweeps, "hierarchical", augment, regularizer_W=MinVolume(1e-2))


def improved_setting(ranks: tuple[int, ...], sweeps: int) -> Setting:
    """Three starts under the same weights, lowest objective kept; kappa-tilde 10."""
    starts = ["hierarchical", "snpa", "nndsvd"]
    return replace(setting(ranks, sweeps), init=starts, regularizer_W=MinVolume(10.0))


class Fits(NamedTuple):
    """What all models made of one scene."""

    name: str
    deep: dict[str, Factorization]
    single: list[Factorization]
    """One per layer, of that layer's rank."""


def fit_scene(task: tuple[str, str | None, int]) -> Fits:
    """All models on one scene."""
    name, folder, sweeps = task
    scene = open_scene(name, folder)
    X, s = scene.data.X, setting(scene.ranks, sweeps)
    deep = {label: fit_deep(X, model, s) for label, model in DEEP.items()}
    deep[IMPROVED] = fit_deep(X, "layer-centric", improved_setting(scene.ranks, sweeps))
    single = [fit_single(X, s, layer) for layer in range(len(scene.ranks))]
    return Fits(name, deep, single)


def run(
    folder: Folder,
    names: list[str],
    data_folder: str | None = None,
    sweeps: int = 500,
    jobs: int | None = None,
    progress: Callable[[Iterable[object], int], Iterable[object]] | None = None,
) -> str:
    """All models on some scenes; returns the MRSA tables in Markdown."""
    scenes = {name: open_scene(name, data_folder) for name in names}  # mistakes show up here
    folder.configuration("scenes", {"scenes": names, "sweeps": sweeps})
    results = in_parallel(fit_scene, [(n, data_folder, sweeps) for n in names], jobs, progress)
    parts = []
    for fits in results:
        scene = scenes[fits.name]
        rows = mrsa_rows(scene, fits)
        columns = ["model", *(f"layer {k + 1} (r={scene.ranks[k]})" for k in scene.truth)]
        if fits.name == "urban":
            columns += ["paper, layer 1", "paper, layer 2"]
            rows = [[*row, *PAPER_URBAN.get(str(row[0]), ("", ""))] for row in rows]
        table = folder.table(f"{fits.name}-mrsa", columns, rows)
        parts.append(f"### MRSA, {fits.name}\n\n{table}")
        draw(folder, scene, fits)
    text = "\n".join(parts)
    folder.text("summary.md", text)
    return text


def bases(fits: Fits, layer: int) -> dict[str, Array]:
    """Each model's basis at a layer; at the first, single-layer NMF is what MMF begins with."""
    deep = {label: f.W[layer] for label, f in fits.deep.items()}
    return {label: fits.single[layer].W[0] if label == SINGLE else deep[label] for label in MODELS}


def mrsa_rows(scene: Scene, fits: Fits) -> list[list[object]]:
    """Per model, the mean MRSA at each layer with truth."""
    return [
        [label]
        + [
            round(match(scene.data.W[t], bases(fits, k)[label]).mean, 2)
            for k, t in scene.truth.items()
        ]
        for label in MODELS
    ]


def draw(folder: Folder, scene: Scene, fits: Fits) -> None:
    """Endmembers beside the truth, hierarchies, single-layer maps, error curves."""
    name, data = fits.name, scene.data
    for k, t in scene.truth.items():
        shown = {m: W for m, W in bases(fits, k).items() if k > 0 or m != SINGLE}
        figure = draw_endmembers(data, t, shown, f"{data.name}, layer {k + 1}")
        folder.figure(f"{name}-endmembers-layer-{k + 1}", figure)
    for label, f in fits.deep.items():
        names = [_component_names(scene, f.W[k], k) for k in range(f.depth)]
        figure = plot_hierarchy(f, data.image, names, f"{label}, {data.name}")
        folder.figure(f"{name}-hierarchy-{label}", figure)
    for k, f in enumerate(fits.single[1:], start=1):
        figure = plot_maps(f, 1, data.image, _component_names(scene, f.W[0], k))
        folder.figure(f"{name}-single-layer-r{scene.ranks[k]}", figure)
    folder.figure(f"{name}-errors", plot_errors(fits.deep))


def _component_names(scene: Scene, W: Array, layer: int) -> list[str] | None:
    """The closest true material of each component, where the layer's truth is known."""
    if layer not in scene.truth:
        return None
    t = scene.truth[layer]
    names = [str(k + 1) for k in range(W.shape[1])]
    for material, k in zip(scene.data.names[t], match(scene.data.W[t], W).order):
        names[k] = material
    return names


def draw_endmembers(data: Dataset, truth: int, W: dict[str, Array], title: str) -> Figure:
    """One panel per material: the truth and every model's closest spectrum, at unit norm."""
    T = data.W[truth]
    columns = 2 if T.shape[1] in (2, 4) else min(3, T.shape[1])
    rows = -(-T.shape[1] // columns)
    fig = new_figure(3.0 * columns + 1.2, 2.1 * rows + 0.4)
    axes = fig.subplots(rows, columns, squeeze=False, sharex=True)
    x = np.arange(1, len(T) + 1) if data.wavelengths is None else data.wavelengths
    for ax in axes.flat[T.shape[1] :]:
        ax.set_visible(False)
    for j, ax in enumerate(axes.flat[: T.shape[1]]):
        for k, (label, B) in enumerate(W.items()):
            estimate = B[:, match(T, B).order[j]]
            ax.plot(x, estimate / np.linalg.norm(estimate), lw=1, color=color(k), label=label)
        ax.plot(x, T[:, j] / np.linalg.norm(T[:, j]), "k--", lw=1.4, label="ground truth")
        ax.set_title(data.names[truth][j], fontsize=9)
        ax.set_ylim(bottom=0)
        plain_axes(ax)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside right center", fontsize=7, frameon=False)
    fig.supxlabel("band" if data.wavelengths is None else "wavelength (nm)", fontsize=8)
    fig.supylabel("reflectance, unit norm", fontsize=8)
    fig.suptitle(title, fontsize=10)
    return fig
