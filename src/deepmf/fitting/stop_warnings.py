"""Warnings about fits that stopped before they converged."""

from __future__ import annotations

from deepmf._utils.messages import counted, setting
from deepmf._utils.warnings import warn
from deepmf.constraints import Simplex
from deepmf.fitting.checkpoint import Checkpoint
from deepmf.fitting.control import Control
from deepmf.fitting.interrupt import InterruptedWarning
from deepmf.fitting.problem import Problem


def warn_of(
    reason: str, sweeps: int, problem: Problem, control: Control, checkpoint: Checkpoint | None
) -> None:
    """Warn if the reason to stop says that the factors may change with more sweeps."""
    if reason == "interrupted":
        warn(_interrupted(checkpoint), InterruptedWarning)
    if reason == "diverged":
        _warn_of_no_convergence(_diverged(problem, sweeps))
    if reason == "max_iter" and control.tol > 0 and control.max_iter > 0:
        _warn_of_no_convergence(_not_converged(problem, control))


def _warn_of_no_convergence(message: str) -> None:
    from sklearn.exceptions import ConvergenceWarning  # imported late: scikit-learn loads slowly

    warn(message, ConvergenceWarning)


def _interrupted(checkpoint: Checkpoint | None) -> str:
    way = (
        "Give factorize a checkpoint to be able to resume the next time."
        if checkpoint is None
        else f"The same call resumes from the checkpoint {str(checkpoint.path)!r}."
    )
    return f"The fit was interrupted: these are the factors of its last whole sweep. {way}"


def _diverged(problem: Problem, sweeps: int) -> str:
    return (
        f"The fit diverged after {counted(sweeps, 'sweep')}, and its factors mean nothing: the "
        f"updates of {problem.loss!r} share no loss that each of them decreases. Use "
        f"{setting(model='layer-centric')} or {setting(model='data-centric')}, another "
        f"{setting('init')}, or fewer layers."
    )


def _not_converged(problem: Problem, control: Control) -> str:
    free = not any(layer.constraint_W.bounded for layer in problem.layers)
    possible = problem.solver.objection(Simplex()) is None
    drift = (
        f" The layer-centric loss keeps falling as W shrinks and H grows: "
        f"{setting(constraint_W='simplex')} fixes the scale."
        if free and possible and problem.loss.name == "layer-centric" and len(problem.layers) > 1
        else ""
    )
    return (
        f"The fit used all of {setting(max_iter=control.max_iter)} sweeps before the decrease per "
        f"sweep fell below {setting(tol=control.tol)} of the loss. Raise {setting('max_iter')} or "
        f"{setting('tol')}, or set {setting(tol=0)} to ask for exactly {setting('max_iter')} "
        f"sweeps.{drift}"
    )
