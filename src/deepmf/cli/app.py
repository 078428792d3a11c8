"""The commands."""

from __future__ import annotations

from typing import Annotated

import typer

import deepmf
from deepmf.cli.apply import apply
from deepmf.cli.compare import compare
from deepmf.cli.console import say
from deepmf.cli.datasets import datasets
from deepmf.cli.demo import demo
from deepmf.cli.fit import fit
from deepmf.cli.info import info
from deepmf.cli.paper import paper
from deepmf.cli.report import report
from deepmf.cli.scan import scan

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False)
for command in (fit, apply, scan, report, compare, info, datasets, demo):
    app.command()(command)
app.add_typer(paper, name="paper")


def _version(asked: bool) -> None:
    if asked:
        say(f"deepmf {deepmf.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Deep matrix factorization: hierarchies of layers with one consistent loss.

    Start with deepmf info FILE, then deepmf fit FILE --ranks 6,4,2 -o RUN; open RUN/report.html.
    """
