"""Which ranks the numbers of a scan speak for, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepmf.core.quadratic import Array

STABLE = 0.9
"""Share of the best agreement from which the components of a rank are taken to be reproduced."""

WEAKEST = 0.5
"""Agreement, half way to a right angle, below which components are never taken to be reproduced."""

SMALL = 0.1
"""Share of the squares left, and of those explained, from which a gain is more than small."""

NOTHING = 0.02
"""Share of them below which a gain is none, however little it varies."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """What fits of some ranks have shown.

    Attributes
    ----------
    ranks : tuple of int
        r_1, ..., r_L.
    errors : array, halves x L
        ||X - W_l H_l...H_1|| / ||X|| on hidden features of the other half, per fit and layer.
    agreements : array, splits x L
        1 - MRSA / 50 of the worst pair of components, matched between the halves: 1 where all
        are the same, 0 where one is at a right angle to its match.
    fit_error : float
        ||X - W_1 H_1|| / ||X|| on the samples of the fit, mean over the halves.
    smallest : float
        Smallest singular value of W_1 with columns of norm 1: 0 where one is a mixture of others.
    logdet : float
        log det of the Gram matrix of these columns: their volume.
    effective_rank : float
        exp of the entropy of H_1's singular values, codes in the data's units.
    duplicates, empty : int
        Components of layer 1 that repeat another one, or that carry next to nothing.
    """

    ranks: tuple[int, ...]
    errors: Array
    agreements: Array
    fit_error: float
    smallest: float
    logdet: float
    effective_rank: float
    duplicates: int
    empty: int

    @property
    def label(self) -> str:
        """The ranks as they are written, ``6,4,2``."""
        return ",".join(map(str, self.ranks))

    @property
    def error(self) -> float:
        """Of layer 1, mean over the halves."""
        return float(self.errors[:, 0].mean())

    @property
    def spread(self) -> float:
        """Standard error of `error`."""
        return _standard_error(self.errors[:, 0])

    @property
    def agreement(self) -> float:
        """Of layer 1, median over the splits."""
        return float(np.median(self.agreements[:, 0]))

    @property
    def depth_agreement(self) -> float:
        """Of the least stable of the deeper layers, median over the splits."""
        return float(np.median(self.agreements[:, 1:], axis=0).min())


@dataclass(frozen=True)
class Choice:
    """Ranks to take, or to choose between.

    Attributes
    ----------
    ranks : tuple of int
        The ranks to take.
    sure : bool
        Whether the signals agree on r_1.
    between : tuple of int
        Ends of the plausible range of r_1; one number where the signals agree.
    sentence : str
        The choice in words, with its reasons.
    """

    ranks: tuple[int, ...]
    sure: bool
    between: tuple[int, ...]
    sentence: str


def choose(candidates: Sequence[Candidate]) -> Choice:
    """r_1 by the error on hidden features and by stability; deeper ranks by stability.

    ::

        by error       the smallest r_1 with e - least e <= one standard error of it,
                       or gain <= 0.02:   gain = (e^2 - least e^2) / min(least e^2, 1 - least e^2)
        by size        the smallest r_1 with gain <= 0.1: all further gains are small
        by stability   the largest r_1 >= 2 whose agreement is >= 0.9 of the best, and >= 0.5

    The choice is sure where the three are the same, inside the range tested; else the plausible
    range spans them, and its lower end is taken. The standard error is that of the difference half
    by half: halves and hidden features are the same whatever the ranks. Two scales of error are
    needed because residuals that are correlated over features, as in scenes, let components beyond
    the last real one predict a little, reliably: such an error falls by ever less, and never rises.
    """
    by_rank: dict[int, Candidate] = {}
    for c in sorted(candidates, key=lambda c: c.error):
        by_rank.setdefault(c.ranks[0], c)
    tested = sorted(by_rank)
    best = min(by_rank.values(), key=lambda c: c.error)
    if not np.isfinite(best.error):
        reason = (
            "Not sure: no rank tested has a finite error on hidden features in every half, because "
            "fits diverged, starts found too few components, or too little is observed; try "
            "another model or start, or more data."
        )
        return Choice((tested[0],), False, tuple(tested), reason)
    gains = {r: _gain(c, best) for r, c in by_rank.items()}
    enough = min(r for r in tested if gains[r] <= SMALL)
    least = min(r for r in tested if gains[r] <= NOTHING or _margin(by_rank[r], best) <= 1)
    enough = min(enough, least)
    level = stable_level(candidates)
    stable = [r for r in tested if r >= 2 and by_rank[r].agreement >= level]
    top = max(stable) if stable else None
    signals = [enough, least] if top is None else [enough, least, top]
    between = tuple(sorted({min(signals), max(signals)}))
    taken = by_rank[top if top is not None and top < least else between[0]]

    sure = False
    if least == tested[0]:
        between, taken = (least,), by_rank[least]
        reason = (
            f"Not sure: no rank tested lowers the error on hidden features below that of the "
            f"smallest, {least}, by more than its spread, so the data may hold no more structure "
            f"than that; test smaller ranks if there are any"
        )
    elif len(between) == 1 and least < tested[-1]:
        sure = top is not None
        reason = f"{least} components: {_lowest(by_rank, least, best)}"
        if top is None:
            reason = f"Probably {reason}; but no rank has components that the halves repeat"
        else:
            reason += f", and {least} is {_most_stable(by_rank, least)}"
    else:
        reason = _doubt(by_rank, between, (enough, least, top), best)
    if sure and (faults := _faults(taken)):
        sure, reason = False, f"Probably {reason}; but {faults}"
    ranks, deeper = _deeper(candidates, taken)
    return Choice(ranks, sure, between, f"{reason}.{deeper}")


def stable_level(candidates: Sequence[Candidate]) -> float:
    """Agreement from which the components of a rank are taken to be reproduced.

    A share of the best agreement, since few or noisy samples blur all components alike.
    """
    known = [c.agreement for c in candidates if c.ranks[0] >= 2]
    return max(WEAKEST, STABLE * max(known, default=0.0))


def _gain(worse: Candidate, best: Candidate) -> float:
    """Squares that the better of two candidates saves, relative to those left or explained."""
    if not np.isfinite(worse.error):
        return np.inf
    saved, scale = worse.error**2 - best.error**2, min(best.error**2, 1 - best.error**2)
    return saved / scale if scale > 0 else np.inf if saved > 0 else 0.0


def _lowest(by_rank: dict[int, Candidate], rank: int, best: Candidate) -> str:
    """Why a rank is the choice by error, in words."""
    below = by_rank[max(r for r in by_rank if r < rank)]
    return (
        f"the error on hidden features, {100 * by_rank[rank].error:.3g} %, is as good as the "
        f"least, while {below.ranks[0]} has {100 * below.error:.3g} % "
        f"({_rounded(_margin(below, best))} standard errors more)"
    )


def _most_stable(by_rank: dict[int, Candidate], rank: int) -> str:
    """Why a rank is the choice by stability, in words."""
    above = min((r for r in by_rank if r > rank), default=None)
    then = "" if above is None else f"; with {above} it is {by_rank[above].agreement:.2f}"
    return (
        f"the largest rank whose components all come back from other samples (agreement of the "
        f"worst {by_rank[rank].agreement:.2f}{then})"
    )


def _doubt(
    by_rank: dict[int, Candidate],
    between: tuple[int, ...],
    signals: tuple[int, int, int | None],
    best: Candidate,
) -> str:
    """Signals that differ, or an error that still falls, in words."""
    enough, least, top = signals
    last = max(by_rank)
    if len(between) == 1:
        reason = f"Not sure, {least} or more"
    else:
        reason = f"Not sure between {between[0]} and {between[1]}"
    if least == last:
        reason += (
            f": the error on hidden features still falls at the largest rank tested, {last}, as it "
            f"does where more can be told apart or where residuals are correlated over features"
        )
    else:
        reason += f". By error {least} components: {_lowest(by_rank, least, best)}"
    if enough < least:
        reason += (
            f"; the gain beyond {enough}, from {100 * by_rank[enough].error:.3g} % to "
            f"{100 * best.error:.3g} %, is small"
        )
    if top is None:
        return f"{reason}; and no rank has components that the halves repeat"
    return f"{reason}; by stability {top}, {_most_stable(by_rank, top)}"


def _deeper(candidates: Sequence[Candidate], taken: Candidate) -> tuple[tuple[int, ...], str]:
    """The most stable hierarchy on as many components as were taken, and a sentence about it."""
    deep = [c for c in candidates if c.ranks[0] == taken.ranks[0] and len(c.ranks) > 1]
    if not deep:
        return taken.ranks[:1], ""
    best = max(deep, key=lambda c: c.depth_agreement)
    return best.ranks, (
        f" On {best.ranks[0]} components the most stable hierarchy is {best.label}: its deeper "
        f"layers agree by {best.depth_agreement:.2f} between halves, and the error of its first is "
        f"{100 * best.error:.3g} %, {100 * taken.error:.3g} % being the least."
    )


def _margin(worse: Candidate, best: Candidate) -> float:
    """How many standard errors of their difference, half by half, lie between two candidates."""
    if not np.isfinite(worse.error):  # fits that diverged
        return np.inf
    difference = worse.errors[:, 0] - best.errors[:, 0]
    mean, spread = float(difference.mean()), _standard_error(difference)
    return mean / spread if spread > 0 else np.inf if mean > 0 else 0.0


def _rounded(number: float) -> str:
    """Two digits without a power of ten: ``340``."""
    return f"{float(f'{number:.2g}'):g}"


def _faults(c: Candidate) -> str:
    """What is wrong with components that are stable none the less."""
    found = []
    if c.duplicates:
        found.append(f"{c.duplicates} of them repeat another")
    if c.empty:
        found.append(f"{c.empty} of them carry next to nothing")
    return " and ".join(found)


def _standard_error(values: Array) -> float:
    if not np.isfinite(values).all():
        return np.inf
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))
