"""``deepmf fit``: from a file to a folder of results."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepmf._utils.messages import counted
from deepmf.cli import end
from deepmf.cli.console import error_messages, note, printable, say, show_layers, sweep_bar
from deepmf.cli.options import (
    FIT_OPTIONS,
    MODEL_OPTION,
    READING_OPTIONS,
    STOPPING,
    ConfigFile,
    Data,
    Out,
    Overwrite,
    Quiet,
    config_of,
    takes,
)
from deepmf.cli.wording import as_options, in_options

if TYPE_CHECKING:
    from deepmf.fitting.checkpoint import Checkpoint
    from deepmf.runs.config import Config

Seed = Annotated[int | None, typer.Option(min=0, help="Of random starts; default 0.")]
Report = Annotated[bool, typer.Option(help="Also make report.html in the folder.")]
CheckpointFile = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="File to resume from with the same command; default OUT.checkpoint; none: no file.",
        rich_help_panel=STOPPING,
        show_default=False,
    ),
]
Every = Annotated[
    float | None,
    typer.Option(
        "--checkpoint-every",
        metavar="SECONDS",
        help="How often it is written; default 60.",
        rich_help_panel=STOPPING,
        show_default=False,
    ),
]


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
    checkpoint: CheckpointFile = None,
    checkpoint_every: Every = None,
) -> None:
    """Factor the data in a file into layers, and write factors, tables, maps and a report.

    A recipe has settings for a kind of data. It is chosen by what was read,
    and one line says which it is. Options win over it; --recipe none turns it off.

    For example:

    deepmf fit urban.mat --ranks 6,4,2 -o urban/    (a cube: recipe scene)

    deepmf fit counts.h5ad --ranks 20,7 -o cells/    (AnnData: recipe cells)

    deepmf fit table.csv --ranks 8,3 --recipe none --model data-centric -o table/

    deepmf fit --config urban/config.toml -o again/    (the same run once more)

    A run that was killed resumes if the same command is given again. Ctrl-C ends it
    after the current sweep, with results so far; with --overwrite the same command resumes it.
    """
    with error_messages():
        from deepmf.report import write_report
        from deepmf.runs.execute import execute, open_data, settings_line
        from deepmf.runs.folder import check_free, new_folder
        from deepmf.runs.store import save_run

        settings = config_of(data, config, {**given, "seed": seed})
        check_free(out, overwrite, settings.files)
        settings.arguments()
        file = _checkpoint(settings, out, checkpoint, checkpoint_every)
        opened = open_data(settings)
        if not quiet:
            m, n = opened.X.shape
            say(f"{printable(opened.name)}: {m} features x {n} samples")
            say(as_options(settings_line(settings, opened)))
        total = settings.fit.get("max_iter", 500)
        with (
            sweep_bar(total if isinstance(total, int) else 0, quiet) as watch,
            _ended_like_ctrl_c() as came,
        ):
            run = in_options(execute(settings, opened, [watch], file))
        with new_folder(out, overwrite) as folder:
            save_run(folder, run)
            if report:
                write_report(folder / "report.html", [run])
        reason, sweeps = run.f.stop_reason, counted(run.f.n_iter, "sweep")
        asked = bool(checkpoint or settings.checkpoint)
        goes_on = reason == "interrupted" or (asked and reason == "max_time")
        if file is not None and not goes_on:
            file.remove()
        if reason == "interrupted":
            way = f"; the same command with --overwrite resumes from {file.path}" if file else ""
            note(f"interrupted after {sweeps}; results so far are in {out}{way}.")
            raise typer.Exit(128 + (came or [signal.SIGINT])[0])
        if quiet:
            return
        for text in run.notes:
            note(text)
        say(f"{sweeps} in {run.facts['seconds']} s, stopped by {reason}.")
        show_layers(run)
        say(f"Results are in {out}" + (f"; open {out / 'report.html'}." if report else "."))


def _checkpoint(
    settings: Config, out: Path, given: str | None, every: float | None
) -> Checkpoint | None:
    """The one that is asked for, else one beside the folder of results; it stays until these are.

    Written every minute, it does not appear for short runs.
    """
    from deepmf.fitting.checkpoint import Checkpoint

    if given == "none":
        return None
    file = settings.checkpoint if given is None else Checkpoint(os.path.expanduser(given))
    if file is None:
        folder = Path(os.path.realpath(out))
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = Checkpoint(folder.with_name(folder.name + ".checkpoint"))
    return Checkpoint(file.path, file.interval if every is None else every, keep=True)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[list[int]]:
    """Signals that would end the process do what Ctrl-C does; gives those that came."""
    came: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a script's own `deepmf fit ... &`
            end(number, frame)
        came.append(number)
        signal.raise_signal(signal.SIGINT)

    ours = [number for number in signal.valid_signals() if signal.getsignal(number) is end]
    for number in ours:
        signal.signal(number, pass_on)
    try:
        yield came
    except KeyboardInterrupt:
        if came:
            sys.exit(128 + came[0])
        raise
    finally:
        for number in ours:
            signal.signal(number, end)
