"""Section 5.2.1: hyperspectral scenes in two or three layers, minimum volume, all models."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deepmf._utils import messages
from deepmf._utils.processes import Progress, in_parallel
from deepmf.core.quadratic import Array
from deepmf.datasets import (
    Dataset,
    load_jasper,
    load_samson,
    load_scene,
    load_urban,
    simulated_scene,
)
from deepmf.factorization import Factorization
from deepmf.hierarchy.names import component_ids
from deepmf.metrics import match
from deepmf.paper.folder import write_configuration, write_table
from deepmf.paper.models import DEEP, IMPROVED, SINGLE, Setting, fit_deep, fit_single
from deepmf.plots import plot_errors, plot_hierarchy, plot_maps
from deepmf.plots.style import color, new_figure, plain_axes, save_figure
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


class Source(NamedTuple):
    """Source of a scene: a name, or files of the user."""

    name: str
    folder: str | None = None
    cube: str | None = None
    truths: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()


class Scene(NamedTuple):
    """A data set with its ranks, and which layer each known truth belongs to."""

    data: Dataset
    ranks: tuple[int, ...]
    truth: dict[int, int]
    """Index of the truth in ``data.W`` by the fit's layer, counted from 0."""


@lru_cache(maxsize=1)
def open_scene(source: Source) -> Scene:
    """A scene; ``simulated-3`` and the like differ in their map and noise."""
    name, folder = source.name, source.folder
    if source.cube is not None:
        return _own_scene(source)
    if name == "urban":
        return Scene(load_urban(folder), (6, 4, 2), {0: 0, 1: 1})
    if name == "samson":
        return Scene(load_samson(folder), (3, 2), {0: 0})
    if name == "samson-deep":
        return Scene(load_samson(folder), (6, 3), {1: 0})
    if name == "jasper":
        return Scene(load_jasper(folder), (4, 2), {0: 0})
    number = name.removeprefix("simulated").removeprefix("-") or "0"
    if name.startswith("simulated") and number.isdecimal():
        return Scene(simulated_scene(random_state=int(number)), (6, 4, 2), {0: 0, 1: 1, 2: 2})
    raise ValueError(
        f"Unknown scene {name!r}: expected urban, samson, samson-deep, jasper, or simulated "
        f"(simulated-1, simulated-2, ... for other maps)."
    )


def _own_scene(source: Source) -> Scene:
    """The user's cube; a truth belongs to the layer of as many components."""
    data = load_scene(str(source.cube), source.truths)
    counts = [W.shape[1] for W in data.W]
    ranks = source.ranks or tuple(sorted(counts, reverse=True))
    strangers = [k for k in counts if k not in ranks]
    if strangers or not ranks:
        raise messages.SettingError(
            f"The truths have {counts} materials and the ranks are {list(ranks)}; give "
            f"{messages.setting('ranks')} that contain each number of materials, such as 6,4,2."
        )
    return Scene(data, ranks, {ranks.index(k): t for t, k in enumerate(counts)})


def setting(ranks: tuple[int, ...], sweeps: int) -> Setting:
    """Settings of the paper: hierarchical clustering, 50 sweeps per layer, kappa-tilde 1e-2."""
    augment = min(50, sweeps // 2)
    return Setting(ranks, sweeps, "hierarchical", augment, regularizer_W=MinVolume(1e-2, "paper"))


def improved_setting(ranks: tuple[int, ...], sweeps: int) -> Setting:
    """Three starts under the same weights, lowest objective kept; kappa-tilde 10."""
    starts = ["hierarchical", "snpa", "nndsvd"]
    return replace(setting(ranks, sweeps), init=starts, regularizer_W=MinVolume(10.0, "paper"))


class Fits(NamedTuple):
    """Fits of all models to one scene."""

    deep: dict[str, Factorization]
    single: list[Factorization]
    """One per layer, of that layer's rank."""


class Task(NamedTuple):
    """One fit: a deep model, or single-layer NMF of one layer's rank."""

    source: Source
    sweeps: int
    model: str
    layer: int = 0


def tasks_for(source: Source, sweeps: int) -> list[Task]:
    """Every fit a scene needs, the longest first."""
    depth = len(open_scene(source).ranks)
    deep = [Task(source, sweeps, model) for model in (IMPROVED, *DEEP)]
    return deep + [Task(source, sweeps, SINGLE, layer) for layer in range(depth)]


def fit_task(task: Task) -> Factorization:
    """One fit."""
    scene = open_scene(task.source)
    X, s = scene.data.X, setting(scene.ranks, task.sweeps)
    if task.model == SINGLE:
        return fit_single(X, s, task.layer)
    if task.model == IMPROVED:
        return fit_deep(X, "layer-centric", improved_setting(scene.ranks, task.sweeps))
    return fit_deep(X, DEEP[task.model], s)


def run(
    folder: Path,
    sources: list[Source],
    sweeps: int = 500,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> str:
    """All models on some scenes; returns the MRSA tables in Markdown."""
    tasks = [task for source in sources for task in tasks_for(source, sweeps)]
    settings = {"scenes": [source._asdict() for source in sources], "sweeps": sweeps}
    write_configuration(folder, "scenes", settings)
    results = list(zip(tasks, in_parallel(fit_task, tasks, jobs, progress)))
    parts = []
    for source in sources:
        own = [(task, f) for task, f in results if task.source == source]
        by_model = {task.model: f for task, f in own if task.model != SINGLE}
        single = [f for task, f in own if task.model == SINGLE]
        fits = Fits({label: by_model[label] for label in (*DEEP, IMPROVED)}, single)
        parts.append(write_scene(folder, source.name, open_scene(source), fits))
    text = "\n".join(parts)
    (folder / "summary.md").write_text(text, encoding="utf-8")
    return text


def write_scene(folder: Path, name: str, scene: Scene, fits: Fits) -> str:
    """One scene's table and figures; returns the table in Markdown."""
    rows = mrsa_rows(scene, fits)
    columns = ["model", *(f"layer {k + 1} (r={scene.ranks[k]})" for k in scene.truth)]
    if name == "urban":
        columns += ["paper, layer 1", "paper, layer 2"]
        rows = [[*row, *PAPER_URBAN.get(str(row[0]), ("", ""))] for row in rows]
    draw(folder, name, scene, fits)
    return f"### MRSA, {name}\n\n{write_table(folder, f'{name}-mrsa', columns, rows)}"


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


def draw(folder: Path, name: str, scene: Scene, fits: Fits) -> None:
    """Endmembers beside the truth, hierarchies, single-layer maps, error curves."""
    data = scene.data
    for k, t in scene.truth.items():
        shown = {m: W for m, W in bases(fits, k).items() if k > 0 or m != SINGLE}
        figure = draw_endmembers(data, t, shown, f"{data.name}, layer {k + 1}")
        save_figure(figure, folder, f"{name}-endmembers-layer-{k + 1}")
    for label, f in fits.deep.items():
        names = [_component_names(scene, f.W[k], k) for k in range(f.depth)]
        figure = plot_hierarchy(f, data.image, names, f"{label}, {data.name}")
        save_figure(figure, folder, f"{name}-hierarchy-{label}")
    for k, f in enumerate(fits.single[1:], start=1):
        figure = plot_maps(f, 1, data.image, _component_names(scene, f.W[0], k))
        save_figure(figure, folder, f"{name}-single-layer-r{scene.ranks[k]}")
    save_figure(plot_errors(fits.deep), folder, f"{name}-errors")


def _component_names(scene: Scene, W: Array, layer: int) -> list[str] | None:
    """The closest true material of each component, where the layer's truth is known."""
    if layer not in scene.truth:
        return None
    t = scene.truth[layer]
    names = component_ids(layer + 1, W.shape[1])
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
