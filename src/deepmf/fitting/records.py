"""Records of a fit's state as checkpoints hold them, those of older versions included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import DataSurrogates, State


def by_name(*records: type) -> dict[str, Callable[..., Any]]:
    """Constructors by the names that files have for them."""
    return {
        **{record.__name__: record for record in records},
        "Quadratic": _quadratic,
        "DataSurrogates": DataSurrogates,
        "DataProducts": _Products,
        "State": _state,
    }


def _quadratic(terms: list[Any], C: Array, const: float) -> Quadratic:
    return Quadratic(tuple((A, B) for A, B in terms), C, const)


class _Products:
    """X H_1', H_1 H_1' and the penalty, which checkpoints of the first version hold."""

    def __init__(self, XHt: Array, HHt: Array, penalty: float) -> None:
        self.XHt, self.HHt, self.penalty = XHt, HHt, penalty

    def surrogates(self, norm2: float, depth: int) -> DataSurrogates:
        """The surrogates that they stand for: one for all terms, or one for each."""
        exact = self.XHt.ndim == 2
        XHts = np.broadcast_to(self.XHt, (depth, *self.XHt.shape)) if exact else self.XHt
        terms = tuple(Quadratic(((1.0, self.HHt),), XHt, 0.5 * norm2) for XHt in XHts)
        return DataSurrogates(terms, exact, self.penalty)


def _state(W: list[Array], H: list[Array], data: Any, norm2: float = 0.0) -> State:
    if isinstance(data, _Products):
        data = data.surrogates(norm2, len(W))
    return State(W, H, data)
