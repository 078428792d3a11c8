"""Several settings on the same data, ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from deepmf._utils.messages import setting
from deepmf._utils.processes import Progress, in_parallel
from deepmf.core.divergence import beta_of
from deepmf.factorization import Factorization
from deepmf.fitting.history import DIVERGED
from deepmf.metrics import hoyer, match
from deepmf.runs.config import Config, ConfigError
from deepmf.runs.execute import execute, open_data
from deepmf.runs.run import Run


@dataclass(frozen=True, eq=False)
class Entry:
    """One setting: its best run over the seeds, and what all of them say together."""

    label: str
    run: Run
    seconds: float
    """Median over the seeds."""
    instability: float | None
    """Mean MRSA between matched components of layer 1, over all pairs of seeds."""

    def measures(self) -> dict[str, float]:
        """Measures of the best run by name and layer, and seconds."""
        f = self.run.f
        layers = range(1, f.depth + 1)
        own = self.run.measures
        named = dict.fromkeys(name for measures in own for name in measures)
        found = {
            f"{name} {k}": own[k - 1][name] for name in named for k in layers if name in own[k - 1]
        }
        last = f.history.data_errors[-1], f.history.layer_errors[-1]
        if f.problem.fits:
            data, layer, what = (*(100 * (1 - left) for left in last), "explained")
        else:
            data, layer, what = (*(100 * np.sqrt(left) for left in last), "error")
        found |= {f"{what} {k} %": float(data[k - 1]) for k in layers}
        found |= {f"layer {what} {k} %": float(layer[k - 1]) for k in layers}
        found |= {f"sparsity {k}": float(np.mean(hoyer(f.basis(k)))) for k in layers}
        if self.instability is not None:
            found["instability"] = self.instability
        return {**found, "seconds": self.seconds}


def compare(
    configs: Mapping[str, Config],
    seeds: int = 1,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Entry]:
    """Fit every setting with every seed, in parallel; the best setting first.

    They are ranked by the mean MRSA to the truth where there is one, else by the data error of the
    last layer; errors by different ``beta_loss`` do not compare, and leave the order as given. Of
    several seeds the run with the lowest objective stands for the setting.
    """
    _check(configs)  # mistakes show before the work begins
    tasks = [
        config.updated(random_state=seed) for config in configs.values() for seed in range(seeds)
    ]
    runs = in_parallel(execute, tasks, jobs, progress)
    entries = [_entry(label, runs[k * seeds : (k + 1) * seeds]) for k, label in enumerate(configs)]
    return _ranked(entries)


def ranking_table(
    entries: Sequence[Entry], first: str
) -> tuple[list[str], list[list[str | float]]]:
    """Columns and rows of all measures, best entry first; ``first`` heads the labels."""
    measured = [entry.measures() for entry in entries]
    named = dict.fromkeys(name for measures in measured for name in measures)
    columns = [*(name for name in named if name != "seconds"), "seconds"]
    rows: list[list[str | float]] = [
        [entry.label, *(measures.get(name, "") for name in columns)]
        for entry, measures in zip(entries, measured)
    ]
    return [first, *columns], rows


def readable(columns: Sequence[str], rows: Sequence[Sequence[str | float]]) -> list[list[Any]]:
    """The rows of a ranking for people: of errors above 1000 %, that they diverged."""
    return [
        [
            "diverged" if "error" in name and _diverged(value) else value
            for name, value in zip(columns, row)
        ]
        for row in rows
    ]


def _diverged(percent: str | float) -> bool:
    return not isinstance(percent, str) and not percent < 100 * DIVERGED


def _check(configs: Mapping[str, Config]) -> None:
    """Refuse settings that lack something, or that read different data."""
    (first, one), *others = configs.items()
    for config in configs.values():
        config.arguments()
    shape = open_data(one).X.shape
    for label, config in others:
        if _of_data(config) == _of_data(one):
            continue
        own = open_data(config).X.shape
        way = ""
        if (config.path, config.reading) == (one.path, one.reading):
            way = f"; give all of them the same {setting('max_features')}"
        if own != shape:
            raise ConfigError(
                f"Only fits to the same data can be compared: {first!r} reads {shape[0]} features "
                f"x {shape[1]} samples, {label!r} {own[0]} x {own[1]}{way}."
            )


def _of_data(config: Config) -> tuple[Any, ...]:
    """The settings that X depends on."""
    prepared = (config.scale, config.max_features)
    by_recipe = (config.fit.get("recipe"), config.fit.get("beta_loss"))
    return (config.path, config.reading, *prepared, *by_recipe)


def _entry(label: str, runs: Sequence[Run]) -> Entry:
    best = min(runs, key=lambda run: _or_last(run.f.history.objective[-1]))
    seconds = float(np.median([float(run.facts["seconds"]) for run in runs]))
    return Entry(label, best, seconds, instability([run.f for run in runs]))


def instability(fits: Sequence[Factorization]) -> float | None:
    """Mean MRSA between matched components of layer 1 of two fits, over all pairs; 0 is stable.

    Fits that diverged are left out.
    """
    bases = [f.W[0] for f in fits if np.isfinite(f.W[0]).all()]
    pairs = [match(a, b).mean for a, b in combinations(bases, 2)]
    return float(np.mean(pairs)) if pairs else None


def _ranked(entries: list[Entry]) -> list[Entry]:
    """Entries in the order of the mean MRSA, where all fits that did not diverge have one.

    Else in that of their errors; in that given, where these are of different distances.
    """
    angles, errors = {}, {}
    for entry in entries:
        measures = entry.measures()
        found = [v for name, v in measures.items() if name.startswith("MRSA")]
        errors[entry.label] = _or_last(entry.run.f.history.data_errors[-1, -1])
        angles[entry.label] = float(np.mean(found)) if found else np.inf
    sound = [label for label, error in errors.items() if error < np.inf]
    if all(angles[label] < np.inf for label in sound):
        return sorted(entries, key=lambda entry: angles[entry.label])
    if not comparable([entry.run.f for entry in entries]):
        return entries
    return sorted(entries, key=lambda entry: errors[entry.label])


def comparable(fits: Sequence[Factorization]) -> bool:
    """Whether the last layers of fits measure their errors by one distance."""
    return len({beta_of(f.problem.fit(f.depth - 1)) for f in fits}) == 1


def _or_last(value: float) -> float:
    """Sort key that puts NaN, from a fit that diverged, last."""
    return float(value) if np.isfinite(value) else np.inf
