"""``deepmf compare``: several models or settings on the same data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from deepmf.cli.console import note, progress_bar, say, sentences, table
from deepmf.cli.options import (
    FIT_OPTIONS,
    READING_OPTIONS,
    Data,
    Jobs,
    Out,
    Overwrite,
    Quiet,
    config_of,
    takes,
)
from deepmf.cli.wording import in_options
from deepmf.fitting.registry import known

Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="A model, as in fit; repeat. Default: all four."),
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

    Example: deepmf compare urban.mat --truth end6.mat --ranks 6,4,2 --min-volume 10 -o urban-all/
    """
    with sentences():
        from deepmf._utils.text_tables import write_csv
        from deepmf.report import Ranking, write_report
        from deepmf.runs.compare import compare as compare_all
        from deepmf.runs.compare import ranking_table, readable
        from deepmf.runs.folder import check_free, new_folder
        from deepmf.runs.store import save_run

        files = config or []
        names = model or ([] if files else list(known("model")))
        settings = {name: config_of(data, None, {**given, "model": name}) for name in names}
        settings |= {_label(file): config_of(data, file, given) for file in files}
        folders = {label: _file_name(label) for label in settings}
        if len(settings) < len(names) + len(files) or len(set(folders.values())) < len(folders):
            raise ValueError("Two of the settings to compare have the same name; rename one.")
        check_free(out, overwrite, [file for s in settings.values() for file in s.files])
        entries = [
            replace(entry, run=in_options(entry.run))
            for entry in compare_all(settings, seeds, jobs, progress_bar("fits", quiet))
        ]
        columns, rows = ranking_table(entries, "setting")
        with new_folder(out, overwrite) as folder:
            for entry in entries:
                (folder / folders[entry.label]).mkdir()
                save_run(folder / folders[entry.label], entry.run)
            write_csv(folder / "ranking.csv", columns, rows)
            rows = readable(columns, rows)
            runs = [entry.run for entry in entries]
            labels = [entry.label for entry in entries]
            ranking = Ranking(columns, rows)
            write_report(folder / "report.html", runs, labels=labels, ranking=ranking)
        if quiet:
            return
        for entry in entries:
            for text in entry.run.notes:
                note(f"{entry.label}: {text}")
        shown = [c for c in columns if not c.startswith(("layer error", "sparsity"))]
        table(shown, [[row[columns.index(c)] for c in shown] for row in rows])
        say(f"Results are in {out}; open {out / 'report.html'}.")


def _label(file: Path) -> str:
    """A file of settings by its name, or by its folder's where a run wrote it."""
    return file.absolute().parent.name if file.name == "config.toml" else file.stem


def _file_name(label: str) -> str:
    """A label as the name of a folder, which no file of the comparison has."""
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in label)
    return plain.strip("-")[:80] or "run"
