"""Models as lists of terms, and the block of each factor that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Literal, NamedTuple

import numpy as np

from deepmf.core.datafit import SQUARED, Datafit, SquaredError
from deepmf.core.quadratic import Array, Quadratic
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

    @property
    def of_codes(self) -> bool:
        """Whether the target is a code on the data side."""
        return False

    @property
    def layer(self) -> int:
        """The layer whose W begins the chain: the one that the term fits."""
        return self.chain[0].layer

    def involves(self, factor: Factor) -> bool:
        """Whether the term depends on the factor."""
        return self.target == factor or factor in self.chain


@dataclass(frozen=True)
class CodeTerm(Term):
    """A term of a model with depth over codes: the term of X' with depth over components.

    ::

        X' ~ W~_l H~_l ... H~_1   is   X ~ W_1 Z_2 ... Z_l H_l    with  H~_1' = W_1,  H~_l' = Z_l,
        W~_{l-1} ~ W~_l H~_l      is   H_{l-1} ~ Z_l H_l          and   W~_l' = H_l

    Z_l is kept as ``W(l)``. Every chain ends with a code, and codes are on the data side.
    """

    def __post_init__(self) -> None:
        """Refuse distances from codes that do not follow from the codes' Gram matrix."""
        if self.of_codes and type(self.fit) is not SquaredError:
            raise ValueError(
                f"Depth over codes needs squared errors below the first layer, got {self.fit!r}."
            )

    @classmethod
    def of(cls, t: Term) -> CodeTerm:
        """The term for X from the one for X'."""
        target = t.target if isinstance(t.target, str) else _swapped(t.target)
        return cls(t.weight, target, tuple(_swapped(f) for f in reversed(t.chain)), t.fit)

    @property
    def of_codes(self) -> bool:
        """Whether the target is a code on the data side."""
        return not self.of_data


def _swapped(factor: Factor) -> Factor:
    return Factor("H" if factor.kind == "W" else "W", factor.layer)


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
            factor: [
                (t, self._known(t, factor == H(0)))
                for t in own
                if t.involves(factor) or (factor == H(0) and isinstance(t, CodeTerm))
            ]
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
        return tuple(DataTerm(t.weight, data_basis(s, t), t.fit) for t in self.data)

    def coupling(self, s: State) -> Array | None:
        """T such that ``1/2 <H, T H>`` are the terms between codes; None where there are none.

        With the row scales s and the rows E_l of all codes that are the layer's::

            weight/2 ||diag(1/s) (H_{l-1} - P H_l)||^2  =  weight/2 ||K H||^2,
            K = diag(1/s) (E_{l-1} - P E_l)
        """
        total = None
        for t, _ in self._blocks.get(H(0), ()):
            if t.of_codes and t.weight:
                above = t.target.layer  # type: ignore[union-attr]
                P = multiplied(s, t.chain[:-1])
                K = s.placed(np.eye(len(P)), above) - s.placed(P, t.chain[-1].layer)
                K /= s.scales[above][:, None]
                total = t.weight * K.T @ K if total is None else total + t.weight * K.T @ K
        return total

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
                i, end = t.chain.index(factor), len(t.chain) - (t.of_data or t.of_codes)
                left: Array | None = multiplied(s, t.chain[:i]) if i else None
                right = multiplied(s, t.chain[i + 1 : end]) if i + 1 < end else None
                if t.of_codes:
                    left = np.eye(len(M)) if left is None else left
                    left = left / s.scales[t.target.layer][:, None]  # type: ignore
                    whole: Surrogate = between_codes(s, t)
                elif t.of_data:
                    whole = s.data.terms[known]
                    if s.over_codes:
                        right = np.eye(M.shape[1]) if right is None else right
                        right = s.placed(right, t.chain[-1].layer)
                else:
                    whole = t.fit.product(s[t.target])  # type: ignore[index]
                part = whole.through(left, right, M)
            parts.append(float(t.weight) * part)
        return reduce(add, parts)


def data_basis(s: State, t: Term) -> Array:
    """B such that a data term's product is B times the codes on the data side."""
    return s.placed(multiplied(s, t.chain[:-1]), t.chain[-1].layer)


def between_codes(s: State, t: Term) -> Quadratic:
    """``P -> 1/2 ||diag(1/s) H_k - P H_l||^2`` from the Gram matrix of all codes."""
    gram, own = s.data.gram, s.rows(t.chain[-1].layer)
    above = t.target.layer  # type: ignore[union-attr]
    rows, scales = s.rows(above), s.scales[above]
    size = float(np.sum(np.diag(gram)[rows] / scales**2))
    return Quadratic(((1.0, gram[own, own]),), gram[rows, own] / scales[:, None], 0.5 * size)


def multiplied(s: State, chain: Iterable[Factor]) -> Array:
    """The product of some factors, from left to right."""
    return reduce(np.matmul, [s[factor] for factor in chain])
