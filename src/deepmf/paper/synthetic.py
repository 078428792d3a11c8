"""Section 5.1: two layers in three dimensions, ten noise levels, five models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deepmf._utils.processes import Progress, in_parallel
from deepmf.constraints import GroupedSparse, Nonnegative
from deepmf.datasets import synthetic
from deepmf.metrics import match
from deepmf.paper.folder import write_configuration, write_table
from deepmf.paper.models import DEEP, IMPROVED, SINGLE, Setting, fit_deep, fit_single
from deepmf.plots.style import color, new_figure, plain_axes, save_figure
from deepmf.regularizers import MinVolume

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOISE = (1e-2, 2.51e-2, 6.31e-2, 9.49e-2, 0.1267, 0.1585, 0.2384, 0.3182, 0.3981, 1.0)
VARIANTS = ("min-volume", "grouped-sparse")
MODELS = (*DEEP, SINGLE, IMPROVED)


class Task(NamedTuple):
    """One data set, fitted by all models."""

    variant: str
    noise: float
    run: int
    sweeps: int
    seed: int


class Score(NamedTuple):
    """MRSA of one model at one layer."""

    variant: str
    noise: float
    run: int
    model: str
    layer: int
    mrsa: float


def setting(variant: str, noise: float, sweeps: int) -> Setting:
    """The paper's: SNPA starts; kappa-tilde by noise level, or sparsity 1/3 on W_2 and H_2."""
    common = {"ranks": (6, 3), "sweeps": sweeps, "init": "snpa", "allow_negative": True}
    if variant == "min-volume":
        kappa = (1e-3, 1e-2) if noise < 0.1 else (1e-2, 1e-1)
        return Setting(**common, regularizer_W=[MinVolume(k, "paper") for k in kappa])  # type: ignore[arg-type]
    sparse = [Nonnegative(), GroupedSparse(1 / 3)]
    return Setting(**common, constraint_W=sparse, constraint_H=sparse)  # type: ignore[arg-type]


def improved_setting(noise: float, sweeps: int) -> Setting:
    """Four starts under the same weights, lowest objective kept; a hundred times the kappa-tilde.

    The volume must be strong enough to tell a good optimum from one that merely fits.
    """
    s = setting("min-volume", noise, sweeps)
    stronger = [MinVolume(100 * r.weight, "paper") for r in s.regularizer_W]  # type: ignore[attr-defined]
    return replace(s, init=["snpa", "hierarchical", "random", "random"], regularizer_W=stronger)


def score(task: Task) -> list[Score]:
    """Fits of all models to one data set; LC-DMF+ only where a minimum volume applies."""
    data = synthetic(noise=task.noise, random_state=task.seed + task.run)
    s = setting(task.variant, task.noise, task.sweeps)
    bases = {label: fit_deep(data.X, model, s).W for label, model in DEEP.items()}
    if task.variant == "min-volume":
        better = improved_setting(task.noise, task.sweeps)
        bases[IMPROVED] = fit_deep(data.X, "layer-centric", better).W
    scores = [
        Score(task.variant, task.noise, task.run, label, k + 1, match(data.W[k], W[k]).mean)
        for label, W in bases.items()
        for k in range(2)
    ]
    alone = fit_single(data.X, s, layer=1).W[0]
    scores.append(Score(*task[:3], SINGLE, 2, match(data.W[1], alone).mean))
    return scores


def run(
    folder: Path,
    runs: int = 25,
    sweeps: int = 500,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> str:
    """The whole experiment; returns its summary in Markdown."""
    write_configuration(folder, "synthetic", {"runs": runs, "sweeps": sweeps, "seed": seed})
    tasks = [Task(v, e, k, sweeps, seed) for v in VARIANTS for e in NOISE for k in range(runs)]
    scores = [s for batch in in_parallel(score, tasks, jobs, progress) for s in batch]
    write_table(folder, "scores", Score._fields, scores)
    save_figure(draw_setting(), folder, "setting")
    parts = []
    for variant in VARIANTS:
        for layer in (1, 2):
            chosen = [s for s in scores if s.variant == variant and s.layer == layer]
            rows = list(summary(chosen))
            name = f"{variant}-layer-{layer}"
            labels = [label for label in MODELS if any(s.model == label for s in chosen)]
            table = write_table(folder, name, ["noise", *labels], rows)
            save_figure(draw_scores(chosen, labels, f"{variant}, layer {layer}"), folder, name)
            parts.append(
                f"### MRSA, {variant}, layer {layer} (mean ± std over {runs} runs)\n\n{table}"
            )
    text = "\n".join(parts)
    (folder / "summary.md").write_text(text, encoding="utf-8")
    return text


def summary(scores: list[Score]) -> Iterator[list[object]]:
    """One row per noise level: mean and standard deviation for each model."""
    for noise in NOISE:
        row: list[object] = [f"{noise:g}"]
        for label in MODELS:
            values = [s.mrsa for s in scores if s.model == label and s.noise == noise]
            if values:
                row.append(f"{np.mean(values):.2f} ± {np.std(values):.2f}")
        yield row


def draw_scores(scores: list[Score], labels: list[str], title: str) -> Figure:
    """MRSA against the noise level: mean, and a band of one standard deviation."""
    fig = new_figure(5.2, 3.6)
    ax = fig.subplots()
    for k, label in enumerate(labels):
        values = np.array(
            [[s.mrsa for s in scores if s.model == label and s.noise == e] for e in NOISE]
        )
        mean, std = values.mean(axis=1), values.std(axis=1)
        ax.plot(NOISE, mean, "o-", ms=3, lw=1.3, color=color(k), label=label)
        ax.fill_between(
            NOISE, np.maximum(mean - std, 0), mean + std, color=color(k), alpha=0.12, lw=0
        )
    ax.set_xscale("log")
    ax.set(xlabel="noise level ε", ylabel="MRSA", title=title, ylim=(0, None))
    ax.legend(fontsize=7, frameon=False)
    plain_axes(ax)
    return fig


def draw_setting() -> Figure:
    """The noiseless points and both layers' basis vectors in the triangle of mixtures."""
    data = synthetic(noise=0.0, random_state=0)
    fig = new_figure(4.2, 3.9)
    ax = fig.subplots()
    corners = _in_triangle(np.eye(3))
    ax.fill(*corners, fill=False, ec="0.6", lw=0.8)
    ax.plot(*_in_triangle(data.X), ".", ms=2, color="0.55", label="data points")
    ax.plot(
        *_in_triangle(data.W[0]),
        "o",
        ms=7,
        mfc="none",
        mec=color(0),
        mew=1.5,
        label="layer 1: $W_1^*$",
    )
    ax.plot(
        *_in_triangle(data.W[1]),
        "s",
        ms=8,
        mfc="none",
        mec=color(1),
        mew=1.5,
        label="layer 2: $W_2^*$",
    )
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.legend(fontsize=7, frameon=False, loc="upper right")
    return fig


def _in_triangle(M: np.ndarray) -> np.ndarray:
    """Columns, scaled to sum 1, as points of the plane."""
    M = M / M.sum(axis=0)
    return np.array([[0.0, 1.0, 0.5], [0.0, 0.0, np.sqrt(3) / 2]]) @ M
