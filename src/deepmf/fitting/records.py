"""Records of a fit: its stages and trials, and all that it depends on between two sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from deepmf.core.majorized import Majorized
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.separable import Separable
from deepmf.core.state import DataSurrogates, State
from deepmf.data.panels import Panels
from deepmf.fitting.calibration import Calibration, Settled
from deepmf.fitting.history import Progress
from deepmf.fitting.problem import Problem


@dataclass(eq=False)
class Stage:
    """A run of sweeps over the same blocks."""

    calibration: Calibration
    rows: list[Progress] = field(default_factory=list)
    reason: str | None = None
    """Reason of the end; None while the fit runs."""


@dataclass(eq=False)
class Trial:
    """A layer fitted alone from one of the starts."""

    start: int
    state: State
    size: float
    """||W_l||^2 of its start."""
    codes: Any = None
    """H_1 while another trial's is in the panels."""
    stages: list[Stage] = field(default_factory=list)


class Rival(NamedTuple):
    """A fit of a layer from another start than the one that was kept."""

    start: int
    excess: float
    """Its objective minus the lowest, as a fraction of the lowest's loss."""
    W: Array


class Alone(NamedTuple):
    """A layer's flat fit to the data, before layers are swept together."""

    error: float
    """||X - W_l F_l||^2 / ||X||^2."""
    W: Array
    rivals: list[Rival]


class Place(NamedTuple):
    """Data of a layer while it is fitted alone."""

    panels: Panels
    problem: Problem
    state: State
    """The layers before, where the layer's data are one of their components."""
    number: int
    """The layer, counted from 0."""

    @property
    def layer(self) -> int:
        """The layer's number in the problem and in the state."""
        return self.state.depth

    def copy(self) -> State:
        """A state to which the layer is added."""
        return State(list(self.state.W), list(self.state.H), self.state.data)


@dataclass(eq=False)
class Moment:
    """State of a fit between two sweeps: all that the rest of the fit depends on."""

    state: State = field(default_factory=State)
    sizes: list[float] = field(default_factory=list)
    """||W_{l-1}||^2 for each layer, of the basis before as it was when the layer was added."""
    settled: list[Settled] = field(default_factory=list)
    trials: list[Trial | None] = field(default_factory=list)
    """Trials of the layer being added; None for a start that has failed."""
    at: int = 0
    """The trial whose codes are in the panels."""
    chosen: list[Trial] = field(default_factory=list)
    """The trial that each layer came from, without its state and codes."""
    joint: Stage | None = None
    merged: Array | None = None
    """A start for the next layer, from the components and codes of the one before."""
    alone: list[Alone] = field(default_factory=list)
    layer_codes: list[Array] = field(default_factory=list)
    """Codes of each layer so far, for depth over codes and for layers fitted flat."""
    codes: Any = None
    codes_before: Any = None
    extrapolation: dict[str, Any] | None = None
    random: Any = None
    """The generator's state."""
    time: float = 0.0


def _quadratic(terms: list[Any], C: Array, const: float) -> Quadratic:
    """A quadratic from a checkpoint, whose tuples have become lists."""
    return Quadratic(tuple((A, B) for A, B in terms), C, const)


def _separable(powers: dict[str, Any], log: float) -> Separable:
    """A separable function from a checkpoint, whose powers have become text."""
    return Separable({float(p): a for p, a in powers.items()}, log)


RECORDS: dict[str, Callable[..., Any]] = {
    **{record.__name__: record for record in (Moment, Trial, Stage, Calibration, Settled)},
    **{record.__name__: record for record in (Alone, Rival)},
    **{record.__name__: record for record in (Progress, State, DataSurrogates)},
    "Quadratic": _quadratic,
    "Separable": _separable,
    "Majorized": lambda separable, parts, quadratic: Majorized(separable, (), quadratic),
}
"""Constructors of the records in a checkpoint, by name."""
