"""The fit: layers are added one by one, then swept together until they settle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepmf._utils.compile_clock import clock
from deepmf._utils.messages import SettingError, setting
from deepmf._utils.threads import single_blas
from deepmf._utils.warnings import warn
from deepmf.constraints import Simplex
from deepmf.core.parameters import check_integer, check_number
from deepmf.core.quadratic import Array
from deepmf.core.state import State
from deepmf.data.matrix import as_numpy
from deepmf.data.panels import Panels
from deepmf.fitting.add_layer import Given, add_layer
from deepmf.fitting.calibration import Calibration, calibrate
from deepmf.fitting.checkpoint import Checkpoint
from deepmf.fitting.extrapolation import Extrapolation
from deepmf.fitting.history import History, Progress, not_finite
from deepmf.fitting.interrupt import Interruption
from deepmf.fitting.problem import Problem, check_against_data
from deepmf.fitting.records import by_name
from deepmf.fitting.sweep import Sweep
from deepmf.init import Start, StartError
from deepmf.losses import Loss, Multilayer

Callback = Callable[[Progress], object]
"""Called after every sweep; a true return value stops the fit."""

_GRAVITY = ("tol", "max_iter", "max_time", "callback", "interrupted", "diverged")

_CUT = ("max_time", "callback", "interrupted")
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
    """Whether sweeps start ahead of where the last one ended, see `Extrapolation`."""
    callbacks: Sequence[Callback] | None = None

    def __post_init__(self) -> None:
        for name, least in (("max_iter", 0), ("inner_iter", 1), ("augment", 0)):
            check_integer(setting(name), getattr(self, name), least)
        if not isinstance(self.extrapolate, bool | np.bool_):
            raise SettingError(
                f"{setting('extrapolate')} must be True or False, got {self.extrapolate!r}."
            )
        for name in ("tol", "inner_tol", "max_time"):
            if name != "max_time" or self.max_time is not None:
                check_number(setting(name), getattr(self, name), 0)
        calls = self.callbacks
        if calls is not None and not (
            isinstance(calls, list | tuple) and all(map(callable, calls))
        ):
            raise ValueError(f"callbacks must be a function or a list of functions, got {calls!r}.")


@dataclass(frozen=True)
class Fit:
    """The outcome of a fit: the small side, layer weights, and the history."""

    state: State
    weights: Array
    strength: float
    """Strength of the penalty on H_1."""
    history: History
    stop_reason: str
    start: int
    """Which of the starts it came from."""


@dataclass(eq=False)
class _Stage:
    """A run of sweeps over the same blocks."""

    rows: list[Progress]
    calibration: Calibration
    reason: str | None = None
    """Why it ended; None while it goes on."""


@dataclass(frozen=True)
class _Moment:
    """Between two sweeps: everything that decides how the fit goes on."""

    start: int
    state: State
    sizes: list[float]
    codes: Any
    codes_before: Any
    stages: list[_Stage]
    momentum: dict[str, Any] | None
    like: list[Calibration]
    best: Fit | None
    best_codes: Any
    random: Any
    """The generator's state."""
    time: float


def _fit(strength: float = 0.0, encoder: Any = None, **parts: Any) -> Fit:
    """Build a `Fit` from a checkpoint; those of the first version have an encoder."""
    return Fit(strength=strength if encoder is None else encoder[2], **parts)


_RECORDS = {**by_name(_Moment, _Stage, Calibration, History, Progress), "Fit": _fit}


class InterruptedWarning(UserWarning):
    """The fit was interrupted, and its factors are those of the last whole sweep."""


def fit(
    panels: Panels,
    problem: Problem,
    starts: Sequence[Start | Given],
    control: Control,
    rng: np.random.Generator,
    checkpoint: Checkpoint | None = None,
) -> Fit:
    """The fit from each start in turn; the one with the lowest objective.

    All are weighted as the first one was when it began, so that their objectives compare. It goes
    on from the checkpoint where there is one already, and leaves one where it was cut short.
    """
    check_against_data(problem, panels)
    saved: _Moment | None = None if checkpoint is None else checkpoint.load(_RECORDS)
    with Interruption() as interruption:
        run = _Run(panels, problem, control, rng, checkpoint, interruption)
        best = run.from_each(starts, saved)
    if panels.codes.H is not run.best_codes:  # another start was fitted after the best one
        panels.codes.set(run.best_codes)
    if checkpoint is not None and best.stop_reason not in _CUT:
        checkpoint.done()
    if best.stop_reason == "interrupted":
        _warn_interrupted(checkpoint)
    if best.stop_reason == "diverged":
        _warn_diverged(problem, best)
    if best.stop_reason == "max_iter" and control.tol > 0 and control.max_iter > 0:
        _warn_not_converged(problem, control)
    return best


class _Run:
    """A fit under way: the start it is at and the best one so far, and its clock."""

    def __init__(
        self,
        panels: Panels,
        problem: Problem,
        control: Control,
        rng: np.random.Generator,
        checkpoint: Checkpoint | None,
        interruption: Interruption,
    ) -> None:
        self.panels, self.problem, self.control, self.rng = panels, problem, control, rng
        self.checkpoint, self.interruption = checkpoint, interruption
        self.best: Fit | None = None
        self.best_codes = panels.codes.H
        self.like: list[Calibration] = []  # of the first start's stages
        self.began = clock()
        self._begin(0)

    def _begin(self, start: int) -> None:
        self.start = start
        self.state = State()
        self.sizes = [self.panels.norm2]  # ||W_{l-1}^(0)||^2, of each basis as it was first made
        self.stages: list[_Stage] = []
        self.memory: dict[str, Any] | None = None  # of the momentum that is to go on

    def from_each(self, starts: Sequence[Start | Given], saved: _Moment | None) -> Fit:
        """The best of the fits from all starts, or from those that a saved moment leaves."""
        failure: StartError | None = None
        for number, start in enumerate(starts):
            if saved is not None and number < saved.start:
                continue
            self._begin(number)
            if saved is not None and number == saved.start:
                self._recall(saved)
            try:
                self._grow(start)
            except StartError as error:
                failure = error
                continue
            self.like = self.like or [stage.calibration for stage in self.stages]
            done, best = self._finished(), self.best
            if best is None or not best.history.objective[-1] <= done.history.objective[-1]:
                self.best = best = done
                self.best_codes = self.panels.codes.H
            if done.stop_reason in _CUT:
                return replace(best, stop_reason=done.stop_reason)
        if self.best is None:
            raise failure or StartError("There is no start to fit from.")
        return self.best

    def _grow(self, start: Start | Given) -> None:
        """Algorithm 1 (multilayer) or Algorithms 2 and 3 (all layers in turn)."""
        joint, depth = self.problem.loss.joint, len(self.problem.layers)
        alone = self.control.augment if joint else self.control.max_iter
        for k in range(depth):
            if k == self.state.depth:  # else it was there when the fit was stopped
                add_layer(self.panels, self.state, self.problem, start, self.rng)
                self.sizes.append(float(np.sum(self.state.W[k] ** 2)))
            if not joint or alone:
                self._sweeps(k, Multilayer(), [k], alone, record=not joint)
        if joint:
            number, limit = depth if alone else 0, self.control.max_iter
            self._sweeps(number, self.problem.loss, range(depth), limit, record=True)

    def _finished(self) -> Fit:
        joint, state = self.problem.loss.joint, self.state
        main = self.stages[-1:] if joint else self.stages
        reasons = [s.reason or "" for s in self.stages if s in main or s.reason in _CUT]
        return Fit(
            state,
            main[0].calibration.weights if joint else np.ones(state.depth),
            main[0].calibration.strengths_H[0],
            History.of(main[0].rows) if joint else History.of_stages([s.rows for s in main]),
            max(reasons, key=_GRAVITY.index),
            self.start,
        )

    def _keep(self, momentum: Extrapolation | None) -> None:
        """Save this moment, between two sweeps."""
        if self.checkpoint is None:
            return
        codes = self.panels.codes
        best = None if self.best is None else as_numpy(self.best_codes)
        self.checkpoint.save(
            _Moment(
                start=self.start,
                state=self.state,
                sizes=self.sizes,
                codes=as_numpy(codes.H),
                codes_before=None if codes.before is None else as_numpy(codes.before),
                stages=self.stages,
                momentum=None if momentum is None else momentum.memory(),
                like=self.like,
                best=self.best,
                best_codes=best,
                random=self.rng.bit_generator.state,
                time=clock() - self.began,
            )
        )

    def _recall(self, saved: _Moment) -> None:
        """Be where the fit was at a saved moment."""
        self.state, self.sizes, self.stages = saved.state, saved.sizes, saved.stages
        self.memory, self.like = saved.momentum, saved.like
        self.rng.bit_generator.state = saved.random
        self.began = clock() - saved.time
        if saved.best is not None:
            self.panels.codes.set(saved.best_codes)
            self.best, self.best_codes = saved.best, self.panels.codes.H
        self.panels.codes.set(saved.codes)
        if saved.codes_before is not None:
            self.panels.codes.recall(saved.codes_before)

    @single_blas()
    def _sweeps(
        self, number: int, loss: Loss, layers: Sequence[int], max_iter: int, record: bool
    ) -> None:
        """Sweep some layers until one of the stopping rules applies: the start's next stage.

        A stage that was under way at a saved moment goes on; one that had ended stays as it is.
        """
        c, goes_on = self.control, number < len(self.stages)
        if goes_on and self.stages[number].reason is not None:
            return
        if goes_on:
            calibration = self.stages[number].calibration
        elif self.like:
            calibration = self.like[number]
        else:
            calibration = calibrate(self.panels, self.state, self.problem, loss, self.sizes)
        sweep = Sweep(
            self.panels,
            self.state,
            self.problem,
            loss,
            calibration,
            layers,
            c.inner_iter,
            c.inner_tol,
        )
        cut = any(stage.reason in _CUT for stage in self.stages)
        if not goes_on:
            self.stages.append(_Stage([], calibration))
            self._measure(sweep, self.stages[number].rows)
        stage, rows = self.stages[number], self.stages[number].rows
        # Only a loss that sweeps decrease can tell of success, and multiplicative steps would
        # never leave the zeros that a step ahead makes.
        pays = c.extrapolate and loss.consistent and not self.problem.solver.keeps_zeros
        momentum = Extrapolation(sweep) if pays else None
        if momentum is not None and self.memory is not None:
            momentum.recall(self.memory)
        self.memory = None
        for _ in range(len(rows) - 1, 0 if cut else max_iter):
            if self.checkpoint is not None and self.checkpoint.due:
                self._keep(momentum)
            (momentum or sweep).run()
            fit_term = self._measure(sweep, rows)
            taken = momentum is None or rows[-1].objective <= rows[-2].objective
            if not taken:
                rows[-1] = replace(rows[-2], sweep=rows[-1].sweep, time=rows[-1].time)
            if momentum is not None:
                (momentum.succeeded if taken else momentum.failed)()
            stopped = self._stop_reason(rows, fit_term, loss.consistent, record, taken)
            if stopped is not None:
                if stopped in _CUT:
                    self._keep(momentum)
                stage.reason = stopped
                return
        stage.reason = "max_iter"

    def _measure(self, sweep: Sweep, rows: list[Progress]) -> float:
        alone = len(sweep.layers) < len(self.problem.layers)
        errors = sweep.measure()
        objective = sweep.objective(errors)
        # An extrapolated sweep is undone; updates that share no loss may diverge.
        excused = sweep.ahead or (rows and not sweep.loss.consistent)
        if not np.isfinite(objective) and not excused:
            raise not_finite(objective, len(rows), sweep.layers[0] + 1 if alone else None)
        rows.append(
            Progress(
                sweep=len(rows),
                objective=objective,
                layer_errors=errors.layer / self.sizes[: self.state.depth],
                data_errors=errors.data / self.panels.norm2,
                time=clock() - self.began,
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
        if self.interruption.asked():
            return "interrupted"
        if not consistent and not max(now.layer_errors.max(), now.data_errors.max()) < _DIVERGED:
            return "diverged"
        if c.max_time is not None and now.time >= c.max_time:
            return "max_time"
        if taken and c.tol > 0 and (decrease if consistent else abs(decrease)) <= c.tol * fit_term:
            return "tol"
        return None


def _warn_interrupted(checkpoint: Checkpoint | None) -> None:
    way = (
        "Give factorize a checkpoint to be able to go on the next time."
        if checkpoint is None
        else f"The same call goes on from the checkpoint {str(checkpoint.path)!r}."
    )
    warn(
        f"The fit was interrupted: these are the factors of its last whole sweep. {way}",
        InterruptedWarning,
    )


def _warn_diverged(problem: Problem, best: Fit) -> None:
    from sklearn.exceptions import ConvergenceWarning  # imported late: scikit-learn loads slowly

    warn(
        f"The fit diverged after {len(best.history) - 1} sweeps, and its factors mean nothing: the "
        f"updates of {problem.loss!r} share no loss that each of them decreases. Use "
        f"model='layer-centric' or 'data-centric', another init, or fewer layers.",
        ConvergenceWarning,
    )


def _warn_not_converged(problem: Problem, control: Control) -> None:
    from sklearn.exceptions import ConvergenceWarning  # imported late: scikit-learn loads slowly

    free = not any(layer.constraint_W.bounded for layer in problem.layers)
    possible = problem.solver.objection(Simplex()) is None
    drift = (
        f" The layer-centric loss keeps falling as W shrinks and H grows: "
        f"{setting(constraint_W='simplex')} fixes the scale."
        if free and possible and problem.loss.name == "layer-centric" and len(problem.layers) > 1
        else ""
    )
    warn(
        f"The fit used all of {setting(max_iter=control.max_iter)} sweeps before the decrease per "
        f"sweep fell below {setting(tol=control.tol)} of the loss. Raise {setting('max_iter')} or "
        f"{setting('tol')}, or set {setting(tol=0)} to ask for exactly {setting('max_iter')} "
        f"sweeps.{drift}",
        ConvergenceWarning,
    )
