"""``deepmf compare``: several models or settings on the same data."""

from __future__ import annotations

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

Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="A model, as in fit; repeat. Default: all four."),
]
Configs = Annotated[
    list[Path] | None,
    typer.Option("--config", help="TOML file with settings to compare too; repeat."),
]
Seeds = Annotated[int, typer.Option(min=1, help="Fits of each, with seeds 0, 1, ...")]

_ALL = ("layer-centric", "data-centric", "multilayer", "trigeorgis")


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
        from deepmf.report import Ranking, write_report
        from deepmf.runs.compare import compare as compare_all
        from deepmf.runs.folder import check_free, new_folder
        from deepmf.runs.store import save_run, write_table

        check_free(out, overwrite)
        files = config or []
        names = model or ([] if files else list(_ALL))
        settings = {name: config_of(data, None, {**given, "model": name}) for name in names}
        settings |= {file.stem: config_of(data, file, given) for file in files}
        if len(settings) < len(names) + len(files):
            raise ValueError("Two of the settings to compare have the same name; rename one.")
        entries = compare_all(settings, seeds, jobs, progress_bar("fits", quiet))
        columns = ["setting", *dict.fromkeys(k for e in entries for k in e.measures())]
        rows = [[e.label, *(e.measures().get(c, "") for c in columns[1:])] for e in entries]
        with new_folder(out, overwrite) as folder:
            for entry in entries:
                (folder / _file_name(entry.label)).mkdir()
                save_run(folder / _file_name(entry.label), entry.run)
            write_table(folder / "ranking.csv", columns, rows)
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


def _file_name(label: str) -> str:
    """A label as the name of a folder."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in label).strip(".-") or "run"
