"""Models as lists of terms, and the block of each factor that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Literal, NamedTuple

import numpy as np

from deepmf.core.datafit import SQUARED, Datafit
from deepmf.core.quadratic import Array
from deepmf.core.state import State
from deepmf.core.surrogate import Surrogate


class DataTerm(NamedTuple):
    """weight * d(X, B H_1), as the data side sees it."""

    weight: float
    B: Array
    fit: Datafit = SQUARED


class Factor(NamedTuple):
    """A factor by its letter and layer, counted from 0: ``("W", 0)`` is the paper's W_1."""

    kind: Literal["W", "H"]
    layer: int


X = "X"
"""The data, as the target of a term."""


def W(layer: int) -> Factor:
    """W of a layer, counted from 0."""
    return Factor("W", layer)


def H(layer: int) -> Factor:
    """H of a layer, counted from 0."""
    return Factor("H", layer)


@dataclass(frozen=True)
class Term:
    """weight * d(target, product of the chain).

    The target is the data `X` or a factor. The chain of a data term ends with ``H(0)``, which is in
    no other; each factor occurs once, so that the term is convex in each.
    """

    weight: float
    target: Factor | str
    chain: tuple[Factor, ...]
    fit: Datafit = SQUARED

    def __post_init__(self) -> None:
        """Refuse a product that no block can handle."""
        if self.of_data != (self.chain[-1:] == (H(0),)) or len(self.chain) < 2:
            raise ValueError(
                f"The chain {self.chain} of a term must have two factors or more, and end with "
                f"H(0) where the target is X and nowhere else; the target is {self.target!r}."
            )
        if len({self.target, *self.chain}) <= len(self.chain):
            raise ValueError(
                f"The term of target {self.target!r} and chain {self.chain} has a factor twice; a "
                f"block update needs each factor once."
            )

    @property
    def of_data(self) -> bool:
        """Whether the target is the data."""
        return self.target == X

    def involves(self, factor: Factor) -> bool:
        """Whether the term depends on the factor."""
        return self.target == factor or factor in self.chain


class Model:
    """The terms of a loss for one depth and one set of weights, by the block they belong to.

    Parameters
    ----------
    terms : sequence of Term
        What the fit decreases.
    blocks : mapping of Factor to sequence of Term
        The terms that the update of each factor decreases: those that involve it, unless the
        model is inconsistent by design.
    """

    def __init__(self, terms: Sequence[Term], blocks: Mapping[Factor, Sequence[Term]]) -> None:
        self.terms = tuple(terms)
        self.data: list[Term] = []
        """The data terms of all blocks, one for each chain and fit: what the data side answers.
        Their weights are those in the block of ``H(0)``."""
        self._blocks = {
            factor: [(t, self._known(t, factor == H(0))) for t in own if t.involves(factor)]
            for factor, own in blocks.items()
        }

    def _known(self, t: Term, weighted: bool) -> int:
        """The number of a data term's surrogate; -1 for other terms."""
        if not t.of_data:
            return -1
        weight = t.weight if weighted else 0.0
        for k, d in enumerate(self.data):
            if d.chain == t.chain and d.fit == t.fit:
                self.data[k] = replace(d, weight=d.weight + weight)
                return k
        self.data.append(replace(t, weight=weight))
        return len(self.data) - 1

    def bases(self, s: State) -> tuple[DataTerm, ...]:
        """The data terms with their bases multiplied out: H_1's problem."""
        return tuple(DataTerm(t.weight, multiplied(s, t.chain[:-1]), t.fit) for t in self.data)

    def block(self, s: State, factor: Factor) -> Surrogate:
        """Surrogate of the block's terms as a function of one factor other than ``H(0)``.

        A term whose chain is ``L M R`` with the factor M contributes its surrogate pulled back
        along ``M -> L M R``; a term whose target is M contributes the surrogate of its target.
        """
        M, parts = s[factor], []
        for t, known in self._blocks[factor]:
            if t.target == factor:
                part = t.fit.target(multiplied(s, t.chain))
            else:
                i, end = t.chain.index(factor), len(t.chain) - t.of_data
                whole = s.data.terms[known] if t.of_data else t.fit.product(s[t.target])  # type: ignore[index]
                left, right = t.chain[:i], t.chain[i + 1 : end]
                part = whole.through(
                    multiplied(s, left) if left else None,
                    multiplied(s, right) if right else None,
                    M,
                )
            parts.append(float(t.weight) * part)
        return reduce(add, parts)


def multiplied(s: State, chain: Iterable[Factor]) -> Array:
    """The product of some factors, from left to right."""
    return reduce(np.matmul, [s[factor] for factor in chain])
