"""Errors of every layer and the value of a model's terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepmf.core.datafit import SQUARED, Datafit, SquaredError
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
    """Distances of both kinds, doubled, one per layer, and the values of a model's terms.

    For squared errors twice the distance is ||.||^2, for divergences the deviance.
    """

    layer: Array
    """Twice the distance of W_l H_l from W_{l-1}."""
    data: Array
    """Twice the distance of W_l H_l...H_1 from X."""
    terms: Array
    """d(target, product of the chain) for each term, without its weight."""


def measure(
    panels: Panels,
    s: State,
    terms: Sequence[Term] = (),
    fits: Sequence[Datafit] = (),
    whole: bool = True,
) -> Errors:
    """All errors of a state, in the layers' own distances; each product is computed once.

    A divergence from X costs a pass over it: without ``whole`` only those that the terms need are
    measured, and others are NaN.
    """
    depth = range(s.depth)
    form = CodeTerm.of if s.over_codes else (lambda t: t)
    fits = fits or [SQUARED] * s.depth
    own = [fits[k] if k == 0 or not s.over_codes else SQUARED for k in depth]
    of_layers = [form(Term(1.0, X if k == 0 else W(k - 1), (W(k), H(k)), own[k])) for k in depth]
    of_data = [form(Term(1.0, X, chain(k), fits[k])) for k in depth]
    known = [t for t in of_data if whole or type(t.fit) is SquaredError]
    wanted = [*terms, *of_layers, *known]
    found: dict[tuple[object, ...], float] = _of_data(panels, s, [t for t in wanted if t.of_data])

    def value(t: Term) -> float:
        if (key := _key(t)) not in found:
            found[key] = np.nan if t.of_data else _of_factor(s, t)
        return found[key]

    return Errors(
        np.array([2 * value(t) for t in of_layers]),
        np.array([2 * value(t) for t in of_data]),
        np.array([value(t) for t in terms]),
    )


def _key(t: Term) -> tuple[object, ...]:
    return t.target, t.chain, id(t.fit)  # hashing settings takes as long as a small block


def _of_data(panels: Panels, s: State, terms: Sequence[Term]) -> dict[tuple[object, ...], float]:
    """Distances from X: of squared errors from what is known, of others in one pass."""
    terms = list({_key(t): t for t in terms}.values())
    squared = [t for t in terms if type(t.fit) is SquaredError]
    others = [t for t in terms if type(t.fit) is not SquaredError]
    found: dict[tuple[object, ...], float] = {}
    if squared:
        errors = data_errors2(panels, s, [data_basis(s, t) for t in squared])
        found |= {_key(t): 0.5 * float(e) for t, e in zip(squared, errors)}
    if others:
        values = panels.values([DataTerm(1.0, data_basis(s, t), t.fit) for t in others])
        found |= {_key(t): float(v) for t, v in zip(others, values)}
    return found


def data_errors2(panels: Panels, s: State, bases: Sequence[Array]) -> Array:
    """||X - B H_1||^2 for each B: from traces where these keep their digits, else from residuals.

    ``||X||^2 - 2 <B, X H_1'> + <B'B, H_1 H_1'>`` cancels as the fit becomes exact; below the guard
    the panels measure the residual itself. So they do where surrogates only lie above the terms.
    """
    out = np.zeros(len(bases))
    if s.data.exact and isinstance(s.data.terms[0], Quadratic):
        out[:] = [2 * s.data.terms[0].value(B) for B in bases]
    doubtful = np.flatnonzero(out < _GUARD * panels.norm2)
    if len(doubtful):
        out[doubtful] = panels.residuals2([bases[int(k)] for k in doubtful])
    return out


def part_sizes(s: State) -> list[Array] | None:
    """||w_k||^2 ||h_k||^2 of the components of each layer; None without a squared data term."""
    if not len(s.data.gram):
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


def _of_factor(s: State, t: Term) -> float:
    """d(target, product) of a term whose target is a factor or a code."""
    if t.of_codes:
        return max(between_codes(s, t).value(multiplied(s, t.chain[:-1]) / _scales(s, t)), 0.0)
    *left, last = t.chain
    return t.fit.value(s[t.target], multiplied(s, left), s[last])  # type: ignore[index]


def _scales(s: State, t: Term) -> Array:
    """The scales of the codes that are a term's target, as a column."""
    return s.scales[t.target.layer][:, None]  # type: ignore[union-attr]
