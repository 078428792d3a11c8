"""Findings about whole layers, from the errors of the model and of each layer fitted alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepmf._utils.messages import setting
from deepmf.fitting.diagnostics.finding import Finding
from deepmf.fitting.fit import Fit
from deepmf.fitting.problem import Problem
from deepmf.losses import LayerCentric

_UNEXPLAINED = 0.5
"""Relative squared error, or share of a deviance, from which on a layer has lost the data, if the
one before has not."""

_GIVEN_UP = 1 / 3
"""Share of what a layer explains beyond the next, fitted alone, that it may give up in the model
while its error comes closer to that of the next: at most 0.1 in good fits of scenes, cells and
text, 0.5 to 1 where the next layer pulls too hard."""

_SHRUNK = 0.75
"""Share of the gap to the next layer's error, in flat fits, that a layer which gave up as much
still has where the model moves both alike; it is 0.9 to 50 in good fits."""

_CLOSED = 0.25
"""A layer is a copy of the next if the gap between their errors shrank to this share of the gap
between flat fits; where lam was 100 it shrank to 0.04 and 0.19, in good fits not below 0.9."""

_EXACT = 1e-8
"""Relative squared error of a flat fit, or share of the deviance that it leaves, below which
nothing is left for more components."""


def unexplained(done: Fit, problem: Problem) -> Iterator[Finding]:
    """A deeper layer that fits the components before it, but not the data."""
    whole = _whole(problem)
    left = done.history.data_errors[-1]
    before = "H" if done.state.over_codes else "W"
    for k in range(1, len(left)):
        compare = problem.fit(k) == problem.fit(k - 1)
        if compare and left[k] > max(_UNEXPLAINED, 4 * left[k - 1]):
            yield Finding.of(
                "lost",
                k + 1,
                f"Layer {k + 1} leaves {left[k]:.3g} of the data's {whole} unexplained, layer {k} "
                f"only {left[k - 1]:.3g}: it fits {before}_{k}, but what is small in {before}_{k} "
                f"is not small in the data. Try {setting(model='data-centric')}, which fits the "
                f"data by every layer.",
            )


def given_up(done: Fit, problem: Problem, shape: tuple[int, int]) -> Iterator[Finding]:
    """A layer that became a copy of the next, or a first one that lost data it fitted alone.

    With flat errors e and those of the model, f, layer l has given up
    ``(f_l - e_l) / (e_{l+1} - e_l)`` of what its further components explain. Layers from the first
    tree on are restricted, not pulled.
    """
    whole = _whole(problem)
    flat, left = [layer.error for layer in done.alone], done.history.data_errors[-1]
    pulled = len(flat) - 1 if problem.first_tree is None else problem.first_tree
    for k in range(min(len(flat) - 1, pulled)):
        gap = flat[k + 1] - flat[k]
        further = problem.ranks[k] - problem.ranks[k + 1]
        if problem.fit(k) != problem.fit(k + 1):
            continue
        told = further > 0 and gap > flat[k + 1] * _of_noise(further, shape)
        if not told or flat[k + 1] < _EXACT:
            continue
        lost, kept = (left[k] - flat[k]) / gap, (left[k + 1] - left[k]) / gap
        poor = lost > 1 or (lost > _GIVEN_UP and kept < _SHRUNK)
        if not poor or (k and kept >= _CLOSED):
            continue
        what = (
            f"explains the data hardly better than layer {k + 2}, of which it has become a copy"
            if kept < _CLOSED
            else "lost a part of the data"
        )
        yield Finding.of(
            "copy" if kept < _CLOSED else "lost",
            k + 1,
            f"Layer {k + 1} {what}: it leaves {left[k]:.3g} of the data's {whole} unexplained, a "
            f"flat fit of rank {problem.ranks[k]} {flat[k]:.3g} and one of rank "
            f"{problem.ranks[k + 1]} {flat[k + 1]:.3g}. {_remedy(problem)}",
        )


def needless(done: Fit, problem: Problem, shape: tuple[int, int]) -> Iterator[Finding]:
    """A first layer whose further components explain no more than they would of white noise.

    Squares alone say how much that is.
    """
    if (
        problem.fits
        or len(done.alone) < 2
        or done.alone[-1].error < _EXACT
        or problem.overfitted(0, shape)
    ):
        return
    first, last = done.alone[0].error, done.alone[-1].error
    ranks = problem.ranks
    noise = _of_noise(ranks[0] - ranks[-1], shape)
    if ranks[0] > ranks[-1] and noise < 1 and first >= last * (1 - noise):
        yield Finding.of(
            "depth",
            1,
            f"A flat fit of rank {ranks[-1]} explains the data as well as one of rank {ranks[0]} "
            f"(it leaves {last:.3g} of the squares, the larger {first:.3g}, as if the further "
            f"components only fitted noise). Lower the first of {setting('ranks')}, and compare "
            f"several by deepmf.scan.",
        )


def _of_noise(components: int, shape: tuple[int, int]) -> float:
    """Largest share of ``||N||^2`` in some components, for m x n white noise N.

    The largest singular value of N is about ``sqrt m + sqrt n`` (Bai and Yin, 1993), so one
    component has at most ``(sqrt m + sqrt n)^2 / mn``.
    """
    m, n = shape
    return float(components * (m**-0.5 + n**-0.5) ** 2)


def _whole(problem: Problem) -> str:
    """The noun for what errors are shares of."""
    return "deviance" if problem.fits else "squares"


def _remedy(problem: Problem) -> str:
    pull = "The deeper layers pull too hard: lower their weight"
    if not isinstance(problem.loss, LayerCentric):
        return f"{pull} in {setting('model')}."
    given = float(np.max(problem.loss.lam)) if problem.loss.calibrate else np.inf
    weaker = {"name": "layer-centric", "lam": float(f"{min(0.1, given / 3):.1g}")}
    return f"{pull}, for example {setting(model=weaker)}, or try {setting(model='data-centric')}."
