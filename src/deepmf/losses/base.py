"""What a loss is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from deepmf.core.parameters import Parametrized, check_number
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import State

Term = tuple[float, Array]
"""(weight, B) of ``weight/2 ||X - B H||^2``."""

_PERFECT = 1e-6
"""Share of a layer's own size below which its starting error says nothing of its later one."""


class Loss(Parametrized):
    """A model: for each block, the quadratic that its update decreases.

    Layers count from 0; ``w[l]`` is the weight of layer l's term, ``w[0] = 1``. A loss never sees
    X: the block of H_1 is a sum of ``weight/2 ||X - B H||^2`` and the loss gives each weight and B.
    """

    joint: ClassVar[bool] = True
    """Whether all layers are updated in turn (false: each to its end before the next starts)."""

    consistent: ClassVar[bool] = True
    """Whether every block update decreases one and the same function."""

    errors: ClassVar[Literal["layer", "data"]] = "layer"
    """Which errors the loss is made of: ||W_{l-1} - W_l H_l||^2 or ||X - W_l H_l...H_1||^2."""

    def check_depth(self, depth: int) -> None:
        """Refuse, before any work is done, weights that do not fit the number of layers."""

    def weights(self, errors: Array, sizes: Array) -> Array:
        """Layer weights from each layer's error and the size of what it approximates."""
        return np.ones(len(errors))

    def value(self, layer: Array, data: Array, w: Array) -> float:
        """The loss from the squared errors of both kinds, one per layer."""
        return 0.5 * float(w @ (layer if self.errors == "layer" else data))

    def terms(self, s: State, w: Array) -> list[Term]:
        """(weight, B) of each data term ``weight/2 ||X - B H_1||^2``, the first being layer 1's."""
        raise NotImplementedError(f"{type(self).__name__} needs a method terms(s, w).")

    def first(self, s: State, w: Array) -> tuple[Array, Array]:
        """(A, G) of H_1's block ``1/2 <H, A H> - <G'X, H>``."""
        return normal(self.terms(s, w))

    def H(self, s: State, layer: int, w: Array) -> Quadratic:
        """Quadratic of H_l for every layer but the first."""
        raise NotImplementedError(f"{type(self).__name__} needs a method H(s, layer, w).")

    def W(self, s: State, layer: int, w: Array) -> Quadratic:
        """Quadratic of W_l."""
        raise NotImplementedError(f"{type(self).__name__} needs a method W(s, layer, w).")


def normal(terms: Sequence[Term]) -> tuple[Array, Array]:
    """(A, G) of the normal equations ``A H = G'X``: sums of weight B'B and of weight B."""
    A, G = (sum(parts) for parts in zip(*((w * (B.T @ B), w * B) for w, B in terms)))
    return np.asarray(A), np.asarray(G)


def expected_errors(errors: Array, sizes: Array) -> Array:
    """The errors; a layer that starts perfect has none to go by, and its size is taken instead."""
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
