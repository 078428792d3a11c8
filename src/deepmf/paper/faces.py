"""Section 5.2.2: parts of faces in three layers, grouped sparsity, all models."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from deepmf._utils.processes import Progress, in_parallel
from deepmf.constraints import GroupedSparse
from deepmf.datasets import Dataset, load_cbcl
from deepmf.factorization import Factorization
from deepmf.metrics import hoyer
from deepmf.paper.folder import write_configuration, write_table
from deepmf.paper.models import DEEP, SINGLE, Setting, fit_deep, fit_single
from deepmf.plots import plot_errors, plot_pictures
from deepmf.plots.style import save_figure

RANKS = (100, 49, 25)
SPARSITY = (0.70, 0.80, 0.85)
PAPER_FREE_SPARSITY = (0.7197, 0.7946, 0.7664)
"""Average Hoyer sparsities of the paper's MMF without the constraint."""


class Task(NamedTuple):
    """One model, with or without the sparsity constraint; layer -1 for all layers together."""

    model: str
    sparse: bool
    layer: int
    folder: str | None
    sweeps: int


def setting(sparse: bool, sweeps: int) -> Setting:
    """The paper's: SNPA start, average sparsity 70, 80, 85 % on W_1, W_2, W_3."""
    sets = [GroupedSparse(s) for s in SPARSITY] if sparse else None
    return Setting(RANKS, sweeps, "snpa", constraint_W=sets)


def fit_task(task: Task) -> Factorization:
    """One fit."""
    X, s = load_cbcl(task.folder).X, setting(task.sparse, task.sweeps)
    if task.layer >= 0:
        return fit_single(X, s, task.layer)
    return fit_deep(X, DEEP[task.model], s)


def run(
    folder: Path,
    data_folder: str | None = None,
    sweeps: int = 500,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> str:
    """The whole experiment; returns its tables in Markdown."""
    faces = load_cbcl(data_folder)
    write_configuration(folder, "faces", {"sweeps": sweeps})
    tasks = [Task(m, True, -1, data_folder, sweeps) for m in DEEP]
    tasks += [Task(SINGLE, True, k, data_folder, sweeps) for k in range(3)]
    tasks += [Task("MMF", False, -1, data_folder, sweeps)]
    fits = dict(zip(tasks, in_parallel(fit_task, tasks, jobs, progress)))
    deep = {t.model: f for t, f in fits.items() if t.layer < 0 and t.sparse}
    single = [f for t, f in fits.items() if t.layer >= 0]
    free = next(f for t, f in fits.items() if not t.sparse)

    text = "\n".join(
        [
            "### Relative errors after the last sweep\n\n" + _errors(folder, deep, single),
            "### Average Hoyer sparsity of W_1, W_2, W_3\n\n" + _sparsity(folder, deep, free),
        ]
    )
    (folder / "summary.md").write_text(text, encoding="utf-8")
    save_figure(plot_errors(deep), folder, "errors")
    _draw_features(folder, faces, deep, single)
    return text


def _errors(folder: Path, deep: dict[str, Factorization], single: list[Factorization]) -> str:
    columns = [
        "model",
        *(f"{kind} {k}" for kind in ("layer-centric", "data-centric") for k in (1, 2, 3)),
    ]
    rows: list[list[object]] = [
        [label, *(f"{e:.2e}" for e in (*f.history.layer_errors[-1], *f.history.data_errors[-1]))]
        for label, f in deep.items()
    ]
    alone = [f"{f.history.data_errors[-1, 0]:.2e}" for f in single]
    rows.append([SINGLE, alone[0], "", "", *alone])
    return write_table(folder, "errors", columns, rows)


def _sparsity(folder: Path, deep: dict[str, Factorization], free: Factorization) -> str:
    fits = {**deep, "MMF without the constraint": free}
    rows: list[list[object]] = [
        [label, *(round(float(np.mean(hoyer(W))), 4) for W in f.W)] for label, f in fits.items()
    ]
    rows.append(["MMF without the constraint, paper", *PAPER_FREE_SPARSITY])
    return write_table(folder, "sparsity", ["model", "W_1", "W_2", "W_3"], rows)


def _draw_features(
    folder: Path, faces: Dataset, deep: dict[str, Factorization], single: list[Factorization]
) -> None:
    for label, f in deep.items():
        for k in range(1, f.depth + 1):
            figure = plot_pictures(f, k, faces.image, title=f"{label}, $W_{k}$")
            save_figure(figure, folder, f"features-{label}-layer-{k}")
    for f in single:
        rank = f.ranks[0]
        figure = plot_pictures(f, 1, faces.image, title=f"{SINGLE}, r = {rank}")
        save_figure(figure, folder, f"features-{SINGLE}-r{rank}")
