"""Time of one sweep beside one iteration of scikit-learn's NMF, on the same data, in one run.

    python benchmarks/sweep.py [--columns 20000] [--out results]

Each pair of timings alternates, and medians are compared: machines are shared and noisy.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import NMF

import deepmf

ROUNDS = 5
SWEEPS = 10
CASES = {
    "LC sweep, r = (6, 4, 2)": {"ranks": [6, 4, 2], "model": "layer-centric"},
    "DC sweep, r = (6, 4, 2)": {"ranks": [6, 4, 2], "model": "data-centric"},
    "single-layer sweep, r = 6": {"ranks": [6], "model": "layer-centric"},
}


def seconds_per_sweep(X: np.ndarray, **settings: object) -> float:
    f = deepmf.factorize(X, init="random", random_state=0, max_iter=SWEEPS, tol=0, **settings)
    return float(np.median(np.diff(f.history.time)))


def seconds_per_iteration(X: np.ndarray) -> float:
    """scikit-learn's coordinate descent, its start and set-up taken off by a shorter run."""
    times = []
    for iterations in (1, 1 + SWEEPS):
        model = NMF(6, init="random", random_state=0, max_iter=iterations, tol=0)
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X.T)
        times.append(time.perf_counter() - began)
    return (times[1] - times[0]) / SWEEPS


def seconds_per_read(X: np.ndarray) -> float:
    began = time.perf_counter()
    X.sum()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=162)
    parser.add_argument("--columns", type=int, default=20000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.random((options.rows, 6)) @ rng.dirichlet(0.3 * np.ones(6), options.columns).T
    X += 0.01 * rng.random(X.shape)

    rounds: dict[str, list[float]] = {name: [] for name in CASES}
    rounds["scikit-learn NMF(6) cd iteration"] = []
    rounds["one read of X"] = []
    for _ in range(ROUNDS):
        for name, settings in CASES.items():
            rounds[name].append(seconds_per_sweep(X, **settings))
        rounds["scikit-learn NMF(6) cd iteration"].append(seconds_per_iteration(X))
        rounds["one read of X"].append(seconds_per_read(X))
    medians = {name: float(np.median(times)) for name, times in rounds.items()}

    reference = medians["scikit-learn NMF(6) cd iteration"]
    lines = [
        f"X {options.rows} x {options.columns} float64, {platform.machine()}, "
        f"NumPy {np.__version__}, medians of {ROUNDS} rounds",
        "",
        "| | ms | over scikit-learn's iteration |",
        "|---|---|---|",
        *(f"| {name} | {1e3 * t:.2f} | {t / reference:.2f} |" for name, t in medians.items()),
    ]
    print("\n".join(lines))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "sweep.md").write_text("\n".join(lines) + "\n")
    (options.out / "sweep.json").write_text(json.dumps(medians, indent=2) + "\n")


if __name__ == "__main__":
    main()
