"""``deepmf scan``: how many components, and how many layers."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from deepmf._utils.messages import SettingError, setting
from deepmf.cli.console import error_messages, printable, progress_bar, say, table
from deepmf.cli.options import (
    FIT_OPTIONS,
    MODEL_OPTION,
    READING_OPTIONS,
    ConfigFile,
    Data,
    Jobs,
    Out,
    Overwrite,
    Quiet,
    config_of,
    takes,
)
from deepmf.cli.wording import as_options
from deepmf.data.features import ALL
from deepmf.fitting.recipes import NONE

_SHOWN = ("ranks", "error %", "spread %", "agreement", "smallest singular value", "effective rank")
_LEFT_OUT = ("ranks", "truth", "labels", "fixed", "weights", "device")

Ranks = Annotated[
    list[str] | None,
    typer.Option("--ranks", help="Candidates, as 2-8, 6,3 or 4-6,2-3; repeat.", metavar="R1,R2"),
]
Splits = Annotated[int, typer.Option(min=2, help="Ways to split the samples in two.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the splits, and the first one of the fits.")]


@takes(
    {
        **READING_OPTIONS,
        "model": MODEL_OPTION,
        **{name: option for name, option in FIT_OPTIONS.items() if name not in _LEFT_OUT},
    }
)
def scan(
    given: dict[str, Any],
    data: Data = None,
    ranks: Ranks = None,
    out: Out = Path("deepmf-scan"),
    config: ConfigFile = None,
    splits: Splits = 4,
    seed: Seed = 0,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Try many ranks and depths, and say which to take and how sure that is.

    Each candidate is fitted to random halves of the samples, with the settings of the final fit:
    the recipe's and yours. A good one
    predicts hidden features of the other half, and both halves have the same components. Of more
    than 10,000 samples, 10,000 random ones are used. Data may be dense or sparse (counts of words
    or genes), which stay sparse. If the two signs differ, a range is given.

    The folder has the choice in words and the numbers (summary.md), the numbers alone (scan.csv,
    scan.json) and a figure (scan.png, scan.pdf).

    For example:

    deepmf scan urban.mat --ranks 2-8 -o scan/

    deepmf scan cells.h5ad --ranks 5-15 -o scan/

    deepmf scan faces.npy --ranks 5-7 --ranks 5-7,2-4 --tol 1e-3 -o scan/
    """
    with error_messages():
        from deepmf._utils.text_tables import markdown_table, write_csv
        from deepmf.plots.scan import plot_scan
        from deepmf.plots.style import save_figure
        from deepmf.runs.execute import open_data, recipe_for, settings_line
        from deepmf.runs.folder import check_free, new_folder
        from deepmf.selection.scan import scan as scan_all

        grid = rank_grid(ranks or ["2-8"])
        settings = config_of(data, config, given).updated(ranks=list(grid[0]))
        check_free(out, overwrite, settings.files)
        if settings.fixed is not None:
            raise SettingError(f"A scan cannot hold components; leave out {setting('fixed')}.")
        fit = settings.arguments()
        for name in ("ranks", "random_state", "weights"):  # NaN is missing in every scan
            fit.pop(name, None)
        opened = open_data(settings.updated(weights="observed"))
        if not quiet:
            m, n = opened.X.shape
            say(f"{printable(opened.name)}: {m} features x {n} samples")
            say(as_options(settings_line(settings, opened)))
        recipe = recipe_for(settings, opened)
        fit["recipe"] = recipe.name if recipe else None
        fit |= {"scale": NONE, "max_features": ALL}  # the data are prepared already
        done = scan_all(
            opened.X,
            grid,
            splits=splits,
            random_state=seed,
            jobs=jobs,
            progress=progress_bar("fits", quiet),
            **fit,
        )
        columns, rows = done.table()
        summary = f"{done.choice.sentence}\n\n{markdown_table(columns, rows)}"
        numbers = json.dumps(done.to_dict(), indent=2, ensure_ascii=False)
        with new_folder(out, overwrite) as folder:
            write_csv(folder / "scan.csv", columns, rows)
            (folder / "summary.md").write_text(summary, encoding="utf-8")
            (folder / "scan.json").write_text(numbers + "\n", encoding="utf-8")
            save_figure(plot_scan(done), folder, "scan")
        if not quiet:
            if done.samples < n:
                say(f"The fits share {done.samples} of the samples.")
            table(list(_SHOWN), [[row[columns.index(c)] for c in _SHOWN] for row in rows])
        say(f"{done.choice.sentence}\nResults are in {out}." if not quiet else done.choice.sentence)


def rank_grid(texts: list[str]) -> list[tuple[int, ...]]:
    """Candidates from ``2-8`` or ``4-6,2-3``: all combinations that decrease."""
    grid: dict[tuple[int, ...], None] = {}
    for text in texts:
        parts = [re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part) for part in text.split(",")]
        if not all(parts):
            raise ValueError(f"--ranks must be such as 2-8, 6,3 or 4-6,2-3, got {text!r}.")
        spans = [range(int(p[1]), int(p[2] or p[1]) + 1) for p in parts if p]
        found = [
            ranks
            for ranks in itertools.product(*spans)
            if all(a > b for a, b in itertools.pairwise(ranks))
        ]
        if not found:
            raise ValueError(f"--ranks {text} has no candidate whose ranks decrease.")
        grid |= dict.fromkeys(found)
    return list(grid)
