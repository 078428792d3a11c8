"""Several runs on the same data: their table, and their components side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.hierarchy.names import component_ids
from deepmf.metrics import match
from deepmf.report.numbers import root
from deepmf.report.texts import explained, short
from deepmf.runs.compare import readable
from deepmf.runs.run import Run


class Ranking(NamedTuple):
    """A table of runs, best first: one row per run, whose first entry is the run's label."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | float]]


def table(ranking: Ranking) -> dict[str, Any]:
    """The table as plain data; None where a number is missing."""
    known = [explained(str(c)) for c in ranking.columns]
    return {
        "columns": [short(c) for c in ranking.columns],
        "rows": [[_cell(c) for c in row] for row in ranking.rows],
        "about": [None if pair is None else list(pair) for pair in known],
    }


def _cell(value: str | float) -> str | float | None:
    if isinstance(value, str):
        return short(value) if value else None
    return float(value) if np.isfinite(value) else None


def default_ranking(runs: Sequence[Run], labels: Sequence[str]) -> Ranking:
    """Errors, scores and durations in the order of the runs."""
    depth = max(run.f.depth for run in runs)
    found = [(name, k) for run in runs for k, own in enumerate(run.measures) for name in own]
    names = list(dict.fromkeys(name for name, _ in found))
    known = sorted(set(found), key=lambda pair: (names.index(pair[0]), pair[1]))
    deviance = any(run.f.problem.fits for run in runs)
    columns = [
        "run",
        *(f"layer {k + 1}: {'explained' if deviance else 'error'} (%)" for k in range(depth)),
        *(f"layer {k + 1}: {name}" for name, k in known),
        "sweeps",
        "seconds",
    ]
    rows = []
    for run, label in zip(runs, labels):
        left = run.f.history.data_errors[-1]
        errors = (100 * (1 - left if deviance else root(left))).tolist()
        errors += [""] * (depth - len(errors))
        own = [run.measures[k].get(name, "") if k < run.f.depth else "" for name, k in known]
        time = float(run.f.history.time[-1])
        rows.append([label, *errors, *own, float(run.f.n_iter), time])
    return Ranking(columns, readable(columns, rows))


def measures_table(run: Run) -> dict[str, Any]:
    """Measures of a run with a row for each layer; no rows where there are none."""
    names = list(dict.fromkeys(name for own in run.measures for name in own))
    rows: list[list[str | float]] = [
        [f"layer {k}", *(own.get(name, "") for name in names)]
        for k, own in enumerate(run.measures, start=1)
    ]
    return table(Ranking(["", *names], rows if names else []))


def side_by_side(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Per layer that all runs have: the component of each run in each column."""
    depth = min(run.f.depth for run in runs)
    return [
        {"names": names, "rows": [_columns(reference, run.f.basis(layer)) for run in runs]}
        for layer, (names, reference) in enumerate(_references(runs, depth), start=1)
    ]


def _references(runs: Sequence[Run], depth: int) -> Iterator[tuple[list[str], Array]]:
    """Names and curves of the columns: of the truth where known, else of the first run."""
    for layer in range(1, depth + 1):
        known = runs[0].truth.get(layer)
        if known is not None:
            yield [short(name) for name in known.names], known.W
        else:
            W = runs[0].f.basis(layer)
            yield component_ids(layer, W.shape[1]), W


def _columns(reference: Array, W: Array) -> list[int | None]:
    """Components paired with the reference's, then those left over."""
    if not np.isfinite(W).all() or not np.isfinite(reference).all():
        return list(range(W.shape[1]))
    columns: list[int | None] = [None] * reference.shape[1]
    if reference.shape[1] <= W.shape[1]:
        columns = match(reference, W).order.tolist()
    else:
        for k, column in enumerate(match(W, reference).order.tolist()):
            columns[column] = k
    return columns + [k for k in range(W.shape[1]) if k not in columns]
