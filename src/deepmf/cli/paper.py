"""``deepmf paper``: the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from deepmf.cli.console import error_messages, progress_bar, say
from deepmf.cli.options import Jobs, Overwrite

paper = typer.Typer(no_args_is_help=True, help="Run the paper's experiments again.")

Out = Annotated[
    Path, typer.Option("--out", "-o", help="Folder for tables, figures, configuration.")
]
Sweeps = Annotated[int, typer.Option("--max-iter", min=1, help="Sweeps of each fit.")]
Data = Annotated[
    str | None, typer.Option("--data", help="Folder with the data; default: $DEEPMF_DATA.")
]


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

    bar = progress_bar("data sets")
    _write(out, overwrite, lambda f: synthetic.run(f, runs, max_iter, seed, jobs, bar))


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
    from deepmf.cli.options import rank_list
    from deepmf.paper import scenes

    sources = [scenes.Source(name, data) for name in scene or ([] if cube else ["urban"])]
    if cube is not None:
        with error_messages():
            own = tuple(rank_list(ranks or None) or ())
        truths = tuple(map(str, truth or ()))
        sources.append(scenes.Source(cube.stem, None, str(cube), truths, own))
    bar = progress_bar("fits")
    _write(out, overwrite, lambda f: scenes.run(f, sources, max_iter, jobs, bar))


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

    bar = progress_bar("fits")
    _write(out, overwrite, lambda f: faces.run(f, data, max_iter, jobs, bar))


@paper.command("kl")
def paper_kl(
    out: Out = Path("paper-kl"),
    data: Data = None,
    experiment: Annotated[
        list[str] | None,
        typer.Option(help="faces, topics or scenes; may be repeated. Default: all."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Random starts; the sequel has 35.")] = 3,
    max_iter: Annotated[
        int, typer.Option("--max-iter", min=2, help="Sweeps of each layer; the sequel has 1000.")
    ] = 100,
    multiplicative: Annotated[
        bool, typer.Option("--multiplicative", help="Plain multiplicative steps, as in the sequel.")
    ] = False,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
) -> None:
    """Kullback-Leibler divergence, of the sequel: deep against multilayer factorizations."""
    from deepmf.paper import divergences

    bar = progress_bar("fits")
    parts = experiment or divergences.PARTS
    _write(
        out,
        overwrite,
        lambda f: divergences.run(f, parts, data, runs, max_iter, multiplicative, jobs, bar),
    )


def _write(out: Path, overwrite: bool, work: Callable[[Path], str]) -> None:
    from deepmf.runs.folder import new_folder

    with error_messages():
        with new_folder(out, overwrite) as folder:
            text = work(folder)
        say(text)
        say(f"Tables and figures are in {out}.")
