"""Checks of models: every block is the loss as a function of one factor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from deepmf.checks.promise import kind_of, promise
from deepmf.core.quadratic import Array
from deepmf.core.state import DataSurrogates, State
from deepmf.core.terms import Factor, H, W
from deepmf.losses import Loss

_SHAPES = (
    (7, 12, [4]),
    (7, 12, [5, 3]),
    (11, 6, [5, 4, 2]),
)
"""m, n and ranks."""


def check_loss(loss: Loss, random_state: int = 0) -> None:
    """Check a loss on random factors of one, two and three layers.

    For every factor M, its quadratic q and any D: ``q(M + D) - q(M)`` is the change of the sum of
    all terms when M becomes M + D and all else stays. Weights are finite, nonnegative, and 1 for
    layer 1.

    Parameters
    ----------
    loss : Loss
        What is checked: one whose layers are fitted together (``joint``, ``consistent``).
    random_state : int
        Seed of the factors.

    Raises
    ------
    AssertionError
        The first promise that is broken.

    Examples
    --------
    >>> from deepmf import DataCentric
    >>> from deepmf.checks import check_loss
    >>> check_loss(DataCentric(0.3))
    """
    kind_of("loss", loss, Loss)
    promise(
        loss.joint and loss.consistent,
        loss,
        "it says that its blocks do not decrease one function (joint, consistent); there is "
        "nothing to compare them with.",
    )
    rng = np.random.default_rng(random_state)
    for m, n, ranks in _SHAPES:
        model = _Model.drawn(m, n, ranks, rng)
        w = loss.weights(*model.errors_and_sizes(loss))
        promise(np.shape(w) == (len(ranks),), loss, f"it has {np.shape(w)} weights for {ranks}.")
        promise(np.isfinite(w).all() and w.min() >= 0, loss, f"its weights are {w}.")
        promise(w[0] == 1, loss, f"its first weight is {w[0]}, not 1.")
        for layer in range(len(ranks)):
            for factor in (H(layer), W(layer)):
                _block(loss, model, factor, w, rng)


def _block(loss: Loss, model: _Model, factor: Factor, w: Array, rng: np.random.Generator) -> None:
    s, M = model.state(loss, w), model[factor]
    blocks = loss.model(len(model.W), w)
    if factor == H(0):
        parts = [t.weight * t.fit.codes(model.X, t.B, M) for t in blocks.bases(s) if t.weight]
        q = sum(parts[1:], start=parts[0])
    else:
        q = blocks.block(s, factor)
    for size in (1.0, 0.01):
        D = size * rng.standard_normal(M.shape)
        before, after = model.value(loss, w), model.replaced(factor, M + D).value(loss, w)
        change = q.change(M, D)
        promise(
            abs(change - (after - before)) <= 1e-9 * (abs(before) + abs(after)),
            loss,
            f"when {factor.kind}_{factor.layer + 1} of {len(model.W)} layers moves, its value "
            f"changes by {after - before:.8g} and the block's quadratic by {change:.8g}.",
        )


@dataclass
class _Model:
    """X and all factors, dense."""

    X: Array
    W: list[Array]
    H: list[Array]

    @classmethod
    def drawn(cls, m: int, n: int, ranks: list[int], rng: np.random.Generator) -> _Model:
        widths = [n, *ranks]
        return cls(
            rng.standard_normal((m, n)),
            [rng.standard_normal((m, r)) for r in ranks],
            [rng.standard_normal((r, widths[k])) for k, r in enumerate(ranks)],
        )

    def __getitem__(self, factor: Factor) -> Array:
        return (self.W if factor.kind == "W" else self.H)[factor.layer]

    def replaced(self, factor: Factor, M: Array) -> _Model:
        other = _Model(self.X, list(self.W), list(self.H))
        (other.W if factor.kind == "W" else other.H)[factor.layer] = M
        return other

    def state(self, loss: Loss, w: Array) -> State:
        """The small side, with the surrogates that panels would send."""
        s = State(list(self.W), [np.empty((len(self.H[0]), 0)), *self.H[1:]])
        bases = loss.model(len(self.W), w).bases(s)
        s.data = DataSurrogates(tuple(t.fit.basis(self.X, t.B, self.H[0]) for t in bases))
        return s

    def errors(self) -> tuple[Array, Array]:
        """||W_{l-1} - W_l H_l||^2 and ||X - W_l H_l...H_1||^2 of each layer."""
        above, layer, data, codes = self.X, [], [], np.eye(self.X.shape[1])
        for W_l, H_l in zip(self.W, self.H):
            codes = H_l @ codes
            layer.append(np.sum((above - W_l @ H_l) ** 2))
            data.append(np.sum((self.X - W_l @ codes) ** 2))
            above = W_l
        return np.array(layer), np.array(data)

    def errors_and_sizes(self, loss: Loss) -> tuple[Array, Array]:
        layer, data = self.errors()
        if loss.errors == "data":
            return data, np.full(len(data), np.sum(self.X**2))
        return layer, np.array([np.sum(M**2) for M in (self.X, *self.W[:-1])])

    def value(self, loss: Loss, w: Array) -> float:
        """The sum of the loss's terms."""
        values = (
            float(t.weight)
            * t.fit.value(
                self.X if t.of_data else self[t.target],  # type: ignore[index]
                reduce(np.matmul, [self[factor] for factor in t.chain[:-1]]),
                self[t.chain[-1]],
            )
            for t in loss.terms(len(self.W), w)
        )
        return float(sum(values))
