"""What the command line prints, and where."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def say(text: str) -> None:
    """Plain text to standard output."""
    typer.echo(text)


def stop(message: str) -> NoReturn:
    """One sentence to standard error, exit code 2."""
    typer.echo(f"deepmf: {message}", err=True)
    raise typer.Exit(2)


def progress_bar(what: str) -> Callable[[Iterable[Any], int], Iterator[Any]]:
    """Wraps an iterable in a bar on standard error; silent where that is no terminal."""

    def show(items: Iterable[Any], total: int) -> Iterator[Any]:
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as bar:
            yield from bar.track(items, total=total)

    return show
