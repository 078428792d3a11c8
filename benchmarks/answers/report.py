"""The page of answers, as Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

from ..report import markdown, replace_file
from .methods import METHODS

NOTE = """\
MRSA: mean angle to the true spectra after matching, 0 to 100, lower is better. NMI: normalized
mutual information with the classes, higher is better, of each sample's largest code, or for
pictures and digits of k-means on codes of norm 1. scikit-learn's NMF gets the better of two scales
of its codes. Mean and standard deviation over seeds where the data or the method are random. Every
other method fits each rank by itself.

**Chosen by looking at the truth of these sets**: lam and tol of the recipe for scenes, lam of that
for cells, and of the other recipes the model, the start, one parent each, the scale and tol. They
were also tried on parts of these sets (random classes, other ranks, half of the cells), and the
starts for scenes on scenes made with and without pure pixels. The weight and delta of the minimum
volume follow from the data."""


@dataclass(frozen=True)
class Cell:
    """Scores of a method in a layer, and its times."""

    scores: list[float]
    seconds: list[float]

    @classmethod
    def of(cls, scores: Sequence[float], seconds: Sequence[float]) -> Cell:
        """Rounded to what is shown and a little more."""
        return cls([round(s, 4) for s in scores], [round(s, 2) for s in seconds])

    @property
    def text(self) -> str:
        """Mean and spread."""
        digits = 3 if max(self.scores) <= 1 else 2
        spread = f" ± {pstdev(self.scores):.{digits}f}" if len(self.scores) > 1 else ""
        return f"{mean(self.scores):.{digits}f}{spread}"


@dataclass(frozen=True)
class Entry:
    """Scores of all methods in a layer of a data set."""

    name: str
    layer: int
    measure: str
    cells: dict[str, Cell]


def page(
    about: dict[str, str], entries: Sequence[Entry], checks: Sequence[Any], quick: bool
) -> str:
    """All scores as a Markdown page."""
    parts = ["# Answers, scored", "\n".join(f"- {k}: {v}" for k, v in about.items()), NOTE]
    if quick:
        parts.insert(1, "**Quick version: three sets, one seed.**")
    for measure in ("MRSA", "NMI"):
        own = [entry for entry in entries if entry.measure == measure]
        methods = [m for m in METHODS if any(m in entry.cells for entry in own)]
        if own:
            parts += [f"## {measure}", markdown(("data, layer", *methods), _rows(own, methods))]
    times = {entry.name: entry for entry in entries}.values()
    methods = [m for m in METHODS if any(m in entry.cells for entry in times)]
    parts += ["## Seconds", markdown(("data", *methods), _times(times, methods))]
    if checks:
        rows = [[c.name, c.change, _listed(c.before), _listed(c.after)] for c in checks]
        header = ("data", "change", "recipe", "changed")
        parts += ["## The recipe with a change", markdown(header, rows)]
    return "\n\n".join(parts) + "\n"


def write(
    folder: Path,
    about: dict[str, str],
    entries: Sequence[Entry],
    checks: Sequence[Any],
    quick: bool,
) -> None:
    """Write answers.md and answers.json, each replaced atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "machine": about,
        "quick": quick,
        "entries": [asdict(entry) for entry in entries],
        "checks": [check._asdict() for check in checks],
    }
    replace_file(folder / "answers.json", json.dumps(content, indent=2) + "\n")
    replace_file(folder / "answers.md", page(about, entries, checks, quick))


def _rows(entries: Sequence[Entry], methods: Sequence[str]) -> list[list[str]]:
    return [
        [
            f"{entry.name}, {entry.layer}",
            *(entry.cells[m].text if m in entry.cells else "" for m in methods),
        ]
        for entry in entries
    ]


def _times(entries: Any, methods: Sequence[str]) -> list[list[str]]:
    return [
        [
            entry.name,
            *(f"{mean(entry.cells[m].seconds):.1f}" if m in entry.cells else "" for m in methods),
        ]
        for entry in entries
    ]


def _listed(scores: Sequence[float]) -> str:
    return " / ".join(f"{value:.3g}" for value in scores)
