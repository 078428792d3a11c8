"""Several settings on the same data, ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from deepmf.factorization import Factorization
from deepmf.metrics import hoyer, match
from deepmf.parallel import Progress, in_parallel
from deepmf.runs.config import Config
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
        """Numbers to rank by, lower is better, sparsity apart."""
        f = self.run.f
        layers = range(1, f.depth + 1)
        scores = {k: self.run.score(k) for k in layers}
        found = {f"MRSA {k}": s.mean for k, s in scores.items() if s is not None}
        found |= {f"data error {k}": float(f.history.data_errors[-1, k - 1]) for k in layers}
        found |= {f"layer error {k}": float(f.history.layer_errors[-1, k - 1]) for k in layers}
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
    last layer. Of several seeds the run with the lowest objective stands for the setting.
    """
    for config in configs.values():
        config.arguments()  # mistakes show before the work begins
    open_data(next(iter(configs.values())))
    tasks = [
        config.updated(random_state=seed) for config in configs.values() for seed in range(seeds)
    ]
    runs = in_parallel(execute, tasks, jobs, progress)
    entries = [_entry(label, runs[k * seeds : (k + 1) * seeds]) for k, label in enumerate(configs)]
    return sorted(entries, key=_rank)


def _entry(label: str, runs: Sequence[Run]) -> Entry:
    best = min(runs, key=lambda run: run.f.history.objective[-1])
    seconds = float(np.median([float(run.facts["seconds"]) for run in runs]))
    return Entry(label, best, seconds, instability([run.f for run in runs]))


def instability(fits: Sequence[Factorization]) -> float | None:
    """Mean MRSA between matched components of layer 1 of two fits, over all pairs; 0 is stable."""
    pairs = [match(a.W[0], b.W[0]).mean for a, b in combinations(fits, 2)]
    return float(np.mean(pairs)) if pairs else None


def _rank(entry: Entry) -> float:
    measures = entry.measures()
    angles = [v for k, v in measures.items() if k.startswith("MRSA")]
    return float(np.mean(angles)) if angles else measures[f"data error {entry.run.f.depth}"]
