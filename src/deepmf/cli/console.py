"""Output of the command line."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from deepmf._utils.messages import message_of
from deepmf.cli.wording import as_options
from deepmf.core.divergence import beta_of

if TYPE_CHECKING:
    from deepmf.factorization import Factorization
    from deepmf.fitting.history import Progress as Sweeps
    from deepmf.runs.run import Run


def say(text: str) -> None:
    """Plain text to standard output."""
    typer.echo(text)


def note(text: str) -> None:
    """A remark to standard error, on one line and with settings as options."""
    typer.echo(f"deepmf: {printable(' '.join(as_options(text).splitlines()))}", err=True)


def stop(message: str) -> NoReturn:
    """Print an error message on standard error and exit with code 2."""
    note(message)
    raise typer.Exit(2)


@contextmanager
def error_messages() -> Iterator[None]:
    """Turn errors of the user into one line and exit code 2, and Ctrl-C into exit code 130.

    Warnings are remarks, without the place in the code they come from.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *place, **more: note(message_of(message))
            yield
    except BrokenPipeError:
        raise  # whoever read the output has seen enough: for click to end quietly
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            stop("There is no space left on the disk; nothing was written.")
        known = error.strerror is not None and error.filename is not None
        stop(f"{error.strerror}: {str(error.filename)!r}." if known else message_of(error))
    except (ValueError, TypeError, ImportError, FloatingPointError) as error:
        stop(message_of(error))
    except OverflowError as error:
        stop(f"A number is too large to work with ({error}); nothing was written.")
    except MemoryError as error:
        stop(str(error) or "There is not enough memory for these data; nothing was written.")
    except KeyboardInterrupt:
        note("interrupted; nothing was written.")
        raise typer.Exit(130) from None


def table(columns: list[str], rows: Iterable[Iterable[object]]) -> None:
    """A table to standard output, as wide as the terminal, numbers to the right."""
    cells = [list(row) for row in rows]
    shown = Table(box=None, pad_edge=False, show_header=any(columns))
    for k, column in enumerate(columns):
        number = any(isinstance(row[k], int | float) for row in cells)
        shown.add_column(Text(column), justify="right" if number else "left", overflow="fold")
    for row in cells:
        shown.add_row(*(Text(_cell(value)) for value in row))
    Console(highlight=False).print(shown)


def show_layers(run: Run) -> None:
    """Errors of each layer, and its measures against truth and classes where known."""
    f = run.f
    show_errors(f, f.history.data_errors[-1], f.data_sizes)
    names = list(dict.fromkeys(name for measures in run.measures for name in measures))
    if names:
        say("")
        found = enumerate(run.measures, start=1)
        values = ([k, *(measures.get(name, "") for name in names)] for k, measures in found)
        table(["layer", *names], values)


def show_errors(f: Factorization, shares: Sequence[float], sizes: Sequence[float]) -> None:
    """Table of what each layer leaves of the data and explains, from shares of the deviance."""
    left = np.asarray(shares, dtype=np.float64)
    columns: dict[str, Sequence[object]] = {
        "layer": range(1, f.depth + 1),
        "components": f.ranks,
    }
    if f.problem.fits:
        columns["beta loss"] = [str(beta_of(fit)) for fit in f.problem.fits]
        columns["deviance"] = (left * np.asarray(sizes)).tolist()
    else:
        columns["relative error in %"] = (100 * np.sqrt(left)).tolist()
    columns["explained in %"] = (100 * (1 - left)).tolist()
    table([*columns], zip(*columns.values()))


def _cell(value: object) -> str:
    if isinstance(value, float):
        if 0.1 <= abs(value) < 100:
            return f"{value:.2f}"
        return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    return printable(str(value))


def printable(text: str) -> str:
    """Without the control characters that names from files may hold."""
    return "".join(c if c.isprintable() else "?" for c in text)


def progress_bar(what: str, quiet: bool = False) -> Callable[[Iterable[Any], int], Iterator[Any]]:
    """Progress bar for an iterable on standard error; silent if that is not a terminal."""

    def show(items: Iterable[Any], total: int) -> Iterator[Any]:
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with _progress(quiet, *columns) as bar:
            yield from bar.track(items, total=total)

    return show


@contextmanager
def sweep_bar(total: int, quiet: bool = False) -> Iterator[Callable[[Sweeps], None]]:
    """A bar of sweeps with the current objective, as a callback for a fit."""
    from deepmf._utils.compile_clock import on_compile

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("objective {task.fields[objective]}"),
        TimeElapsedColumn(),
    )
    with _progress(quiet, *columns) as bar:
        task = bar.add_task("sweeps", total=total, objective="")

        def update(p: Sweeps) -> None:
            said = f"{p.objective:.6g}"
            bar.update(task, completed=p.sweep, objective=said, description="sweeps")

        with on_compile(lambda: bar.update(task, description="compiling, once per machine ...")):
            yield update


def _progress(quiet: bool, *columns: Any) -> Progress:
    off = quiet or not sys.stderr.isatty()
    console = Console(stderr=True, quiet=off)  # quiet: Rich before 15 ends with an empty line
    return Progress(*columns, console=console, disable=off, transient=True)
