"""The five models the paper compares, and ours, under one setting."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deepmf._factorize import factorize
from deepmf.core.quadratic import Array
from deepmf.factorization import Factorization
from deepmf.fitting.control import Callback
from deepmf.losses import LayerCentric, Loss
from deepmf.solvers import FastProjectedGradient

DEEP: dict[str, str] = {
    "MMF": "multilayer",
    "LC-DMF": "layer-centric",
    "DC-DMF": "data-centric",
    "Tri-DMF": "trigeorgis",
}
"""The paper's deep models, in the order of its tables."""

WEIGHTED: dict[str, Loss] = {"layer-centric": LayerCentric(lam=10.0)}
"""The paper's weights, where they are not the library's own."""

SINGLE = "single-layer"
IMPROVED = "LC-DMF+"
"""The layer-centric model with what was found to help; each experiment says what that is."""


@dataclass(frozen=True)
class Setting:
    """Settings that all models of an experiment share."""

    ranks: tuple[int, ...]
    sweeps: int
    init: object
    augment: int = 0
    constraint_W: object = None
    constraint_H: object = None
    regularizer_W: object = None
    allow_negative: bool = False


def fit_deep(X: Array, model: str, s: Setting, watch: Callback | None = None) -> Factorization:
    """One deep model; sweeps that augment the start count among its sweeps, as in the paper."""
    joint = model != "multilayer"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # advice on settings that are the paper's own
        return factorize(
            X,
            s.ranks,
            model=WEIGHTED.get(model, model),
            constraint_W=s.constraint_W,
            constraint_H=s.constraint_H,
            regularizer_W=s.regularizer_W,
            init=s.init,
            augment=s.augment if joint else 0,
            max_iter=max(s.sweeps - (s.augment if joint else 0), 0),
            tol=0,
            random_state=0,
            allow_negative=s.allow_negative,
            callbacks=watch,
            extrapolate=False,
            solver=FastProjectedGradient(scaled=False),  # the paper's steps
        )


def fit_single(X: Array, s: Setting, layer: int, watch: Callback | None = None) -> Factorization:
    """Single-layer NMF of one layer's rank, from the same kind of start, under its own settings."""

    def own(setting: Any) -> Any:
        return setting[layer] if isinstance(setting, Sequence) else setting

    alone = replace(
        s,
        ranks=(s.ranks[layer],),
        augment=0,
        constraint_W=own(s.constraint_W),
        constraint_H=own(s.constraint_H) if layer == 0 else None,
        regularizer_W=own(s.regularizer_W),
    )
    return fit_deep(X, "layer-centric", alone, watch)
