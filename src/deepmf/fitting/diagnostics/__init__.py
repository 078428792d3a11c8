"""Diagnostics of a finished fit: a function per finding, each with the setting that helps."""

from __future__ import annotations

from collections.abc import Sequence

from deepmf._utils.warnings import warn
from deepmf.data.layout import Layout
from deepmf.data.panels import Panels
from deepmf.fitting.diagnostics.components import near_copies, unused
from deepmf.fitting.diagnostics.finding import Finding, FindingsWarning
from deepmf.fitting.diagnostics.layers import given_up, needless, unexplained
from deepmf.fitting.diagnostics.outliers import outliers
from deepmf.fitting.diagnostics.scaling import scale
from deepmf.fitting.diagnostics.starts import unstable
from deepmf.fitting.fit import Fit
from deepmf.fitting.problem import Problem

__all__ = ["Finding", "FindingsWarning", "findings", "warn_of_findings"]

_WARNED = 3
"""Findings that the warning repeats; the result lists them all."""


def findings(
    done: Fit,
    problem: Problem,
    panels: Panels,
    layout: Layout,
    starts: Sequence[str],
    tol: float,
) -> list[Finding]:
    """Describe what went wrong, the most important first; nothing is fitted again.

    Only a fit that converged is judged; the scale of the data is, whatever the fit, and outliers,
    which may keep it from converging.

    Parameters
    ----------
    done, problem, panels
        The fit, its settings and its data.
    layout : Layout
        Names and geometry of the data.
    starts : sequence of str
        Names of the starts.
    tol : float
        The tolerance that was asked for; 0: a fixed number of sweeps.
    """
    found = [*scale(problem, panels)]
    if not found and tol > 0 and done.stop_reason in ("tol", "max_iter"):  # counts have long tails
        found += outliers(done, problem, panels, layout)
    if done.stop_reason == "tol":
        found += unexplained(done, problem)
        found += given_up(done, problem, panels.shape)
        poor = {finding.layer for finding in found}  # its copies are a consequence
        found += [f for f in near_copies(done, problem) if f.layer not in poor]
        found += unused(done, panels)
        found += needless(done, problem, panels.shape)
        found += unstable(done, starts)
    return found


def warn_of_findings(found: Sequence[Finding]) -> None:
    """Warn once, with the most important sentences."""
    if found:
        warn(" ".join(f.sentence.marked for f in found[:_WARNED]), FindingsWarning)
