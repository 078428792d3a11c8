"""The fit: each layer is fitted alone until it settles, then all layers together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deepmf._utils.compile_clock import clock
from deepmf._utils.threads import single_blas
from deepmf.core.quadratic import Array
from deepmf.core.state import State
from deepmf.core.terms import H
from deepmf.data.matrix import as_numpy
from deepmf.data.panels import DensePanels, Panels
from deepmf.fitting.add_layer import Given, add_layer, check_not_zero, inside
from deepmf.fitting.calibration import UNPENALIZED, Calibration, alone, joint, settled
from deepmf.fitting.canonical import rescale
from deepmf.fitting.checkpoint import Checkpoint
from deepmf.fitting.control import CUT, REASONS, Control
from deepmf.fitting.errors import measure, part_sizes
from deepmf.fitting.extrapolation import Extrapolation
from deepmf.fitting.history import History, Progress, not_finite
from deepmf.fitting.interrupt import Interruption
from deepmf.fitting.link import append_codes, append_linked, link_codes
from deepmf.fitting.problem import Problem, check_against_data
from deepmf.fitting.records import RECORDS, Alone, Moment, Place, Rival, Stage, Trial
from deepmf.fitting.registry import DEFAULT_STARTS
from deepmf.fitting.stop_warnings import warn_of
from deepmf.fitting.sweep import Sweep
from deepmf.fitting.tree import grow
from deepmf.init import Start, StartError
from deepmf.init.merged import merge, merged
from deepmf.init.nearby import FARTHER, distance_of_samples
from deepmf.losses import DataCentric, Loss, Multilayer


@dataclass(frozen=True)
class Fit:
    """The outcome of a fit: the small side, layer weights, and the history."""

    state: State
    weights: Array
    strengths: list[float]
    """Strength of the penalty on H_1; for depth over codes, on the codes of every layer."""
    history: History
    stop_reason: str
    starts: list[int]
    """Index of the start that each layer came from."""
    alone: list[Alone]
    """Each layer's fit to the data by itself; empty where layers were not fitted so."""
    sizes: list[Array] | None
    """||w_k||^2 ||h_k||^2 of the components of each layer; None where no gram is known."""
    data_sizes: list[float]
    """Size of X in each layer's distance, see `Datafit.size`."""


def fit(
    panels: Panels,
    problem: Problem,
    starts: Sequence[Start | Given],
    control: Control,
    rng: np.random.Generator,
    checkpoint: Checkpoint | None = None,
) -> Fit:
    """Fit all layers, each from the start that suits it best.

    A layer is started from each of the starts, fitted alone, and the fit with the lowest objective
    is kept. It resumes from the checkpoint where there is one already, and leaves one where it was
    cut short. Under a layer-centric model, layers with one parent each are first fitted with free
    links, and then as trees to the components before them (`grow`).
    """
    check_against_data(problem, panels)
    with Interruption() as interruption:
        free = problem if problem.first_tree is None else problem.free_links()
        if free is not problem:
            starts = [inside(s, free) if isinstance(s, Given) else s for s in starts]
        run = _Run(panels, free, starts, control, rng, checkpoint, interruption)
        done = run.run()
        done = run.grown(problem, done)
        rescale(problem, done.state, panels)
    if checkpoint is not None and done.stop_reason not in CUT:
        checkpoint.done()
    warn_of(done.stop_reason, len(done.history) - 1, problem, control, checkpoint)
    return done


class _Run:
    """A fit under way."""

    def __init__(
        self,
        panels: Panels,
        problem: Problem,
        starts: Sequence[Start | Given],
        control: Control,
        rng: np.random.Generator,
        checkpoint: Checkpoint | None,
        interruption: Interruption,
    ) -> None:
        self.panels, self.problem, self.control, self.rng = panels, problem, control, rng
        self.starts = starts
        self.settles = control.augment is None and not isinstance(starts[0], Given)
        self.flat = self.settles and self.joint
        """If true, each layer is first fitted to the data by itself and linked afterwards."""
        self.checkpoint, self.interruption = checkpoint, interruption
        saved: Moment | None = None if checkpoint is None else checkpoint.load(RECORDS)
        self.data_sizes = [panels.size(problem.fit(k)) for k in range(len(problem.layers))]
        self.now = saved or Moment(sizes=[self.data_sizes[0]])
        self.began = clock() - self.now.time
        self.cut: str | None = None
        """Why a run of sweeps was cut short, so that none follows."""
        self.place = self._place()
        if saved is not None:
            self._recall()

    def _place(self) -> Place:
        """Data of the next layer: X, a factor before it, or with all layers X again."""
        now, k = self.now, self.now.state.depth
        if self.flat and k < len(self.problem.layers):
            return Place(self.panels, self.problem.layer(k), State(), k)
        if not self.problem.over_codes or k == len(self.problem.layers):
            return Place(self.panels, self.problem, now.state, k)
        if k == 0:
            return Place(self.panels, self.problem.layer(0), State(), 0)
        H = now.layer_codes[-1] / now.state.scales[-1][:, None]
        return Place(DensePanels(H), self.problem.layer(k), State(), k)

    @property
    def joint(self) -> bool:
        """Whether layers are swept together once each has been fitted alone."""
        return self.problem.loss.joint and len(self.problem.layers) > 1

    def run(self) -> Fit:
        """Add the layers one by one, then sweep them together."""
        now, depth = self.now, len(self.problem.layers)
        while now.state.depth < depth:
            self._add()
            if now.state.depth == depth and now.layer_codes:
                self._bring_codes()
            self.place = self._place()
        if not self.joint:
            return self._finished([trial.stages[-1] for trial in now.chosen])
        if now.joint is None:
            known = now.settled if self.settles else []
            fixed = joint(self.panels, now.state, self.problem, self.problem.loss, now.sizes, known)
            now.joint = Stage(fixed)
            if now.state.over_codes:
                codes = as_numpy(self.panels.codes.H).astype(np.float64)
                value = fixed.penalty_on_codes(self.problem, now.state, codes)
                now.state.data = now.state.data._replace(penalty=value)
        self._sweep(now.joint, now.state, self.problem.loss, range(depth), self.control.max_iter)
        return self._finished([now.joint])

    def _add(self) -> None:
        """Start a layer from each start, fit it alone, and keep the lowest objective.

        Where penalties are measured by the layer's fit without them, that fit comes first. All
        trials have the penalties of the best one, so that their objectives compare.
        """
        now, c, at = self.now, self.control, self.place
        panels, problem, k = at.panels, at.problem, at.layer
        limit = c.max_iter if self.settles or not self.joint else c.augment or 0
        first = limit if self.settles and problem.needs_fit(k, panels.shape) else 0
        if at.number:
            before = now.layer_codes[-1] if self.problem.over_codes else now.state.W[-1]
            check_not_zero(before, at.number)
        trials = self._started()
        for trial in trials:
            self._alone(trial, 0, alone(k + 1, k, UNPENALIZED), first)
        if len(now.settled) == at.number:
            best = self._lowest(trials)
            now.settled.append(settled(panels, best.state, problem, k))
        for trial in trials:
            self._alone(trial, 1, alone(k + 1, k, now.settled[-1].alone), limit)
        best = self._lowest(trials)
        if limit and not first and not problem.overfitted(k, panels.shape):
            error = settled(panels, best.state, problem, k).error
            now.settled[-1] = now.settled[-1]._replace(error=error)
        if self.flat or (self.settles and at.number == 0):
            now.alone.append(self._alone_of(trials, best))
        now.chosen.append(replace(best, state=State(), codes=None))
        now.trials, now.at = [], 0
        if self.problem.over_codes or self.flat:
            codes = as_numpy(panels.codes.H).astype(np.float64)
            now.merged = self._merged(best.state.W[-1], codes)
            if self.flat and at.number and self.problem.over_codes:
                Z = link_codes(now, self.problem, codes)
                append_codes(now, self.problem, Z, codes, self.joint)
            elif self.problem.over_codes:
                append_codes(now, self.problem, best.state.W[-1], codes, self.joint)
            else:
                append_linked(now, self.problem, best.state.W[-1], codes)
        else:
            now.state = best.state
            own = self._size(best.state.W[k], k + 1) if self.settles else best.size
            now.sizes.append(own)

    def _alone_of(self, trials: Sequence[Trial], best: Trial) -> Alone:
        """A layer's fit to the data, and its fits from the other starts that were asked for."""
        k = len(self.now.chosen)
        error = float(measure(self.panels, best.state, fits=self.problem.layer(k).fits).data[0])
        lowest = best.stages[-1].rows[-1].objective
        rivals = [
            Rival(t.start, 2 * (t.stages[-1].rows[-1].objective - lowest) / error, t.state.W[-1])
            for t in trials
            if t is not best and t.start < len(self.starts) > 1 and error > 0
        ]
        return Alone(error / self.data_sizes[k], best.state.W[-1].copy(), rivals)

    def _merged(self, W: Array, codes: Array) -> Array | None:
        """A start for the next layer, from components of this one; None if none is asked for."""
        k, asked = len(self.now.chosen), any(start is merged for start in self.starts)
        if not (self.flat and asked and k < len(self.problem.layers)):
            return None
        if (rank := self.problem.layers[k].rank) > W.shape[1]:
            return None
        size = float(np.max(np.abs(W), initial=0.0)) or 1.0  # so that fourth powers do not overflow
        F = codes / (float(np.max(np.abs(codes), initial=0.0)) or 1.0)
        return size * merge(W / size, F @ F.T, rank)

    def _bring_codes(self) -> None:
        """Bring the codes of the layers to the data side, and its surrogates to this side."""
        now, depth = self.now, self.now.state.depth
        self.panels.codes.set(np.vstack(now.layer_codes))
        now.layer_codes = []
        fixed = Calibration(np.ones(depth), [UNPENALIZED] * depth)
        loss = self.problem.loss if self.joint else DataCentric()
        sweep = Sweep(self.panels, now.state, self.problem, loss, fixed, range(depth), 0, 1.0)
        now.state.data = self.panels.update(sweep.coding(), self.problem.solver, 0, 1.0)

    def _started(self) -> list[Trial]:
        """A trial for each start that works, those of a checkpoint included."""
        now, at = self.now, self.place
        failures: dict[str, None] = {}  # what the starts that failed say, each once
        overfitted = at.problem.overfitted(at.layer, at.panels.shape)
        crowded = at.problem.layers[at.layer].rank > at.panels.shape[0]
        for number in range(len(now.trials), len(self.starts)):
            if any(now.trials) and (self.cut or (overfitted and not crowded)):
                break  # as many components as features fit the data from every start
            state, start = at.copy(), self.starts[number]
            if start in DEFAULT_STARTS and any(now.trials):
                now.trials.append(None)  # it is for where all others fail
                continue
            self._put_away()
            if start is merged and now.merged is not None and at.number:
                start = _known(now.merged)
            if isinstance(start, Given) and at.number > at.layer:
                k, scales = at.number, now.state.scales[-1]
                start = Given([start.W[k] / scales[:, None]], [start.H[k]])
            trial: Trial | None = None
            try:
                add_layer(at.panels, state, at.problem, start, self.rng, at.number + 1)
                trial = Trial(number, state, self._size(state.W[-1], at.number + 1))
            except StartError as error:
                failures[error.args[0].marked] = None
            now.trials.append(trial)
            now.at = number
        trials = [trial for trial in now.trials if trial is not None]
        if not trials:
            raise StartError(" ".join(failures) or "There is no start to fit from.")
        if crowded and len(trials) > 1:
            trials = [self._nearest_to_samples(trials)]
        return trials

    def _size(self, W: Array, k: int) -> float:
        """The size of a factor as the target of layer k, counted from 0."""
        return self.problem.fit(k).size(W) if k < len(self.problem.layers) else 0.0

    def _nearest_to_samples(self, trials: Sequence[Trial]) -> Trial:
        """The first trial whose components have samples nearby; the others are dropped.

        With more components than features the data fit from every start, so objectives do not
        tell which to keep.
        """
        now = self.now
        far = [distance_of_samples(self.place.panels, t.state.W[-1]) for t in trials]
        chosen = next(t for t, d in zip(trials, far) if d <= FARTHER * min(far))
        self._hold(chosen)
        now.trials = [t if t is chosen else None for t in now.trials]
        return chosen

    def _put_away(self) -> None:
        """Keep the codes in the panels with the trial that they belong to."""
        held = self.now.trials[self.now.at] if self.now.trials else None
        if self.place.layer == 0 and held is not None:
            held.codes = self.place.panels.codes.H

    def _hold(self, trial: Trial) -> None:
        """Let the panels have the codes of a trial."""
        now = self.now
        if trial is now.trials[now.at]:
            return
        self._put_away()
        now.at = next(i for i, other in enumerate(now.trials) if other is trial)
        if self.place.layer == 0:
            self.place.panels.codes.set(trial.codes)
            trial.codes = None

    def _lowest(self, trials: Sequence[Trial]) -> Trial:
        """The trial with the lowest objective, with its codes in the panels."""
        best = min(trials, key=lambda trial: trial.stages[-1].rows[-1].objective)
        self._hold(best)
        return best

    def _alone(self, trial: Trial, number: int, fixed: Calibration, limit: int) -> None:
        """Sweep the last layer of a trial: its first or its second stage."""
        if number == len(trial.stages):
            trial.stages.append(Stage(fixed))
        stage = trial.stages[number]
        if stage.reason is None:
            self._hold(trial)
            loss = Multilayer() if len(self.problem.layers) > 1 else self.problem.loss
            self._sweep(stage, trial.state, loss, [self.place.layer], limit)

    @single_blas()
    def _sweep(
        self, stage: Stage, state: State, loss: Loss, layers: Sequence[int], max_iter: int
    ) -> None:
        """Sweep some layers until one of the stopping rules applies."""
        c, rows = self.control, stage.rows
        sweep = Sweep(
            self.place.panels,
            state,
            self.place.problem,
            loss,
            stage.calibration,
            layers,
            c.inner_iter,
            c.inner_tol,
        )
        if not rows:
            self._measure(sweep, rows)
        # Only a loss that sweeps decrease can tell of success, and multiplicative steps would
        # never leave the zeros that a step ahead makes.
        pays = c.extrapolate and loss.consistent and not self.problem.solver.keeps_zeros
        ahead = Extrapolation(sweep) if pays else None
        if ahead is not None and self.now.extrapolation is not None:
            ahead.recall(self.now.extrapolation)
        self.now.extrapolation = None
        gradual = any(penalty.gradual for _, penalty in sweep.penalties.values())
        for _ in range(len(rows) - 1, 0 if self.cut else max_iter):
            if self.checkpoint is not None and self.checkpoint.due:
                self._save(ahead)
            (ahead or sweep).run()
            fit_term = self._measure(sweep, rows, whole=False)
            taken = ahead is None or rows[-1].objective <= rows[-2].objective
            if not taken:
                rows[-1] = replace(rows[-2], sweep=rows[-1].sweep, time=rows[-1].time)
            if ahead is not None:
                (ahead.succeeded if taken else ahead.failed)()
            reason = c.reason(rows, fit_term, loss.consistent, taken, gradual, bool(sweep.ahead))
            if reason != "callback" and self.interruption.asked():
                reason = "interrupted"
            if reason is not None:
                if reason in CUT:
                    self._save(ahead)
                    self.cut = reason
                stage.reason = reason
                break
        else:
            stage.reason = "max_iter"
        if len(rows) > 1 and any(fit.nonnegative for fit in self.place.problem.fits):
            self._measure(sweep, rows)  # what sweeps leave out, as each divergence costs a pass
            del rows[-2]
            rows[-1] = replace(rows[-1], sweep=len(rows) - 1)

    def _measure(self, sweep: Sweep, rows: list[Progress], whole: bool = True) -> float:
        """Append the errors and the objective as they are now; return the loss alone."""
        k, before = self.place.number, self.place.number - self.place.layer
        layer = k + 1 if len(sweep.layers) < len(self.problem.layers) else None
        errors = sweep.measure(whole)
        objective = sweep.objective(errors)
        # An extrapolated sweep is undone; updates that share no loss may diverge.
        excused = sweep.ahead or (rows and not sweep.loss.consistent)
        if not np.isfinite(objective) and not excused:
            raise not_finite(objective, len(rows), layer)
        of_layer = errors.layer / self.now.sizes[before : before + sweep.state.depth]
        of_data = errors.data / self.data_sizes[before : before + sweep.state.depth]
        if before and self.flat:  # not yet linked to the layer before
            of_layer = np.full(1, np.nan)
        elif before:  # codes of codes, which have not met the data
            of_data = np.full(1, np.nan)
        unknown = np.full(before, np.nan)
        rows.append(
            Progress(
                sweep=len(rows),
                objective=objective,
                layer_errors=np.concatenate([unknown, of_layer]),
                data_errors=np.concatenate([unknown, of_data]),
                time=clock() - self.began,
                layer=layer,
            )
        )
        return sweep.fit_term(errors)

    def _finished(self, main: Sequence[Stage]) -> Fit:
        now = self.now
        reasons = [reason for reason in (self.cut, *(s.reason for s in main)) if reason]
        if now.state.over_codes and not self.joint:  # deeper layers have not met the data so far
            last = measure(self.panels, now.state, fits=self.problem.fits).data / self.data_sizes
            for k, stage in enumerate(main):
                stage.rows[-1] = replace(stage.rows[-1], data_errors=last[: k + 1])
        rows = [stage.rows for stage in main]
        fixed = main[0].calibration
        return Fit(
            now.state,
            fixed.weights if self.joint else np.ones(now.state.depth),
            self._strengths(main),
            History.of(rows[0]) if self.joint else History.of_stages(rows),
            max(reasons, key=REASONS.index),
            [trial.start for trial in now.chosen],
            now.alone,
            part_sizes(now.state),
            self.data_sizes,
        )

    def grown(self, problem: Problem, done: Fit) -> Fit:
        """The fit with layers of one parent each, beside those with free links."""
        now, c, first = self.now, self.control, problem.first_tree
        if now.joint is None or first is None:
            return done
        s, rows = now.state, now.joint.rows
        inner = c.inner_iter, c.inner_tol
        stages = [rows]
        for k, sweeps in grow(problem, s, now.joint.calibration, c.max_iter, inner):
            stages.append([])
            for number, (s.W[k], s.H[k], objective) in enumerate(sweeps):
                errors = measure(self.panels, s, fits=problem.fits, whole=number == len(sweeps) - 1)
                of_layer = errors.layer / now.sizes[: s.depth]
                of_data = errors.data / self.data_sizes
                time = clock() - self.began
                stages[-1].append(Progress(number, objective, of_layer, of_data, time, k + 1))
        owners = [max(k - first + 1, 0) for k in range(s.depth)]
        history = History.of_stages(stages, owners)
        return replace(done, state=s, history=history, sizes=part_sizes(s))

    def _strengths(self, main: Sequence[Stage]) -> list[float]:
        """Strengths of the penalties on codes, with which new data are coded."""
        fixed, depth = main[0].calibration, self.now.state.depth
        if not self.now.state.over_codes:
            return [fixed.strength(self.problem, H(0))]
        if self.joint:
            return [fixed.strength(self.problem, H(k)) for k in range(depth)]
        own = [stage.calibration for stage in main]
        return [own[k].strength(self.problem.layer(k), H(0)) for k in range(depth)]

    def _save(self, ahead: Extrapolation | None) -> None:
        """Write a checkpoint, between two sweeps."""
        if self.checkpoint is None:
            return
        codes = self.place.panels.codes
        self.checkpoint.save(
            replace(
                self.now,
                trials=[t and replace(t, codes=as_numpy(t.codes)) for t in self.now.trials],
                codes=as_numpy(codes.H),
                codes_before=None if codes.before is None else as_numpy(codes.before),
                extrapolation=None if ahead is None else ahead.memory(),
                random=self.rng.bit_generator.state,
                time=clock() - self.began,
            )
        )

    def _recall(self) -> None:
        """Restore what a checkpoint has of the panels and of the generator."""
        saved = self.now
        self.rng.bit_generator.state = saved.random
        codes = self.place.panels.codes
        codes.set(saved.codes)
        if saved.codes_before is not None:
            codes.recall(saved.codes_before)


def _known(W: Array) -> Start:
    """A start whose components are known."""
    return lambda panels, rank, rng: W
