"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from deepmf.core.divergence import BETAS
from deepmf.data.features import ALL
from deepmf.data.scaling import SCALES
from deepmf.datasets.catalogue import CATALOGUE
from deepmf.fitting.recipes import NONE, RECIPES
from deepmf.fitting.registry import STARTS, known
from deepmf.io import Reading
from deepmf.io.labels import labels_file
from deepmf.runs.config import PATHS, Config, spec

READING, MODEL, STOPPING = "How to read the data", "What to fit", "How long and how hard"

Data = Annotated[
    str | None,
    typer.Argument(help="A file, or dataset:NAME (see deepmf datasets).", show_default=False),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the folder if deepmf made it.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; default: one per core.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="TOML file with settings; options win over it.")
]


def _option(
    kind: Any,
    flag: str,
    panel: str,
    text: str,
    metavar: str | None = None,
    values: Iterable[str] = (),
) -> Any:
    """An option; a shell completes its values where there are some."""

    def complete(begun: str) -> list[str]:
        return [value for value in values if value.startswith(begun)]

    return Annotated[
        kind | None,
        typer.Option(
            flag,
            help=text,
            rich_help_panel=panel,
            metavar=metavar,
            show_default=False,
            autocompletion=complete if values else None,
        ),
    ]


def _names(kind: str) -> str:
    return ", ".join(known(kind))


_PER_LAYER = "Once for all layers, or once per layer."

READING_OPTIONS: dict[str, Any] = {
    "variable": _option(str, "--variable", READING, "Which of a file's arrays to take."),
    "rows": _option(
        str,
        "--rows",
        READING,
        "What rows of a matrix are: features or samples.",
        values=("features", "samples"),
    ),
    "bands": _option(
        str,
        "--bands",
        READING,
        "Spectral axis of a plain cube: first or last.",
        values=("first", "last"),
    ),
    "image": _option(str, "--image", READING, "Shape of pictures in a matrix.", "ROWSxCOLS"),
    "order": _option(
        str, "--order", READING, "Pixels run along rows (C) or down columns (F).", values=("C", "F")
    ),
    "wavelengths": _option(str, "--wavelengths", READING, "One wavelength per band.", "FILE"),
    "bad_bands": _option(
        str, "--bad-bands", READING, "Bands to leave out, as 1-3,103; none keeps all."
    ),
    "nodata": _option(
        float, "--nodata", READING, "Value of pixels without data, in all their bands."
    ),
    "features": _option(str, "--features", READING, "Names of the features, by line.", "FILE"),
    "samples": _option(str, "--samples", READING, "Names of the samples, by line.", "FILE"),
    "index": _option(str, "--index", READING, "Column of a table that names the rows.", "COLUMN"),
    "drop": _option(str, "--drop", READING, "Columns of a table to leave out.", "A,B,..."),
}
"""Answers to what a file leaves open, see `deepmf.io.Reading`."""

FIT_OPTIONS: dict[str, Any] = {
    "scale": _option(
        str,
        "--scale",
        READING,
        f"Scale samples first: {', '.join(SCALES)}, none; default: counts as the recipe says.",
        values=(*SCALES, NONE),
    ),
    "max_features": _option(
        str,
        "--max-features",
        READING,
        f"Keep the features of largest variance, once scaled: how many, or {ALL}; default: all, or "
        "of counts as the recipe says.",
        "N",
        values=(ALL,),
    ),
    "truth": _option(
        list[str],
        "--truth",
        READING,
        "True components: .mat, .npz, .csv, .hdr or FILE.mat:NAME; repeat.",
        "FILE",
    ),
    "labels": _option(
        str,
        "--labels",
        READING,
        "Classes of the samples, to measure clusters by: a file with one per line, FILE.npy, "
        "FILE.npz:ARRAY, or a column of obs in an .h5ad file.",
        "FILE|COLUMN",
    ),
    "recipe": _option(
        str,
        "--recipe",
        MODEL,
        f"Settings for a kind of data: {', '.join(RECIPES)}, none; other options win over them. "
        "Default: by what was read.",
        values=(*RECIPES, NONE),
    ),
    "ranks": _option(str, "--ranks", MODEL, "Components of each layer, as 6,4,2.", "R1,R2,..."),
    "constraint_W": _option(
        list[str],
        "--constraint-W",
        MODEL,
        f"Set of W: {_names('constraint')}; as grouped-sparse:0.7, box:lower=0,upper=1. "
        f"{_PER_LAYER}",
        values=known("constraint"),
    ),
    "constraint_H": _option(
        list[str], "--constraint-H", MODEL, f"Set of H. {_PER_LAYER}", values=known("constraint")
    ),
    "fixed": _option(
        str,
        "--fix-W",
        MODEL,
        "Components to hold in W of layer 1, from a file as for --truth.",
        "FILE",
    ),
    "regularizer_W": _option(
        list[str],
        "--regularizer-W",
        MODEL,
        f"Penalty on W: {_names('regularizer')}, none; as l1:0.1. {_PER_LAYER}",
        values=known("regularizer"),
    ),
    "regularizer_H": _option(
        list[str],
        "--regularizer-H",
        MODEL,
        f"Penalty on H. {_PER_LAYER}",
        values=known("regularizer"),
    ),
    "min_volume": _option(
        float,
        "--min-volume",
        MODEL,
        "Minimum volume on W; 1 is the weight of the likelihood.",
        "WEIGHT",
    ),
    "init": _option(
        list[str],
        "--init",
        MODEL,
        f"{', '.join(STARTS)}; repeat to keep the best of several. "
        "Default: the recipe's, or k-means.",
        values=STARTS,
    ),
    "weights": _option(
        str,
        "--weights",
        MODEL,
        "observed: what is missing in some bands or cells is left out, and all else fitted.",
        values=("observed",),
    ),
    "hierarchy": _option(
        str,
        "--hierarchy",
        MODEL,
        "What deeper layers factor: components or codes. Default: the recipe's, or components.",
        values=("components", "codes"),
    ),
    "normalize": _option(
        str,
        "--normalize",
        MODEL,
        "Size that is one where the model leaves it open: sum or norm of components, or codes. "
        "Default: the recipe's, or sum.",
        values=("sum", "norm", "codes"),
    ),
    "beta_loss": _option(
        list[str],
        "--beta-loss",
        MODEL,
        "Distance that is minimized: frobenius (squared errors), kullback-leibler (for counts), "
        "itakura-saito (for powers), or a number from 0 to 2; default frobenius. With others, "
        f"recipes do not scale counts. {_PER_LAYER}",
        "NAME|NUMBER",
        values=tuple(BETAS),
    ),
    "augment": _option(
        int,
        "--augment",
        MODEL,
        "Sweeps of each layer before the next is added. Default: until it settles.",
    ),
    "allow_negative": Annotated[
        bool | None,
        typer.Option(
            "--allow-negative",
            help="Fit negative data by nonnegative factors.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ],
    "solver": _option(
        str, "--solver", STOPPING, f"{_names('solver')}; default fpgm.", values=known("solver")
    ),
    "max_iter": _option(int, "--max-iter", STOPPING, "Most sweeps; default 500."),
    "tol": _option(
        float, "--tol", STOPPING, "Least decrease per sweep. Default: the recipe's, or 1e-4."
    ),
    "max_time": _option(float, "--max-time", STOPPING, "Stop after this many seconds."),
    "inner_iter": _option(int, "--inner-iter", STOPPING, "Most steps per block; default 10."),
    "inner_tol": _option(float, "--inner-tol", STOPPING, "Accuracy per block; default 0.01."),
    "extrapolate": Annotated[
        bool | None,
        typer.Option(
            "--extrapolate/--plain",
            help="Extrapolate between sweeps; default on.",
            rich_help_panel=STOPPING,
            show_default=False,
        ),
    ],
    "device": _option(str, "--device", STOPPING, "Where to work: cuda, or cpu through PyTorch."),
}
"""Settings of a fit, see `deepmf.factorize`; ``model`` and the seed differ between commands."""

MODEL_OPTION = _option(
    str,
    "--model",
    MODEL,
    f"{_names('model')}; with weights, layer-centric:lam=1. "
    "Default: the recipe's, or layer-centric:lam=0.3.",
    values=known("model"),
)


def takes(options: Mapping[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options, gathered in its argument ``given``."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        kept = [p for p in own.parameters.values() if p.name != "given"]
        keyword = inspect.Parameter.KEYWORD_ONLY
        more = [
            inspect.Parameter(name, keyword, default=None, annotation=annotation)
            for name, annotation in options.items()
        ]

        @functools.wraps(command)
        def wrapped(**arguments: Any) -> None:
            given = {name: arguments.pop(name) for name in options}
            command(**arguments, given=given)

        kept = [p.replace(kind=keyword) for p in kept]
        wrapped.__signature__ = own.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
        wrapped.__annotations__ = {p.name: p.annotation for p in [*kept, *more]}
        return wrapped

    return decorate


def reading_of(given: Mapping[str, Any]) -> Reading:
    """The answers among a command's options."""
    answers: dict[str, Any] = {name: given.get(name) for name in READING_OPTIONS}
    answers |= {name: absolute(given.get(name)) or None for name in PATHS}
    answers["image"] = _shape(given.get("image"))
    return Reading(**answers)


def config_of(data: str | None, config: Path | None, given: Mapping[str, Any]) -> Config:
    """Settings from a command's options, on top of those of a file, for data that are there."""
    base = Config("") if config is None else Config.from_toml(config)
    answers = {k: v for k, v in vars(reading_of(given)).items() if v is not None}
    chosen = Config(
        path=absolute(data) or base.path,
        truth=tuple(absolute(t) for t in given.get("truth") or ()) or base.truth,
        labels=_classes(given.get("labels")) or base.labels,
        fixed=absolute(given.get("fixed")) or base.fixed,
        scale=given.get("scale") or base.scale,
        max_features=_number(given.get("max_features"), base.max_features),
        reading=Reading(**{**vars(base.reading), **answers}),
        fit=base.fit,
    )
    chosen.check_data()
    entry = CATALOGUE.get(chosen.path.removeprefix("dataset:"))
    if entry is not None:
        chosen = replace(chosen, fit={"ranks": list(entry.ranks), **chosen.fit})
    return chosen.updated(**_settings(given))


def _number(text: str | None, otherwise: int | str | None) -> int | str | None:
    """An integer where the text is one; another value where there is no text."""
    if text is None:
        return otherwise
    return int(text) if text.isascii() and text.isdecimal() else text


def _classes(source: str | None) -> str | None:
    """A file by its absolute path, or the name of a column."""
    return absolute(source) if source and labels_file(source) else source


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `factorize` among a command's options."""
    plain = ("augment", "allow_negative", "max_iter", "tol", "max_time", "inner_iter", "inner_tol")
    named = ("recipe", "hierarchy", "normalize", "weights", "extrapolate", "device")
    settings = {name: given.get(name) for name in (*plain, *named)}
    settings["ranks"] = rank_list(given.get("ranks"))
    settings["random_state"] = given.get("seed")
    settings["init"] = _all_or_each(given.get("init") or [])
    for name in ("model", "solver"):
        settings[name] = None if given.get(name) is None else spec(name, given[name])
    settings["beta_loss"] = beta_loss_of(given)
    for name in ("constraint_W", "constraint_H", "regularizer_W", "regularizer_H"):
        settings[name] = _all_or_each([spec(name, text) for text in given.get(name) or ()])
    if given.get("min_volume") is not None:
        if settings["regularizer_W"] is not None:
            raise ValueError("Give --min-volume or --regularizer-W, not both.")
        settings["regularizer_W"] = {"name": "min-volume", "weight": given["min_volume"]}
    return settings


def _all_or_each(values: list[Any]) -> Any:
    """None, one for all layers, or one for each."""
    return values if len(values) > 1 else values[0] if values else None


def beta_loss_of(given: Mapping[str, Any]) -> Any:
    """Names and numbers from ``kullback-leibler,1.5`` or several options."""
    texts: list[str] = given.get("beta_loss") or []
    return _all_or_each([_beta(part) for text in texts for part in text.split(",")])


def _beta(text: str) -> str | float:
    """A number where the text is one."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _shape(text: str | None) -> tuple[int, int] | None:
    """Rows and columns from ``19x19``."""
    if text is None:
        return None
    parts = text.lower().replace(",", "x").split("x")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise ValueError(f"--image must be ROWSxCOLS such as 77x77, got {text!r}.")
    return int(parts[0]), int(parts[1])


def rank_list(text: str | None) -> list[int] | None:
    """Integers from ``6,4,2``."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--ranks must be integers such as 6,4,2, got {text!r}.") from None


def absolute(path: str | None) -> str:
    """The absolute path, so that a run can be repeated from any folder."""
    if not path or path.startswith("dataset:"):
        return path or ""
    return str(Path(os.path.expanduser(path)).absolute())
