"""``deepmf report``: one page from one or more runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deepmf.cli.console import error_messages, say


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders that deepmf fit made.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The page; default: report.html in the first folder."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Above the page.")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also draw the figures, PDF and PNG, into this new folder.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the folder of figures if deepmf made it.")
    ] = False,
) -> None:
    """Make an HTML page: layer graph, maps, spectra or words, errors, settings.

    The page is one file that needs nothing else, not even a network. Several runs on the same data
    stand side by side.
    """
    with error_messages():
        from deepmf.report import write_report
        from deepmf.report.texts import numbered
        from deepmf.runs.folder import check_free, new_folder
        from deepmf.runs.store import load_run

        if figures is not None:
            check_free(figures, overwrite, runs)
        loaded = [load_run(folder) for folder in runs]
        names = numbered([folder.resolve().name for folder in runs])
        labels = names if len(runs) > 1 else None
        page = out or runs[0] / "report.html"
        write_report(page, loaded, title=title, labels=labels)
        say(f"Wrote {page}.")
        if figures is not None:
            from deepmf.runs.figures import draw_figures

            with new_folder(figures, overwrite) as folder:
                count = sum(
                    draw_figures(folder, run, "" if labels is None else f"{labels[k]}-")
                    for k, run in enumerate(loaded)
                )
            say(f"Drew {count} figures into {figures}.")
