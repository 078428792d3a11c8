"""Names users write for models, constraints, regularizers, solvers and starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from deepmf import constraints, losses, regularizers, solvers
from deepmf._utils.messages import SettingError, in_python
from deepmf.core.parameters import Parametrized
from deepmf.core.quadratic import Array
from deepmf.data.panels import Panels
from deepmf.init import (
    Start,
    StartError,
    hierarchical,
    kmeans,
    merged,
    mv_dual,
    nfindr,
    nndsvd,
    random,
    snpa,
    vca,
)

MODELS = (losses.LayerCentric, losses.DataCentric, losses.Multilayer, losses.Trigeorgis)
CONSTRAINTS = (
    constraints.Unconstrained,
    constraints.Nonnegative,
    constraints.Box,
    constraints.Simplex,
    constraints.CappedSimplex,
    constraints.GroupedSparse,
    constraints.Fixed,
    constraints.OneParent,
    constraints.Transposed,
)
REGULARIZERS = (regularizers.MinVolume, regularizers.Ridge, regularizers.L1)
DEFAULT = "default"
"""The name of the library's own start."""

SOLVERS = (
    solvers.FastProjectedGradient,
    solvers.ProjectedGradient,
    solvers.HALS,
    solvers.Multiplicative,
)


def default_start(panels: Panels, rank: int, rng: np.random.Generator) -> Array:
    """Centers of clusters; extreme samples where there are too few clusters; else random.

    Random where entries are missing or weighted, too: centers of filled data tend to components
    that live where little is observed. In a list of starts it is used where all others fail.
    """
    if not panels.weighted:
        for start in (kmeans, snpa):
            with suppress(StartError):
                return start(panels, rank, np.random.default_rng(0))  # whatever the random state
    return random(panels, rank, rng)


def signed_default_start(panels: Panels, rank: int, rng: np.random.Generator) -> Array:
    """Random numbers: the default where W may be negative."""
    return random(panels, rank, rng)


DEFAULT_STARTS = (default_start, signed_default_start)

STARTS: dict[str, Start] = {
    DEFAULT: default_start,
    "snpa": snpa,
    "vca": vca,
    "nfindr": nfindr,
    "mv-dual": mv_dual,
    "hierarchical": hierarchical,
    "nndsvd": nndsvd,
    "k-means": kmeans,
    "merged": merged,
    "random": random,
}

_KINDS: dict[str, tuple[type[Parametrized], tuple[type[Parametrized], ...]]] = {
    "model": (losses.Loss, MODELS),
    "constraint": (constraints.Constraint, CONSTRAINTS),
    "regularizer": (regularizers.Regularizer, REGULARIZERS),
    "solver": (solvers.Solver, SOLVERS),
}

SETTINGS = {
    "model": "model",
    "solver": "solver",
    "constraint_W": "constraint",
    "constraint_H": "constraint",
    "regularizer_W": "regularizer",
    "regularizer_H": "regularizer",
}
"""Arguments of a fit that accept names, and the kind of each."""


class UnknownNameError(SettingError):
    """An unknown name."""


def known(kind: str, custom: Sequence[type[Parametrized]] = ()) -> dict[str, type[Parametrized]]:
    """The classes there are of a kind, by the names users write."""
    base, own = _KINDS[kind]
    return {cls.name or cls.__name__: cls for cls in (*own, *custom) if issubclass(cls, base)}


def resolve(kind: str, given: object, custom: Sequence[type[Parametrized]] = ()) -> Any:
    """The object meant by an instance, by a name, or by a spec ``{"name": ..., parameter: ...}``.

    Parameters
    ----------
    kind : {"model", "constraint", "regularizer", "solver"}
        What is looked for.
    given : object
        What the user wrote.
    custom : sequence of classes
        Further classes that may be named.
    """
    base, _ = _KINDS[kind]
    if isinstance(given, base):
        return given
    names = known(kind, custom)
    params: dict[str, Any] = {}
    name = given
    if isinstance(given, Mapping):
        params = {k: v for k, v in given.items() if k != "name"}
        name = given.get("name")
        if "constraint" in params:  # of a set that holds part of a factor
            params = {**params, "constraint": resolve("constraint", params["constraint"], custom)}
    if isinstance(name, str) and name in names:
        try:
            return names[name].from_spec(params)
        except TypeError:
            allowed = ", ".join(names[name].parameter_names()) or "none"
            if not params:
                raise ValueError(f"{kind} {name!r} needs parameters: {allowed}.") from None
            raise ValueError(
                f"{kind} {name!r} does not take {sorted(params)}; its parameters are: {allowed}."
            ) from None
    if isinstance(given, type) and issubclass(given, base):
        raise ValueError(
            f"{kind} got the class {given.__name__}; pass an instance, {given.__name__}()."
        )
    raise UnknownNameError(
        f"Unknown {kind} {given!r}: expected one of {', '.join(map(repr, names))}"
        + in_python(f", or an instance of deepmf's {base.__name__}")
        + "."
    )


def name_of_start(start: object) -> str:
    """The name that users write for a start; of a function of theirs its own."""
    named = next((name for name, known in STARTS.items() if known is start), None)
    return named or str(getattr(start, "__name__", type(start).__name__))


def resolve_start(given: object, signed: bool = False) -> Start:
    """The start meant by a name or a function; ``signed``: W may be negative."""
    if given is None or (isinstance(given, str) and given == DEFAULT):
        return DEFAULT_STARTS[signed]
    if isinstance(given, str) and given in STARTS:
        return STARTS[given]
    if callable(given):
        return given
    other = (
        ", a function start(panels, rank, rng) -> W, a list of such, or a pair of lists (Ws, Hs) "
        "with one matrix per layer"
    )
    raise SettingError(
        f"Unknown init {given if isinstance(given, str) else type(given).__name__!r}: "
        f"expected one of {', '.join(map(repr, STARTS))}{in_python(other)}."
    )
