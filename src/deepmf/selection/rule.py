"""The choice of ranks from the measurements of a scan, and its certainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepmf._utils.messages import counted
from deepmf.core.quadratic import Array

STABLE = 0.9
"""Share of the best agreement from which the components of a rank are taken to be reproduced."""

WEAKEST = 0.6
"""Agreement, a correlation of 0.8, below which components are never taken to be reproduced."""

LEVEL = 0.02
"""Share of the last step's gain below which the gains of all further ranks count for nothing."""

BEND = 0.5
"""Share of the last step's gain below which further ranks may be detail, if nothing is sure."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Measurements of the fits of some ranks.

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
        """Error of layer 1 on hidden features, mean over the halves."""
        return float(self.errors[:, 0].mean())

    @property
    def spread(self) -> float:
        """Standard error of `error`."""
        return _standard_error(self.errors[:, 0])

    @property
    def agreement(self) -> float:
        """Agreement of layer 1, median over the splits."""
        return float(np.median(self.agreements[:, 0]))

    @property
    def depth_agreement(self) -> float:
        """Agreement of the least stable deeper layer, median over the splits."""
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
                       or (e^2 - least e^2) <= 0.02 (e'^2 - least e^2), e' of the rank before
        by stability   the largest r_1 >= 2 whose agreement is >= 0.9 of the best, and >= 0.6

    Where the two are the same, inside the range tested, the choice is sure. Else the plausible
    range spans them and begins no later than the bend of the error, the smallest rank with 0.5 in
    place of 0.02; the choice by stability is taken. The standard error is that of the difference
    half by half: halves and hidden features are the same whatever the ranks.

    The second scale of error, and the bend, are there because an error may fall forever: where
    residuals are correlated over features, as in scenes, components beyond the last real one
    predict a little, reliably.
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
    low = min(r for r in tested if _levelled(by_rank, r, best, LEVEL))
    bend = min(r for r in tested if _levelled(by_rank, r, best, BEND))
    level = stable_level(candidates)
    stable = [r for r in tested if r >= 2 and by_rank[r].agreement >= level]
    top = max(stable) if stable else None
    signals = [low] if top is None else [low, top]

    sure = False
    if low == tested[0]:
        signals = [low]
        reason = (
            f"Not sure: no rank tested lowers the error on hidden features below that of the "
            f"smallest, {low}, by more than its spread, so the data may hold no more structure "
            f"than that; test smaller ranks if there are any"
        )
    elif low == top and low < tested[-1]:
        sure = True
        reason = (
            f"{counted(low, 'component')}: {_lowest(by_rank, low)}, and {low} is "
            f"{_stablest(by_rank, low)}"
        )
        if faults := _faults(by_rank[low]):
            sure, reason = False, f"Probably {reason}; but {faults}"
    else:
        signals.append(bend)
        reason = _doubt(by_rank, min(signals), low, top)
    between = tuple(sorted({min(signals), max(signals)}))
    taken = by_rank[top if top is not None and low > tested[0] else low]
    ranks, deeper = _deeper(candidates, taken)
    return Choice(ranks, sure, between, f"{reason}.{deeper}")


def _doubt(by_rank: dict[int, Candidate], first: int, low: int, top: int | None) -> str:
    """Signals that differ, or an error that still falls, in words."""
    last = max(low, top or low)
    span = f"between {first} and {last}" if first < last else f"{last} or more"
    span += f" ({low if top is None else top} is the best guess)" if first < last else ""
    if low == max(by_rank):
        error = (
            f"the error on hidden features still falls at the largest rank tested, {low}, as it "
            f"does where more can be told apart, or forever where residuals are correlated over "
            f"features"
        )
    else:
        error = f"by error {counted(low, 'component')}: {_lowest(by_rank, low)}"
    reason = f"Not sure, {span}: {error}"
    if first < min(low, top or low):
        before = max(r for r in by_rank if r < first)
        reason += (
            f"; but all ranks beyond {first} gain less than half of what the step from {before} "
            f"to {first} does"
        )
    if top is None:
        return f"{reason}; and no rank gives the same components from both halves of the samples"
    return f"{reason}; by stability {top}, {_stablest(by_rank, top)}"


def _levelled(by_rank: dict[int, Candidate], rank: int, best: Candidate, share: float) -> bool:
    """Whether further ranks gain nothing, or no more than a share of the step to this one."""
    here = by_rank[rank]
    if _margin(here, best) <= 1:
        return True
    before = max((r for r in by_rank if r < rank), default=None)
    if before is None or not np.isfinite(here.error):
        return False
    step = by_rank[before].error ** 2 - best.error**2
    return here.error**2 - best.error**2 <= share * step


def stable_level(candidates: Sequence[Candidate]) -> float:
    """Agreement from which the components of a rank are taken to be reproduced.

    A share of the best agreement, since few or noisy samples blur all components alike.
    """
    known = [c.agreement for c in candidates if c.ranks[0] >= 2]
    return max(WEAKEST, STABLE * max(known, default=0.0))


def _lowest(by_rank: dict[int, Candidate], rank: int) -> str:
    """Why a rank is the choice by error, in words."""
    below = max(r for r in by_rank if r < rank)
    return (
        f"the error on hidden features, {100 * by_rank[rank].error:.3g} % against "
        f"{100 * by_rank[below].error:.3g} % with {below}, hardly falls further (least "
        f"{100 * min(c.error for c in by_rank.values()):.3g} %)"
    )


def _stablest(by_rank: dict[int, Candidate], rank: int) -> str:
    """Why a rank is the choice by stability, in words."""
    above = min((r for r in by_rank if r > rank), default=None)
    then = "" if above is None else f"; with {above} it is {by_rank[above].agreement:.2f}"
    return (
        f"the largest rank whose components all come back from other samples (agreement of the "
        f"worst {by_rank[rank].agreement:.2f}{then})"
    )


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
    """Difference of two candidates' errors, half by half, in standard errors."""
    if not np.isfinite(worse.error):  # fits that diverged
        return np.inf
    difference = worse.errors[:, 0] - best.errors[:, 0]
    mean, spread = float(difference.mean()), _standard_error(difference)
    return mean / spread if spread > 0 else np.inf if mean > 0 else 0.0


def _faults(c: Candidate) -> str:
    """Faults of components that are stable nevertheless, in words."""
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
