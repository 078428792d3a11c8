"""``deepmf compare``: several models or settings on the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepmf.cli.console import error_messages, note, progress_bar, say, table
from deepmf.cli.options import (
    FIT_OPTIONS,
    READING_OPTIONS,
    Data,
    Jobs,
    Out,
    Overwrite,
    Quiet,
    beta_loss_of,
    config_of,
    takes,
)
from deepmf.cli.wording import in_options
from deepmf.fitting.recipes import all_squared
from deepmf.fitting.registry import known

if TYPE_CHECKING:
    from deepmf.report import Ranking
    from deepmf.runs.compare import Entry

Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="A model, as in fit; repeat. Default: all four, or those that --beta-loss allows.",
    ),
]
Configs = Annotated[
    list[Path] | None,
    typer.Option("--config", help="TOML file with settings to compare too; repeat."),
]
Seeds = Annotated[int, typer.Option(min=1, help="Fits of each, with seeds 0, 1, ...")]


@takes({**READING_OPTIONS, **FIT_OPTIONS})
def compare(
    given: dict[str, Any],
    data: Data = None,
    out: Out = Path("deepmf-compare"),
    model: Models = None,
    config: Configs = None,
    seeds: Seeds = 1,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Fit several models or settings to the same data, rank them, and show them side by side.

    Ranked by MRSA where --truth is given, else by the data error of the last layer.
    Errors by different --beta-loss do not compare: the order is then the one given.

    Example: deepmf compare urban.mat --truth end6.mat --ranks 6,4,2 -o urban-all/
    """
    with error_messages():
        from deepmf.runs.compare import comparable
        from deepmf.runs.compare import compare as compare_all
        from deepmf.runs.folder import check_free, new_folder

        files = config or []
        names = model or ([] if files else _models(given))
        settings = {name: config_of(data, None, {**given, "model": name}) for name in names}
        settings |= {_label(file): config_of(data, file, given) for file in files}
        if len({_folder_name(label) for label in settings}) < len(names) + len(files):
            raise ValueError("Two of the settings to compare have the same name; rename one.")
        check_free(out, overwrite, [file for s in settings.values() for file in s.files])
        entries = [
            replace(entry, run=in_options(entry.run))
            for entry in compare_all(settings, seeds, jobs, progress_bar("fits", quiet))
        ]
        with new_folder(out, overwrite) as folder:
            columns, rows = write_comparison(folder, entries, "setting")
        if quiet:
            return
        for text in (said := _said_of_all(entries)):
            note(text)
        for entry in entries:
            for text in entry.run.notes:
                if text not in said:
                    note(f"{entry.label}: {text}")
        by_truth = any(name.startswith("MRSA") for name in columns)
        if not (by_truth or comparable([entry.run.f for entry in entries])):
            note(
                "the settings have different --beta-loss, and shares by these do not compare: they "
                "are in the order given."
            )
        shown = [c for c in columns if not c.startswith(("layer e", "sparsity"))]
        table(shown, [[row[columns.index(c)] for c in shown] for row in rows])
        say(f"Results are in {out}; open {out / 'report.html'}.")


def _models(given: Mapping[str, Any]) -> list[str]:
    """All models, or those that other distances than squared errors are for."""
    found = known("model")
    squared = all_squared(beta_loss_of(given))
    return [name for name, model in found.items() if squared or model.consistent]  # type: ignore


def write_comparison(
    folder: Path, entries: Sequence[Entry], first: str, title: str | None = None
) -> Ranking:
    """Write every run, ``ranking.csv`` and ``report.html``; return the ranking as people read it.

    ``first`` is the name of the column of labels.
    """
    from deepmf._utils.text_tables import write_csv
    from deepmf.report import Ranking, write_report
    from deepmf.runs.compare import ranking_table, readable
    from deepmf.runs.store import save_run

    for entry in entries:
        place = folder / _folder_name(entry.label)
        place.mkdir()
        save_run(place, entry.run)
    columns, rows = ranking_table(entries, first)
    write_csv(folder / "ranking.csv", columns, rows)
    ranking = Ranking(columns, readable(columns, rows))
    runs, labels = ([getattr(entry, name) for entry in entries] for name in ("run", "label"))
    write_report(folder / "report.html", runs, title, ranking, labels)
    return ranking


def _said_of_all(entries: Sequence[Entry]) -> list[str]:
    """Notes that all runs share, such as those on how the data were read."""
    first, *others = entries
    return [t for t in first.run.notes if others and all(t in e.run.notes for e in others)]


def _label(file: Path) -> str:
    """A file of settings by its name, or by its folder's where a run wrote it."""
    return file.absolute().parent.name if file.name == "config.toml" else file.stem


def _folder_name(label: str) -> str:
    """A label as the name of a folder, which no file of the comparison has."""
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in label)
    return plain.strip("-")[:80] or "run"
