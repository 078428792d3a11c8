"""``python -m deepmf.cli.demo``: fit the simulated scene with every model and leave a report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from deepmf._utils.compile_clock import told
from deepmf._utils.messages import message_of
from deepmf.cli.wording import as_options
from deepmf.fitting.history import DIVERGED
from deepmf.paper.models import DEEP
from deepmf.report import Ranking, write_report
from deepmf.runs.compare import Entry, compare, ranking_table, readable
from deepmf.runs.config import Config
from deepmf.runs.figures import draw_figures
from deepmf.runs.folder import check_free, new_folder
from deepmf.runs.run import Run
from deepmf.runs.store import save_run

SCENE = Config(
    "dataset:simulated",
    fit={
        "ranks": [6, 4, 2],
        "regularizer_W": {"name": "min-volume", "weight": 10.0},
        "init": "snpa",
        "max_iter": 200,
        "tol": 0.0,
    },
)
"""Minimum-volume deep NMF of the scene, 6 > 4 > 2, from SNPA."""


def main(arguments: list[str] | None = None) -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="python -m deepmf.cli.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder to write to")
    parser.add_argument("--overwrite", action="store_true", help="replace the folder")
    given = parser.parse_args(arguments)
    out: Path = given.out
    try:
        check_free(out, given.overwrite)
        say("A simulated village, 120 bands x 4096 pixels, fitted by four models:")
        with told(_CompilingOnce()):
            settings = {label: SCENE.updated(model=model) for label, model in DEEP.items()}
            entries = compare(settings, jobs=1, progress=line_by_line)
        with new_folder(out, given.overwrite) as folder:
            summary = write_results(folder, entries)
    except (ImportError, OSError) as error:
        sys.stderr.write(f"deepmf: {as_options(message_of(error))}\n")
        return 2
    say(f"\n{summary}\n\nOpen {out / 'report.html'}; figures, factors and maps are beside it.")
    return 0


class _CompilingOnce:
    """Says that kernels are compiled, the first time that they are."""

    said = False

    def __call__(self) -> None:
        if not self.said:
            say("  compiling kernels, once per machine; their seconds are not counted below ...")
        self.said = True


def line_by_line(runs: Iterable[Run], total: int) -> Iterator[Run]:
    """The runs, each with a line as soon as it is there."""
    for label, run in zip(DEEP, runs):
        say(f"  {label}: {run.f.n_iter} sweeps in {run.facts['seconds']} s")
        yield run


def write_results(folder: Path, entries: Sequence[Entry]) -> str:
    """Every run, the page, figures of the layer-centric one; what to say about it."""
    best = next(entry.run for entry in entries if entry.label == "LC-DMF")
    summary = "\n".join([*table(entries), "", *links_in_words(best)])
    (folder / "summary.md").write_text(summary + "\n", encoding="utf-8")
    for entry in entries:
        (folder / entry.label).mkdir()
        save_run(folder / entry.label, entry.run)
    (folder / "figures").mkdir()
    draw_figures(folder / "figures", best)
    columns, rows = ranking_table(entries, "model")
    write_report(
        folder / "report.html",
        [entry.run for entry in entries],
        title="A simulated village in three layers",
        labels=[entry.label for entry in entries],
        ranking=Ranking(columns, readable(columns, rows)),
    )
    return summary


def table(entries: Sequence[Entry]) -> list[str]:
    """MRSA against the truth and relative errors, per model and layer, in Markdown."""
    lines = [
        "| model | MRSA layer 1 | layer 2 | layer 3 | error layer 1 | layer 2 | layer 3 |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in entries:
        measures = entry.measures()
        numbers = [f"{measures[f'MRSA {k}']:.2f}" for k in (1, 2, 3)]
        numbers += [_percent(measures[f"error {k} %"]) for k in (1, 2, 3)]
        lines.append("| " + " | ".join([entry.label, *numbers]) + " |")
    return [*lines, "", "MRSA: mean angle to the true spectra, 0 to 100, lower is better."]


def _percent(error: float) -> str:
    return f"{error:.1f} %" if error < 100 * DIVERGED else "diverged"


def links_in_words(run: Run) -> list[str]:
    """What each component of a layer is made of, one layer deeper."""
    lines = ["What LC-DMF found (shares of 10 % or more; names from the closest true spectra):", ""]
    for layer in range(2, run.f.depth + 1):
        shares, deeper = run.f.links(layer), run.names[layer - 1]
        for j, name in enumerate(run.names[layer - 2]):
            parts = [
                f"{shares[i, j]:.0%} {deeper[i]}"
                for i in np.argsort(-shares[:, j])
                if shares[i, j] >= 0.1
            ]
            lines.append(f"- {name} = {' + '.join(parts)}")
    return lines


def say(text: str) -> None:
    """One line to the terminal, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
