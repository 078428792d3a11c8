"""Commands and how they speak."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import deepmf
from deepmf.cli.console import progress_bar, say, stop

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    help="Deep matrix factorization: hierarchies of layers with one consistent loss.",
)
paper = typer.Typer(no_args_is_help=True, help="Run the paper's experiments again.")
app.add_typer(paper, name="paper")

Out = Annotated[
    Path, typer.Option("--out", "-o", help="Folder for tables, figures, configuration.")
]
Sweeps = Annotated[int, typer.Option("--max-iter", min=1, help="Sweeps of each fit.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; default: one per core.")]
Data = Annotated[
    str | None, typer.Option("--data", help="Folder with the data; default: $DEEPMF_DATA.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Write into a folder that has files.")]


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
    """Deep matrix factorization: hierarchies of layers with one consistent loss."""


@app.command("demo")
def demo_command(out: Annotated[Path, typer.Option("--out", "-o")] = Path("demo")) -> None:
    """Fit the built-in simulated scene with every model and leave a report."""
    from deepmf import demo

    raise typer.Exit(demo.main(["--out", str(out)]))


@paper.command("synthetic")
def paper_synthetic(
    out: Out = Path("paper-synthetic"),
    runs: Annotated[int, typer.Option(min=1, help="Data sets per noise level.")] = 25,
    max_iter: Sweeps = 500,
    seed: Annotated[int, typer.Option(min=0, help="Of the first data set.")] = 0,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
) -> None:
    """Two layers in three dimensions: MRSA of all models over ten noise levels."""
    from deepmf.paper import synthetic
    from deepmf.paper.folder import Folder

    _report(
        lambda: synthetic.run(
            Folder(out, overwrite), runs, max_iter, seed, jobs, progress_bar("data sets")
        ),
        out,
    )


@paper.command("urban")
def paper_urban(
    out: Out = Path("paper-urban"),
    data: Data = None,
    scene: Annotated[
        list[str] | None,
        typer.Option(help="urban, samson, samson-deep, jasper, simulated-1, ...; may be repeated."),
    ] = None,
    cube: Annotated[Path | None, typer.Option(help="A cube of your own (.mat, .npy).")] = None,
    truth: Annotated[
        list[Path] | None, typer.Option(help="Its true spectra (.mat with M); may be repeated.")
    ] = None,
    ranks: Annotated[str, typer.Option(help="Its ranks; default: the truths' numbers.")] = "",
    max_iter: Sweeps = 500,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
) -> None:
    """Hyperspectral scenes: MRSA tables, endmembers, and the hierarchy of every model."""
    from deepmf.paper import scenes
    from deepmf.paper.folder import Folder

    sources = [scenes.Source(name, data) for name in scene or ([] if cube else ["urban"])]
    if cube is not None:
        own = scenes.Source(cube.stem, None, str(cube), tuple(map(str, truth or ())), _ranks(ranks))
        sources.append(own)
    _report(
        lambda: scenes.run(Folder(out, overwrite), sources, max_iter, jobs, progress_bar("fits")),
        out,
    )


@paper.command("faces")
def paper_faces(
    out: Out = Path("paper-faces"),
    data: Data = None,
    max_iter: Sweeps = 500,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
) -> None:
    """CBCL faces: features of all models, error curves, sparsities."""
    from deepmf.paper import faces
    from deepmf.paper.folder import Folder

    _report(
        lambda: faces.run(Folder(out, overwrite), data, max_iter, jobs, progress_bar("fits")), out
    )


def _ranks(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part)
    except ValueError:
        stop(f"--ranks must be integers such as 6,4,2, got {text!r}.")


def _report(work: Callable[[], str], out: Path) -> None:
    """Run, print the summary; a user's mistake is one sentence and exit code 2."""
    try:
        text = work()
    except (ValueError, OSError, ImportError) as error:
        stop(str(error))
    say(text)
    say(f"Tables and figures are in {out}.")
