"""``deepmf fit``: from a file to a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deepmf.cli.console import note, printable, say, sentences, show_layers, sweep_bar
from deepmf.cli.options import (
    FIT_OPTIONS,
    MODEL_OPTION,
    READING_OPTIONS,
    ConfigFile,
    Data,
    Out,
    Overwrite,
    Quiet,
    config_of,
    takes,
)

Seed = Annotated[int | None, typer.Option(min=0, help="Of random starts; default 0.")]
Report = Annotated[bool, typer.Option(help="Also make report.html in the folder.")]


@takes({**READING_OPTIONS, "model": MODEL_OPTION, **FIT_OPTIONS})
def fit(
    given: dict[str, Any],
    data: Data = None,
    out: Out = Path("deepmf-run"),
    config: ConfigFile = None,
    overwrite: Overwrite = False,
    seed: Seed = None,
    report: Report = True,
    quiet: Quiet = False,
) -> None:
    """Factor the data in a file into layers, and leave factors, tables, maps and a report.

    For example:

    deepmf fit urban.mat --ranks 6,4,2 --min-volume 10 --init snpa -o urban/

    deepmf fit counts.h5ad --ranks 20,7 --scale log --model data-centric -o cells/

    deepmf fit --config urban/config.toml -o again/    (the same run once more)
    """
    with sentences():
        from deepmf.report import write_report
        from deepmf.runs.execute import execute, open_data
        from deepmf.runs.folder import check_free, new_folder
        from deepmf.runs.store import save_run

        settings = config_of(data, config, {**given, "seed": seed})
        check_free(out, overwrite, settings.files)
        settings.arguments()
        opened = open_data(settings)
        if not quiet:
            m, n = opened.X.shape
            say(f"{printable(opened.name)}: {m} features x {n} samples")
        total = settings.fit.get("max_iter", 500)
        with sweep_bar(total if isinstance(total, int) else 0, quiet) as watch:
            run = execute(settings, opened, [watch])
        with new_folder(out, overwrite) as folder:
            save_run(folder, run)
            if report:
                write_report(folder / "report.html", [run])
        if quiet:
            return
        for text in run.notes:
            note(text)
        say(f"{run.f.n_iter} sweeps in {run.facts['seconds']} s, stopped by {run.f.stop_reason}.")
        show_layers(run)
        say(f"Results are in {out}" + (f"; open {out / 'report.html'}." if report else "."))
