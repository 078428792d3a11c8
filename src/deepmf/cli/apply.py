"""``deepmf apply``: codes of other data under the components of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from deepmf.cli.console import error_messages, note, printable, say, show_errors
from deepmf.cli.options import (
    FIT_OPTIONS,
    READING_OPTIONS,
    Out,
    Overwrite,
    Quiet,
    absolute,
    reading_of,
    takes,
)
from deepmf.cli.wording import in_options

RunFolder = Annotated[Path, typer.Argument(help="The folder of a run, as deepmf fit leaves it.")]
NewData = Annotated[str, typer.Argument(help="A file, or dataset:NAME, with the run's features.")]


@takes({**READING_OPTIONS, **{name: FIT_OPTIONS[name] for name in ("weights", "allow_negative")}})
def apply(
    given: dict[str, Any],
    run: RunFolder,
    data: NewData,
    out: Out = Path("deepmf-applied"),
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Code other data with the components of a run, such as a second scene of the same sensor.

    The file is read as the run's was, with the same bands, and scaled in the same way; options win
    over that. The folder gets the codes of all layers and the residuals, in the format of the data,
    and summary.json with the error of each layer.

    Example: deepmf apply urban/ urban-2020.hdr -o urban-2020/
    """
    with error_messages():
        from deepmf.runs.apply import apply as apply_run
        from deepmf.runs.apply import save_applied
        from deepmf.runs.config import Config
        from deepmf.runs.folder import check_free, new_folder
        from deepmf.runs.store import check_run

        path = absolute(data)
        check_run(run)
        Config(path).check_data()
        check_free(out, overwrite, [run, *([] if path.startswith("dataset:") else [path])])
        answers = vars(reading_of(given))
        done = apply_run(run, path, answers, given["weights"], given["allow_negative"])
        done = replace(done, run=in_options(done.run))
        with new_folder(out, overwrite) as folder:
            save_applied(folder, done)
        if quiet:
            return
        for text in done.run.notes:
            note(text)
        m, n = len(done.run.f.W[0]), done.run.f.H[0].shape[1]
        say(f"{printable(done.run.name)}: {m} features x {n} samples")
        show_errors(done.run.f, done.errors, done.sizes)
        say(f"Results are in {out}.")
