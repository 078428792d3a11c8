"""The interface of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from deepmf.core.parameters import Parametrized, check_number
from deepmf.core.quadratic import Array
from deepmf.core.terms import CodeTerm, Factor, H, Model, Term, W

_PERFECT = 1e-6
"""Fraction of a layer's own size below which its starting error says nothing of its later one."""


class Loss(Parametrized):
    """A model: a list of terms, from which every block follows.

    A subclass needs `terms`. This is the data-centric model::

        class DataCentric(Loss):
            def terms(self, depth, w):
                return [
                    Term(w[l], X, (W(l), *(H(k) for k in range(l, -1, -1)))) for l in range(depth)
                ]

    Layers count from 0; ``w[l]`` is the weight of layer l, ``w[0] = 1``. A model never sees X: the
    data side answers each data term by a surrogate.
    """

    joint: ClassVar[bool] = True
    """Whether all layers are updated in turn (false: each to its end before the next starts)."""

    consistent: ClassVar[bool] = True
    """Whether every block update decreases one and the same function."""

    def terms(self, depth: int, w: Array) -> list[Term]:
        """Terms that the fit decreases, for some number of layers and their weights."""
        raise NotImplementedError(f"{type(self).__name__} needs a method terms(depth, w).")

    def block_terms(self, factor: Factor, depth: int, w: Array) -> list[Term]:
        """Terms that the update of one factor decreases: by default all."""
        return self.terms(depth, w)

    def weights(self, errors: Array, sizes: Array) -> Array:
        """Layer weights from each layer's error and the size of what it approximates."""
        return np.ones(len(errors))

    def check_depth(self, depth: int) -> None:
        """Refuse, before any work is done, weights that do not fit the number of layers."""

    @property
    def errors(self) -> Literal["layer", "data"]:
        """The errors that the model compares: ||W_{l-1} - W_l H_l||^2 or ||X - W_l H_l...H_1||^2.

        Its layers and penalties are weighted by these.
        """
        deep = self.terms(2, np.ones(2))
        return "data" if all(t.of_data for t in deep) else "layer"

    def model(self, depth: int, w: Array, layers: Sequence[int] | None = None) -> Model:
        """The blocks of all layers, or of some of them and the terms that they are in."""
        own = range(depth) if layers is None else layers
        factors = [factor for k in own for factor in (H(k), W(k))]
        terms = [t for t in self.terms(depth, w) if any(f.layer in own for f in t.chain)]
        return Model(terms, {f: self.block_terms(f, depth, w) for f in factors})

    def model_over_codes(self, depth: int, w: Array) -> Model:
        """The model of X' with its factors transposed: depth over codes.

        The codes of all layers are one block, ``H(0)``: given the other factors,
        each column's codes are a problem of their own.
        """
        blocks: dict[Factor, list[Term]] = {H(0): []}
        for k in range(depth):
            blocks[W(k)] = [CodeTerm.of(t) for t in self.block_terms(H(k), depth, w)]
            for t in map(CodeTerm.of, self.block_terms(W(k), depth, w)):
                if t.involves(H(k)) and t not in blocks[H(0)]:
                    blocks[H(0)].append(t)
        return Model([CodeTerm.of(t) for t in self.terms(depth, w)], blocks)


def expected_errors(errors: Array, sizes: Array) -> Array:
    """The errors, with a layer's size in place of an error that is zero at the start."""
    relative = errors / sizes
    relative[0] = max(relative[0], _PERFECT)
    return np.where(relative < _PERFECT, 1.0, relative) * sizes


def layer_weights(given: object, depth: int, what: str) -> Array:
    """[1, g, g, ...] from one number, or [1, *g] from one per layer after the first."""
    listed = list(given) if isinstance(given, Sequence | np.ndarray) else [given]
    for value in listed:
        check_number(what, value, 0, 1e30)
    values = np.array(listed, dtype=float)
    if len(values) not in (1, depth - 1) and depth > 1:
        raise ValueError(
            f"{what} has {len(values)} values for {depth} layers; give one number, "
            f"or {depth - 1} (one for each layer after the first)."
        )
    return np.concatenate([[1.0], np.broadcast_to(values, depth - 1) if depth > 1 else []])
