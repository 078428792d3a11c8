"""Which ranks the numbers of a scan speak for, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepmf.core.quadratic import Array

STABLE = 0.95
"""Agreement from which components of different seeds are taken to be the same."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """What fits of some ranks have shown.

    Attributes
    ----------
    ranks : tuple of int
        r_1, ..., r_L.
    errors : array, folds x L
        ||X - W_l H_l...H_1|| / ||X|| over what was held out, per fold and layer.
    agreements : array, pairs of seeds x L
        1 - MRSA / 50 of matched components: 1 where they are the same, 0 at right angles.
    fit_error : float
        ||X - W_1 H_1|| / ||X|| of the best fit to all of X.
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
        """Of layer 1, mean over the folds."""
        return float(self.errors[:, 0].mean())

    @property
    def spread(self) -> float:
        """Standard error of `error`."""
        return _standard_error(self.errors[:, 0])

    @property
    def agreement(self) -> float:
        """Of layer 1, mean over all pairs of seeds."""
        return float(self.agreements[:, 0].mean())

    @property
    def depth_agreement(self) -> float:
        """Of the least stable of the deeper layers."""
        return float(self.agreements[:, 1:].mean(axis=0).min())


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
        Values of r_1 that signals speak for; one where they agree.
    sentence : str
        The choice in words, with its reasons.
    """

    ranks: tuple[int, ...]
    sure: bool
    between: tuple[int, ...]
    sentence: str


def choose(candidates: Sequence[Candidate], held_out: str = "held-out entries") -> Choice:
    """r_1 by the one-standard-error rule and by stability; deeper ranks by stability.

    ::

        by error       the smallest r_1 with error - least error <= one standard error of it
        by stability   the largest r_1 >= 2 with agreement >= 0.95

    The standard error is that of the difference fold by fold: folds hold out the same part of the
    data whatever the ranks, which ``held_out`` names. Where the two are the same, inside the range
    tested, the choice is sure. The error at the end of that range only says that the range is too
    short.
    """
    by_rank: dict[int, Candidate] = {}
    for c in sorted(candidates, key=lambda c: c.error):
        by_rank.setdefault(c.ranks[0], c)
    tested = sorted(by_rank)
    best = min(by_rank.values(), key=lambda c: c.error)
    if not np.isfinite(best.error):
        reason = (
            f"Not sure: no rank tested has a finite error on {held_out} in every fold, because "
            f"fits diverged or too little was held out; try another model or more data."
        )
        return Choice((tested[0],), False, tuple(tested), reason)
    low = min(r for r in tested if _margin(by_rank[r], best) <= 1)
    stable = [r for r in tested if r >= 2 and by_rank[r].agreement >= STABLE]
    top = max(stable) if stable else None

    sure = False
    between: tuple[int, ...] = (low,)
    if low == tested[0]:
        reason = (
            f"Not sure: no rank tested lowers the error on {held_out} below that of the "
            f"smallest, {low}, by more than its spread, so the data may hold no more structure "
            f"than that; test smaller ranks if there are any"
        )
    elif low == tested[-1]:
        reason = (
            f"Not sure: the error on {held_out} still falls at the largest rank tested, "
            f"{low}, so that more can be told apart there; test larger ones"
        )
        if top is not None and top < low:
            between = (top, low)
            reason += f", or take {top}, {_stable(by_rank[top])}"
    else:
        below = by_rank[tested[tested.index(low) - 1]]
        reason = (
            f"{low} components: the error on {held_out}, {100 * by_rank[low].error:.3g} %, "
            f"is within one standard error of the least, while {below.ranks[0]} has "
            f"{100 * below.error:.3g} % ({_rounded(_margin(below, best))} standard errors more)"
        )
        if top == low:
            sure = True
            reason += f", and {low} is {_stable(by_rank[low])}"
        elif top is None:
            reason = f"Probably {reason}; but no rank gives the same components from every seed"
        else:
            between = (min(low, top), max(low, top))
            reason = (
                f"Not sure between {between[0]} and {between[1]}. By error {reason}; by stability "
                f"{top}, {_stable(by_rank[top])}"
            )
    taken = by_rank[between[0]]
    if sure and (faults := _faults(taken)):
        sure, reason = False, f"Probably {reason}; but {faults}"
    ranks, deeper = _deeper(candidates, taken)
    return Choice(ranks, sure, between, f"{reason}.{deeper}")


def _stable(c: Candidate) -> str:
    return (
        f"the largest rank whose components hardly depend on the seed (agreement {c.agreement:.2f})"
    )


def _deeper(candidates: Sequence[Candidate], taken: Candidate) -> tuple[tuple[int, ...], str]:
    """The most stable hierarchy on as many components as were taken, and a sentence about it."""
    deep = [c for c in candidates if c.ranks[0] == taken.ranks[0] and len(c.ranks) > 1]
    if not deep:
        return taken.ranks[:1], ""
    best = max(deep, key=lambda c: c.depth_agreement)
    return best.ranks, (
        f" On {best.ranks[0]} components the most stable hierarchy is {best.label}: its deeper "
        f"layers agree by {best.depth_agreement:.2f} between seeds, and the error of its first is "
        f"{100 * best.error:.3g} %, {100 * taken.error:.3g} % being the least."
    )


def _margin(worse: Candidate, best: Candidate) -> float:
    """How many standard errors of their difference, fold by fold, lie between two candidates."""
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
