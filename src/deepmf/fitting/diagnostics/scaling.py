"""Findings about the scale of the data: raw counts, and a logarithm taken twice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepmf._utils.messages import setting
from deepmf.core.datafit import SquaredError
from deepmf.core.quadratic import Array
from deepmf.data.panels import Panels
from deepmf.fitting.diagnostics.finding import Finding
from deepmf.fitting.problem import Problem

_SAMPLES, _ENTRIES = 32, 1 << 17
"""First columns of X that are looked at, and about how many entries: neighbors are read together,
and a lazy matrix computes one block of them."""

_HEAVY = 10
"""Largest over median nonzero entry from which on integers look like counts: 28 to 255 for words
and cells, 1.4 to 3.3 for pixels and reflectances, at most 5 for ratings."""

_SPREAD = 0.5
"""Variance of nonzero counts over their squared mean, from 0.8 on for words and cells: a few
saturated pixels reach the largest value, but not this."""

_DISTINCT = 6
"""Values of a sample that must follow the pattern of a logarithm: no six do by chance."""

_WHOLE = 0.01
"""Distance from an integer that rounding to float32 may cause, up to the multiple below."""

_LARGEST = 100


def scale(problem: Problem, panels: Panels) -> Iterator[Finding]:
    """Counts that a squared error would weight by the few largest, and a needless logarithm."""
    terms = problem.loss.terms(len(problem.layers), np.ones(len(problem.layers)))
    if any(fit.nonnegative for fit in problem.fits) or any(
        t.of_data and type(t.fit) is not SquaredError for t in terms
    ):
        return
    m, n = panels.shape
    some = panels.columns(np.arange(min(n, _SAMPLES, max(1, _ENTRIES // m))))
    some = np.where(np.isfinite(some), some, 0.0)
    if some.min() < 0:
        return
    if look_like_counts(some[some > 0]):
        yield Finding.of(
            "scale",
            None,
            f"X looks like raw counts (integers up to {some.max():.0f} whose median is "
            f"{np.median(some[some > 0]):.0f} where they are not 0), and a squared error fits the "
            f"few largest of these: try {setting(beta_loss='kullback-leibler')}, or "
            f"{setting(scale='log')} for cells, {setting(scale='tfidf')} for words.",
        )
    taken = [logarithms(x[x > 0]) for x in some.T]
    known = [times for times in taken if times is not None]
    if known.count(2) > len(known) / 2:
        yield Finding.of(
            "scale",
            None,
            f"X looks as if the logarithm of its counts had been taken twice: leave out "
            f"{setting(scale='log')} if the data have it already, or undo one by numpy.expm1.",
        )


def look_like_counts(values: Array) -> bool:
    """Whether positive values are integers with a heavy tail."""
    if not len(values) or np.any(values != np.round(values)):
        return False
    heavy = values.max() >= _HEAVY * np.median(values)
    return bool(heavy and values.var() > _SPREAD * values.mean() ** 2)


def logarithms(values: Array) -> int | None:
    """Number of logarithms between the positive values of a sample and multiples of their least.

    ::

        0   k c        1   log(1 + k c)        2   log(1 + b log(1 + k c))

    with integers k from 1 on, and any b and c; None where the values are none of these.
    """
    x = np.unique(values)
    if len(x) < _DISTINCT or x[-1] > np.log(np.finfo(np.float32).max):
        return 0 if _whole(x / x[:1]) else None
    once = np.expm1(x)
    if _whole(x / x[0]):
        return 0
    if _whole(once / once[0]):
        return 1
    c = _unit_of(once[1] / once[0])
    if c is None:
        return None
    inner = once / once[0] * np.log1p(c)
    return 2 if _whole(np.expm1(inner[inner < np.log1p(_LARGEST * c)]) / c) else None


def _unit_of(ratio: float) -> float | None:
    """c such that ``log(1 + 2 c) / log(1 + c)`` is the ratio; it falls from 2 to 1 as c grows."""
    from scipy.optimize import brentq  # imported late: it loads slowly

    def excess(log_c: float) -> float:
        c = np.exp(log_c)
        return float(np.log1p(2 * c) / np.log1p(c) - ratio)

    low, high = np.log(1e-3), np.log(1e6)
    if not excess(high) < 0 < excess(low):
        return None
    return float(np.exp(brentq(excess, low, high, xtol=1e-13, rtol=1e-13)))


def _whole(multiples: Array) -> bool:
    """Whether enough multiples are integers, nearly, up to where rounding would show."""
    some = multiples[multiples < _LARGEST]
    return len(some) >= _DISTINCT and bool(np.all(np.abs(some - np.round(some)) < _WHOLE))
