"""History of a fit, sweep by sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from deepmf.core.quadratic import Array

DIVERGED = 10.0
"""Relative error, not squared, from which on its size says nothing: the fit diverged."""


@dataclass(frozen=True)
class Progress:
    """One row of the history, as callbacks receive it; errors are NaN where not known yet."""

    sweep: int
    """0 for the start, k after the k-th sweep; layers fitted alone have counts of their own."""
    objective: float
    layer_errors: Array
    """||W_{l-1} - W_l H_l||^2 / ||W_{l-1}^(0)||^2 for each layer."""
    data_errors: Array
    """||X - W_l H_l...H_1||^2 / ||X||^2 for each layer."""
    time: float
    """Seconds since the fit began."""
    layer: int | None = None
    """The layer being fitted alone, from 1; ``None`` when all are fitted together."""


@dataclass(frozen=True)
class History:
    """Rows 0 (the start) to n_iter, one array a column."""

    objective: Array
    layer_errors: Array
    data_errors: Array
    time: Array

    def __len__(self) -> int:
        return len(self.objective)

    def __getitem__(self, name: str) -> Array:
        """A column by name, ``history["objective"]``, as in a table."""
        return self.to_dict()[name]

    @classmethod
    def of(cls, rows: list[Progress]) -> History:
        """The history of one run of sweeps, from its rows."""
        return cls(
            np.array([p.objective for p in rows]),
            np.array([p.layer_errors for p in rows]),
            np.array([p.data_errors for p in rows]),
            np.array([p.time for p in rows]),
        )

    @classmethod
    def of_stages(
        cls, stages: list[list[Progress]], owners: Sequence[int] | None = None
    ) -> History:
        """The history of layers fitted one by one: row k holds each layer's own sweep k.

        ``owners`` has the stage of each layer, by default one for each. A layer that stopped
        earlier keeps its last values; objectives and durations add up.
        """
        owners = range(len(stages)) if owners is None else owners
        length = max(len(rows) for rows in stages)
        padded = [rows + [rows[-1]] * (length - len(rows)) for rows in stages]
        table = list(zip(*padded))  # table[k][i]: stage i's row k
        begins = [rows[0].time for rows in stages]
        return cls(
            np.array([sum(p.objective for p in row) for row in table]),
            np.array([[row[i].layer_errors[k] for k, i in enumerate(owners)] for row in table]),
            np.array([[row[i].data_errors[k] for k, i in enumerate(owners)] for row in table]),
            np.array([begins[0] + sum(p.time - t for p, t in zip(row, begins)) for row in table]),
        )

    def to_dict(self) -> dict[str, Array]:
        """Columns by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def not_finite(objective: float, sweep: int, layer: int | None) -> FloatingPointError:
    """The error that ends a fit whose objective is NaN or infinite; ``layer``: fitted alone."""
    where = "at the start" if sweep == 0 else f"after sweep {sweep}"
    alone = "" if layer is None else f" of layer {layer}"
    return FloatingPointError(
        f"The objective is {objective} {where}{alone}, so the fit cannot continue. Likely causes: "
        f"a model, constraint, regularizer or solver of your own that returns NaN or infinite "
        f"numbers (deepmf.checks finds it), or numbers too large for their type (scale X to order "
        f"1, lower the weights of regularizers, or pass X as float64)."
    )
