"""Score the answers of deepmf and of other methods, and write a page.

    python -m benchmarks.answers                  every data set in DEEPMF_DATA, about an hour
    python -m benchmarks.answers --quick          three sets that need no files, about a minute
    python -m benchmarks.answers --only Samson    sets whose names contain a word

Writes answers.md and answers.json to benchmarks/results after every data set. Random methods and
random data are run with several seeds. deepmf by recipe has no other setting.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import machine
from . import report, rules
from .methods import METHODS, OF_COUNTS, OF_SCENES, Layer, nmf
from .report import Cell, Entry
from .score import best_nmi, score
from .sets import QUICK, SETS, Answers

RESULTS = Path(__file__).resolve().parents[1] / "results"
RANDOM_DATA = ("simulated", "synthetic")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    chosen = [
        name
        for name in (QUICK if options.quick else SETS)
        if any(word in name for word in options.only or [""])
    ]
    about, entries, checks = machine.describe(), [], []
    for name in chosen:
        try:
            SETS[name](0)
        except FileNotFoundError as error:
            print(f"{name}: left out. {error}", flush=True)
            continue
        entries += compare(name, options.seeds, options.methods)
        if not options.quick:
            checks += rules.check(name, options.seeds)
        report.write(options.out, about, entries, checks, options.quick)


def compare(name: str, seeds: int, only: Sequence[str] | None = None) -> list[Entry]:
    """Scores and times of all methods on a data set, over seeds."""
    found: dict[str, dict[int, list[float]]] = {}
    times: dict[str, list[float]] = {}
    for seed in range(seeds):
        data = SETS[name](seed)
        for method, fit in METHODS.items():
            if not _applies(method, data) or (only and method not in only):
                continue
            random = name.startswith(RANDOM_DATA) or method in _RANDOM or data.cluster
            if seed and not random:
                continue
            layers, seconds = timed(fit, data, seed)
            times.setdefault(method, []).append(seconds)
            scores = found.setdefault(method, {})
            for number, layer in enumerate(layers, start=1):
                best = fit is nmf and number in data.labels
                value = (best_nmi if best else score)(data, number, layer, seed)
                if value is not None:
                    scores.setdefault(number, []).append(value)
    data = SETS[name](0)
    entries = []
    for number in sorted({k for scores in found.values() for k in scores}):
        measure = "MRSA" if number in data.spectra else "NMI"
        cells = {
            method: Cell.of(scores[number], times[method])
            for method, scores in found.items()
            if number in scores
        }
        entries.append(Entry(name, number, measure, cells))
        shown = "  ".join(f"{method} {cell.text}" for method, cell in cells.items())
        print(f"{name}, layer {number}, {measure}: {shown}", flush=True)
    return entries


def timed(fit: Any, data: Answers, seed: int, **more: Any) -> tuple[list[Layer], float]:
    """The layers of a fit and its seconds, without the warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        layers = fit(data, seed, **more)
        return layers, time.perf_counter() - began


_RANDOM = ("deepmf, recipe", "deepmf, recipe, KL of counts", "k-means", "VCA + NNLS")


def _applies(method: str, data: Answers) -> bool:
    """Whether a method is for such data: extreme samples for scenes, others for counts or all."""
    if method in OF_COUNTS:
        return data.counts is not None
    if method in OF_SCENES:
        return bool(data.spectra) and max(data.ranks) <= min(data.X.shape)
    return True


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="sets that need no files, one seed")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="sets whose names contain these")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), help="methods to run")
    parser.add_argument("--seeds", type=int, help="seeds of what is random; default 5, quick 1")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args(arguments)
    options.seeds = options.seeds or (1 if options.quick else 5)
    return options


if __name__ == "__main__":
    np.seterr(under="ignore")
    main()
