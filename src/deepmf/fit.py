"""The fit: layers are added one by one, then swept together until they settle."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from deepmf.growth import Given, add_layer
from deepmf.history import History, Progress
from deepmf.init import Start, StartError
from deepmf.losses import Loss, Multilayer
from deepmf.momentum import Momentum
from deepmf.panels import Coding, Panels
from deepmf.parameters import check_integer, check_number
from deepmf.problem import Problem, check_against_data
from deepmf.quadratic import Array
from deepmf.state import State
from deepmf.sweep import Sweep, squared_errors
from deepmf.threads import single_blas

Callback = Callable[[Progress], object]
"""Called after every sweep; a true return value stops the fit."""

_GRAVITY = ("tol", "max_iter", "max_time", "callback", "diverged")

_CUT = ("max_time", "callback")
"""Reasons that end not only this run of sweeps but all that would follow."""

_DIVERGED = 1e8
"""Relative squared error at which a model without a loss of its own is given up."""


@dataclass(frozen=True)
class Control:
    """When to stop, and how hard to work on one block."""

    max_iter: int = 500
    tol: float = 1e-4
    max_time: float | None = None
    inner_iter: int = 10
    inner_tol: float = 0.01
    augment: int = 0
    """Sweeps of each layer alone before the next one is added."""
    extrapolate: bool = True
    """Whether sweeps begin ahead of where the last one ended, see `Momentum`."""
    callbacks: Sequence[Callback] | None = None

    def __post_init__(self) -> None:
        for name, least in (("max_iter", 0), ("inner_iter", 1), ("augment", 0)):
            check_integer(name, getattr(self, name), least)
        if not isinstance(self.extrapolate, bool | np.bool_):
            raise ValueError(f"extrapolate must be True or False, got {self.extrapolate!r}.")
        for name in ("tol", "inner_tol", "max_time"):
            if name != "max_time" or self.max_time is not None:
                check_number(name, getattr(self, name), 0)
        calls = self.callbacks
        if calls is not None and not (
            isinstance(calls, list | tuple) and all(map(callable, calls))
        ):
            raise ValueError(f"callbacks must be a function or a list of functions, got {calls!r}.")


@dataclass(frozen=True)
class Fit:
    """What a fit leaves: the small side, layer weights, H_1's last problem, and how it went."""

    state: State
    weights: Array
    coding: Coding
    history: History
    stop_reason: str
    start: int
    """Which of the starts it came from."""


def fit(
    panels: Panels,
    problem: Problem,
    starts: Sequence[Start | Given],
    control: Control,
    rng: np.random.Generator,
) -> Fit:
    """The fit from each start in turn; the one with the lowest objective.

    All are weighted as the first one was when it began, so that their objectives compare.
    """
    check_against_data(problem, panels)
    began = time.perf_counter()
    best: Fit | None = None
    codes = panels.get_codes()
    like: list[_Stage] = []
    failure: StartError | None = None
    for number, start in enumerate(starts):
        if best is not None and best.stop_reason in _CUT:
            break
        try:
            stages, state = _fit_once(_Run(panels, problem, control, began), start, rng, like)
        except StartError as error:
            failure = error
            continue
        like = like or stages
        done = _finished(problem, stages, state, number)
        if best is None or not best.history.objective[-1] <= done.history.objective[-1]:
            best, codes = done, panels.get_codes()
    if best is None:
        raise failure or StartError("There is no start to fit from.")
    if panels.get_codes() is not codes:  # another start was fitted after the best one
        panels.set_codes(codes)
    if best.stop_reason == "max_iter" and control.tol > 0 and control.max_iter > 0:
        _warn_not_converged(problem, control)
    return best


def _fit_once(
    run: _Run, start: Start | Given, rng: np.random.Generator, like: list[_Stage]
) -> tuple[list[_Stage], State]:
    """Algorithm 1 (multilayer) or Algorithms 2 and 3 (all layers in turn)."""
    problem, control = run.problem, run.control
    joint, depth = problem.loss.joint, len(problem.layers)
    alone = control.augment if joint else control.max_iter
    models: list[Sweep | None] = [stage.sweep for stage in like]
    models = models or [None] * (depth + 1)
    stages: list[_Stage] = []
    for k in range(depth):
        add_layer(run.panels, run.state, problem, start, rng)
        run.sizes.append(float(np.sum(run.state.W[k] ** 2)))
        if not joint or alone:
            cut = any(stage.reason in _CUT for stage in stages)
            limit, model = 0 if cut else alone, models[len(stages)]
            stages.append(run.sweeps(Multilayer(), [k], limit, model, record=not joint))
    if joint:
        model = models[len(stages)]
        stages.append(run.sweeps(problem.loss, range(depth), control.max_iter, model, record=True))
    return stages, run.state


def _finished(problem: Problem, stages: list[_Stage], state: State, start: int) -> Fit:
    joint = problem.loss.joint
    main = stages[-1:] if joint else stages
    coder = main[0].sweep  # of the stage that coded the data
    return Fit(
        state,
        coder.weights if joint else np.ones(state.depth),
        coder.coding(),
        History.of(main[0].rows) if joint else History.of_stages([s.rows for s in main]),
        max((stage.reason for stage in main), key=_GRAVITY.index),
        start,
    )


class _Stage(NamedTuple):
    """A run of sweeps over the same blocks."""

    rows: list[Progress]
    reason: str
    sweep: Sweep


class _Run:
    """The state of a fit and its clock."""

    def __init__(self, panels: Panels, problem: Problem, control: Control, began: float) -> None:
        self.panels, self.problem, self.control = panels, problem, control
        self.state = State(panels.norm2)
        self.sizes = [panels.norm2]  # ||W_{l-1}^(0)||^2, of each basis as it was first made
        self.began = began

    @single_blas()
    def sweeps(
        self, loss: Loss, layers: Sequence[int], max_iter: int, like: Sweep | None, record: bool
    ) -> _Stage:
        """Sweep some layers until one of the stopping rules applies."""
        c = self.control
        sweep = Sweep(
            self.panels,
            self.state,
            self.problem,
            loss,
            self.sizes,
            layers,
            c.inner_iter,
            c.inner_tol,
            like,
        )
        rows: list[Progress] = []
        fit_term = self._measure(sweep, rows)
        reason = "max_iter"
        # Only a loss that sweeps decrease can tell of success, and multiplicative steps would
        # never leave the zeros that a step ahead makes.
        pays = c.extrapolate and loss.consistent and not self.problem.solver.keeps_zeros
        momentum = Momentum(sweep) if pays else None
        for _ in range(max_iter):
            (momentum or sweep).run()
            now = self._measure(sweep, rows)
            taken = momentum is None or rows[-1].objective <= rows[-2].objective
            if taken:
                fit_term = now
            else:
                rows[-1] = replace(rows[-2], sweep=rows[-1].sweep, time=rows[-1].time)
            if momentum is not None:
                (momentum.succeeded if taken else momentum.failed)()
            stopped = self._stop_reason(rows, fit_term, loss.consistent, record, taken)
            if stopped is not None:
                reason = stopped
                break
        return _Stage(rows, reason, sweep)

    def _measure(self, sweep: Sweep, rows: list[Progress]) -> float:
        alone = len(sweep.layers) < len(self.problem.layers)
        errors = squared_errors(self.panels, self.state)
        rows.append(
            Progress(
                sweep=len(rows),
                objective=sweep.objective(errors),
                layer_errors=errors.layer / self.sizes[: self.state.depth],
                data_errors=errors.data / self.panels.norm2,
                time=time.perf_counter() - self.began,
                layer=sweep.layers[0] + 1 if alone else None,
            )
        )
        return sweep.fit_term(errors)

    def _stop_reason(
        self, rows: list[Progress], fit_term: float, consistent: bool, record: bool, taken: bool
    ) -> str | None:
        c, now = self.control, rows[-1]
        decrease = rows[-2].objective - now.objective
        if record and [call for call in c.callbacks or () if call(now)]:
            return "callback"
        if not consistent and not max(now.layer_errors.max(), now.data_errors.max()) < _DIVERGED:
            return "diverged"
        if c.max_time is not None and now.time >= c.max_time:
            return "max_time"
        if taken and c.tol > 0 and (decrease if consistent else abs(decrease)) <= c.tol * fit_term:
            return "tol"
        return None


def _warn_not_converged(problem: Problem, control: Control) -> None:
    from sklearn.exceptions import ConvergenceWarning  # imported late: scikit-learn loads slowly

    free = not any(layer.constraint_W.bounded for layer in problem.layers)
    drift = (
        " With W of free scale the layer-centric loss keeps falling as W shrinks: "
        "constraint_W='simplex' settles it (with a smaller lam if layer 1 then suffers)."
        if free and problem.loss.name == "layer-centric" and len(problem.layers) > 1
        else ""
    )
    warnings.warn(
        f"The fit used all of max_iter={control.max_iter} sweeps before the decrease per sweep "
        f"fell below tol={control.tol:g} of the loss. Raise max_iter or tol, or set tol=0 to ask "
        f"for exactly max_iter sweeps.{drift}",
        ConvergenceWarning,
        stacklevel=4,
    )
