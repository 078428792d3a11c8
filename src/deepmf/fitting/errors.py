"""Errors of every layer and the value of a model's terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepmf.core.datafit import SquaredError
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import State
from deepmf.core.terms import (
    CodeTerm,
    DataTerm,
    H,
    Term,
    W,
    X,
    between_codes,
    data_basis,
    multiplied,
)
from deepmf.data.panels import Panels
from deepmf.losses.data_centric import chain

_GUARD = 1e-7
"""Relative squared error below which traces have too few digits left to follow a slow decrease."""


@dataclass(frozen=True)
class Errors:
    """Squared errors of both kinds, one per layer, and the values of a model's terms."""

    layer: Array
    """||W_{l-1} - W_l H_l||^2."""
    data: Array
    """||X - W_l H_l...H_1||^2."""
    terms: Array
    """d(target, product of the chain) for each term, without its weight."""


def measure(panels: Panels, s: State, terms: Sequence[Term] = ()) -> Errors:
    """All errors of a state; each product and each residual is computed once."""
    depth = range(s.depth)
    form = CodeTerm.of if s.over_codes else (lambda t: t)
    of_layers = [form(Term(1.0, X if k == 0 else W(k - 1), (W(k), H(k)))) for k in depth]
    of_data = [form(Term(1.0, X, chain(k))) for k in depth]
    wanted = {(t.target, t.chain): t for t in [*of_layers, *of_data] if t.of_data}
    bases = [data_basis(s, t) for t in wanted.values()]
    data = dict(zip(wanted, data_errors2(panels, s, bases)))

    def squares(t: Term) -> float:
        if (t.target, t.chain) not in data:
            data[t.target, t.chain] = _squares(panels, s, t)
        return data[t.target, t.chain]

    layer = np.array([squares(t) for t in of_layers])
    others = [t for t in terms if type(t.fit) is not SquaredError]
    values = dict(zip(map(id, others), _values(panels, s, others)))
    return Errors(
        layer,
        np.array([squares(t) for t in of_data]),
        np.array([values[id(t)] if id(t) in values else 0.5 * squares(t) for t in terms]),
    )


def data_errors2(panels: Panels, s: State, bases: Sequence[Array]) -> Array:
    """||X - B H_1||^2 for each B: from traces where these keep their digits, else from residuals.

    ``||X||^2 - 2 <B, X H_1'> + <B'B, H_1 H_1'>`` cancels as the fit becomes exact; below the guard
    the panels measure the residual itself. So they do where surrogates only lie above the terms.
    """
    out = np.zeros(len(bases))
    if s.data.exact:
        out[:] = [2 * s.data.terms[0].value(B) for B in bases]
    doubtful = np.flatnonzero(out < _GUARD * panels.norm2)
    if len(doubtful):
        out[doubtful] = panels.residuals2([bases[int(k)] for k in doubtful])
    return out


def part_sizes(s: State) -> list[Array] | None:
    """||w_k||^2 ||h_k||^2 of the components of each layer; None without a squared data term."""
    if not s.data.terms or not isinstance(s.data.terms[0], Quadratic):
        return None
    sizes, lift = [], np.eye(len(s.data.gram))
    for k in range(s.depth):
        if s.over_codes:
            own = s.data.gram[s.rows(k), s.rows(k)]
        else:
            lift = s.H[k] @ lift if k else lift
            own = lift @ s.data.gram @ lift.T
        sizes.append(np.sum(s.components(k) ** 2, axis=0) * np.diag(own))
    return sizes


def _squares(panels: Panels, s: State, t: Term) -> float:
    if t.of_data:
        return float(data_errors2(panels, s, [data_basis(s, t)])[0])
    if t.of_codes:
        return max(2 * between_codes(s, t).value(multiplied(s, t.chain[:-1]) / _scales(s, t)), 0.0)
    return float(np.sum((s[t.target] - multiplied(s, t.chain)) ** 2))  # type: ignore[index]


def _scales(s: State, t: Term) -> Array:
    """The scales of the codes that are a term's target, as a column."""
    return s.scales[t.target.layer][:, None]  # type: ignore[union-attr]


def _values(panels: Panels, s: State, terms: Sequence[Term]) -> list[float]:
    """d(target, product) of terms that are not squared errors."""
    seen = [DataTerm(1.0, data_basis(s, t), t.fit) for t in terms if t.of_data]
    found = iter(panels.values(seen).tolist() if seen else [])
    return [next(found) if t.of_data else _value(s, t) for t in terms]


def _value(s: State, t: Term) -> float:
    *left, last = t.chain
    return t.fit.value(s[t.target], multiplied(s, left), s[last])  # type: ignore[index]
