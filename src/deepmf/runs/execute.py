"""Executes the settings of a run."""

from __future__ import annotations

import importlib.metadata
import inspect
import platform
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from scipy import sparse

from deepmf._factorize import factorize
from deepmf._utils.compile_clock import clock
from deepmf._utils.messages import Message, counted, message_of, setting
from deepmf.constraints import Fixed
from deepmf.data.anndata_objects import FORMAT as ANNDATA
from deepmf.data.dataset import Dataset, Truth
from deepmf.data.features import ALL
from deepmf.data.on_disk import as_on_disk
from deepmf.data.preparation import facts_of, words_of
from deepmf.data.scaling import are_counts
from deepmf.datasets import catalogue
from deepmf.factorization import Factorization
from deepmf.fitting.checkpoint import Checkpoint
from deepmf.fitting.control import Callback
from deepmf.fitting.diagnostics.finding import FindingsWarning
from deepmf.fitting.interrupt import InterruptedWarning
from deepmf.fitting.problem import build_problem, check_ranks
from deepmf.fitting.recipes import (
    NONE,
    RECIPES,
    Recipe,
    preparation_of,
    recipe_of,
    with_recipe,
)
from deepmf.io import read
from deepmf.io.labels import read_labels
from deepmf.io.truth import read_truth
from deepmf.metrics import relative_residuals
from deepmf.runs.config import FIT_DEFAULTS, Config, ConfigError
from deepmf.runs.measures import layer_measures
from deepmf.runs.run import Run

_OF_PROBLEM = inspect.signature(build_problem).parameters
_OF_RECIPES = (
    "model",
    "constraint_W",
    "constraint_H",
    "regularizer_W",
    "regularizer_H",
    "hierarchy",
    "normalize",
    "beta_loss",
    "init",
    "tol",
)
"""Settings that recipes fill in."""

_BARCODE = re.compile(r"[ACGTN]{10,}")
"""Name of a cell by its sequence."""

_UNLIKE = 100
"""Ratio of the data to known components above which their units seem to differ."""

_VERSIONS = ("deepmf", "numpy", "scipy", "scikit-learn", "numba")


def open_data(config: Config) -> Dataset:
    """The data, prepared as asked, with the truth and the classes from files beside it."""
    config.check_data()
    if config.path.startswith("dataset:"):
        said = [name for name, answer in vars(config.reading).items() if answer is not None]
        if said:
            raise ConfigError(f"{config.path} knows how it is read; leave out {setting(said[0])}.")
        data = catalogue.load(config.path.removeprefix("dataset:"))
    else:
        gaps = config.fit.get("weights") == "observed" or config.reading.gaps
        data = read(config.path, replace(config.reading, gaps=gaps))
    if config.truth:
        truths = [truth for file in config.truth for truth in read_truth(file, data)]
        data = replace(
            data,
            W=[t.W for t in truths],
            A=[t.A for t in truths],
            H=[],
            names=[list(t.names) for t in truths],
            notes=[*data.notes, *(t.note for t in truths if t.note)],
        )
    if config.labels is not None:
        data = replace(data, labels=read_labels(config.labels, data))
    preparation = preparation_of(
        recipe_for(config, data), config.scale, config.max_features, config.fit.get("beta_loss")
    )
    X, layout, _ = preparation.of(data.X, data.layout, config.fit.get("weights"))
    return data.prepared(X, layout)


def execute(
    config: Config,
    data: Dataset | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> Run:
    """Fit the data as the settings say.

    Parameters
    ----------
    config : Config
        The settings.
    data : Dataset, optional
        What `open_data` gave, where it has been opened already.
    callbacks : sequence of callables
        Called after every sweep, as in `factorize`.
    checkpoint : Checkpoint, optional
        As in `factorize`; the one in the settings is for one fit alone, and is left to the caller.
    """
    data = open_data(config) if data is None else data
    if config.fixed is not None and data.layout.kept is not None:
        raise ConfigError(
            f"Components can be held only where all features are kept: set "
            f"{setting(max_features=ALL)}."
        )
    arguments: dict[str, Any] = {"random_state": 0, **config.arguments(), "checkpoint": None}
    recipe = recipe_for(config, data)
    depth = len(check_ranks(arguments["ranks"]))
    named = {name: arguments.get(name) for name in _OF_RECIPES}
    held = config.fixed is not None
    arguments |= {**with_recipe(recipe, named, depth, held), "recipe": NONE}
    notes = list(data.notes)
    began = clock()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if config.fixed is not None:
            arguments["constraint_W"], said_of_held = _with_held(config.fixed, data, arguments)
            notes += said_of_held
        given = {**arguments, "callbacks": list(callbacks), "checkpoint": checkpoint}
        f = factorize(data, **given)
    f = replace(f, layout=data.layout)
    seconds = clock() - began
    truth = truth_by_layer(data, f.ranks)
    apart = (InterruptedWarning, FindingsWarning)
    said = [w.message for w in caught if not issubclass(w.category, apart)]
    notes += dict.fromkeys(message_of(w) for w in said if isinstance(w, Warning))
    notes += [finding.sentence for finding in f.findings]
    if config.truth:
        notes += unused(data, truth, f.ranks)
    return Run(
        name=data.name,
        f=f,
        config=resolved(config, f, {**arguments, "recipe": _name_of(recipe)}).to_toml(),
        facts={**_chosen(recipe, data), **facts(config.path, data, seconds)},
        truth=truth,
        residual=relative_residuals(data.X, f.W[0], f.H[0]),
        notes=notes,
        measured=layer_measures(f, data),
    )


def _with_held(
    file: str, data: Dataset, arguments: Mapping[str, Any]
) -> tuple[list[Any], list[str]]:
    """The sets of W by layer, the first with a file's components held; and what to say of it.

    These are scaled where the set asks for a scale, as for the simplex: codes make up for it.
    """
    settings = {name: value for name, value in arguments.items() if name in _OF_PROBLEM}
    layers = build_problem(**settings).layers
    first, *others = (layer.constraint_W for layer in layers)
    known = read_truth(file, data)[0]
    W, notes = known.W, [known.note] if known.note else []
    scales = first.scales(W)
    if scales is not None:
        way = f"; {setting(constraint_W='nonnegative')} keeps the units of the file"
        notes.append(
            Message(
                f"The components held are divided by their sums, as the {first.name} asks, and "
                f"the codes are larger by as much{way if layers[0].regularizer_W is None else ''}."
            )
        )
        return [Fixed(W / scales, first), *others], notes
    ratio = _typical_size(data.X) / max(_typical_size(W), np.finfo(np.float64).tiny)
    if not 1 / _UNLIKE < ratio < _UNLIKE:
        notes.append(
            f"The data are about {ratio:.2g} times as large as the components held: they may be "
            f"in other units, such as reflectances times 10000."
        )
    return [Fixed(W, first), *others], notes


def _typical_size(X: Any) -> float:
    """The median norm of some columns."""
    some = np.unique(np.linspace(0, X.shape[1] - 1, 256).astype(np.intp))
    if sparse.issparse(X):
        columns = X.tocsc()[:, some].toarray()
    else:
        columns = np.asarray(as_on_disk(X)[:, some])
    return float(np.median(np.sqrt(np.nansum(np.square(columns, dtype=np.float64), axis=0))))


def recipe_for(config: Config, data: Dataset) -> Recipe | None:
    """The recipe that the settings name, or else the one for data of this kind."""
    if "recipe" in config.fit:
        return recipe_of(config.fit["recipe"])
    return RECIPES.get(kind_of_data(data))


def kind_of_data(data: Dataset) -> str:
    """The recipe for data like these, by what was read; empty where none is known."""
    layout = data.layout
    scaling = "" if layout.scaling is None else layout.scaling.how
    if layout.kind == "scene":
        return "scene"
    if layout.kind == "pictures":
        return "images"
    barcodes = layout.samples is not None and bool(_BARCODE.match(str(layout.samples[0])))
    if layout.source.format == ANNDATA or barcodes or scaling == "log":
        return "cells"
    words = sparse.issparse(data.X) and (are_counts(data.X) or scaling.endswith("tfidf"))
    return "topics" if words else ""


def _name_of(recipe: Recipe | None) -> str:
    return NONE if recipe is None else recipe.name


def settings_line(config: Config, data: Dataset) -> str:
    """One line on the recipe and the preparation of a fit."""
    recipe, prepared = recipe_for(config, data), words_of(data.layout)
    said = f" Data: {prepared}." if prepared else ""
    if recipe is None:
        names = f"{', '.join([*RECIPES][:-1])} or {[*RECIPES][-1]}"
        return Message(f"No recipe: {setting('recipe')} has settings for {names}.{said}")
    way = "" if "recipe" in config.fit else f"; {setting(recipe=NONE)} turns it off"
    return Message(f"Recipe {recipe.name}, for {recipe.data}{way}.{said}")


def _chosen(recipe: Recipe | None, data: Dataset) -> dict[str, str]:
    """The recipe and the preparation as facts of a run."""
    return {**({"recipe": recipe.name} if recipe else {}), **facts_of(data.layout)}


def truth_by_layer(data: Dataset, ranks: Sequence[int]) -> dict[int, Truth]:
    """A truth belongs to the first layer, not yet taken, of as many components."""
    found: dict[int, Truth] = {}
    for known in data.truths:
        for layer, rank in enumerate(ranks, start=1):
            if rank == len(known.names) and layer not in found:
                found[layer] = known
                break
    return found


def unused(data: Dataset, truth: Mapping[int, Truth], ranks: Sequence[int]) -> list[str]:
    """Warning about true components that no layer is compared with."""
    used = [known.W for known in truth.values()]
    return [
        f"No layer of {', '.join(map(str, ranks))} is compared with the truth of "
        f"{counted(len(names), 'component')}: its number of components must be a layer's."
        for W, names in zip(data.W, data.names)
        if not any(W is known for known in used)
    ]


def resolved(config: Config, f: Factorization, arguments: dict[str, Any]) -> Config:
    """The settings with every choice spelled out, so that new defaults change nothing.

    Components that are held are written out. What is the same for all layers is said once, so that
    other ranks can be tried. The recipe is named, but has nothing left to say.
    """
    by, kept = f.layout.scaling, f.layout.kept
    config = replace(
        config,
        scale=by.how if by else NONE,
        max_features=config.max_features if kept is None else int(kept.sum()),
    )
    chosen = f.problem.spec()
    for name, values in chosen.items():
        if name.startswith(("constraint", "regularizer")) and values.count(values[0]) == f.depth:
            chosen[name] = NONE if values[0] is None else values[0]
    chosen["beta_loss"] = f.problem.beta_loss
    return replace(config, fixed=None, fit={**FIT_DEFAULTS, **arguments, **chosen})


def facts(path: str, data: Dataset, seconds: float) -> dict[str, str]:
    """Short facts about a run."""
    m, n = data.X.shape
    versions = {name: importlib.metadata.version(name) for name in _VERSIONS}
    return {
        "data": path,
        "size": f"{m} features x {n} samples",
        "type": str(data.X.dtype),
        "seconds": f"{seconds:.2f}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        **versions,
    }
