"""Trees: layers with one parent each, fitted to the components of a fit with free links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deepmf._utils.threads import single_blas
from deepmf.constraints import Constraint, OneParent
from deepmf.core.divergence import BetaDivergence
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import State
from deepmf.core.surrogate import Surrogate
from deepmf.core.terms import Factor, H, W
from deepmf.fitting.calibration import Calibration
from deepmf.fitting.problem import Problem
from deepmf.init.merged import merge
from deepmf.solvers.positive import raised

_TOL = 1e-6
"""Relative decrease of the objective in one sweep at which a layer has settled."""


class Grown(NamedTuple):
    """A layer after a sweep, and its objective."""

    W: Array
    H: Array
    objective: float


def grow(
    problem: Problem, s: State, fixed: Calibration, max_iter: int, inner: tuple[int, float]
) -> Iterator[tuple[int, list[Grown]]]:
    """Fit the layers from the first tree on, one after the other: each layer's sweeps.

    With the weights and penalties of the fit with free links, layer l decreases::

        w_l/2 ||(W_{l-1} - W_l H_l) D||^2 + penalties,    d_j = ||row j of H_1|| for l = 2, else 1

    with d scaled to mean square one, or a divergence with weights d_j^2 of columns. Column j of W_1
    has an error of the order of 1/d_j, and a parent is what its children are in the data on
    average. Above, each family counts once.

    Each tree has two starts, of which the lower objective is kept: the largest link of every
    component, and components merged two at a time.
    """
    first = problem.first_tree
    for k in range(s.depth if first is None else first, s.depth):
        layer = _Layer(problem, fixed, k, s, inner)
        yield k, min(layer.tried(s.W[k], s.H[k], max_iter), key=lambda rows: rows[-1].objective)


class _Layer:
    """A layer's own term, whose target stays as it is."""

    def __init__(
        self, problem: Problem, fixed: Calibration, k: int, s: State, inner: tuple[int, float]
    ) -> None:
        self.before, self.inner, self.solver = s.W[k - 1], inner, problem.solver
        self.fit, self.keeps_zeros = problem.fit(k), problem.fit(k).nonnegative
        self.weight = float(fixed.weights[k]) or 1.0  # a tree needs no pull on layer 1
        self.use = _use(s) if k == 1 else np.ones(self.before.shape[1])
        self.sets: dict[str, Constraint] = {
            "H": problem.layers[k].constraint_H,
            "W": problem.layers[k].constraint_W,
        }
        own: list[Factor] = [H(k), W(k)]
        self.penalties = {
            f.kind: (fixed.strength(problem, f), penalty)
            for f in own
            if (penalty := fixed.penalty(problem, f)) is not None
        }

    @single_blas()
    def tried(self, W: Array, H: Array, max_iter: int) -> list[list[Grown]]:
        """The layer's sweeps from each start."""
        own = self.sets["H"]
        starts = [(W, own.project(H))]
        if isinstance(own, OneParent) and own.unit:  # components take over the size of links
            parents = starts[0][1]
            sizes = np.sum(parents * H, axis=1) / np.maximum(parents.sum(axis=1), 1)
            mean = float(np.mean(sizes[sizes > 0])) if np.any(sizes > 0) else 1.0
            starts[0] = self.sets["W"].project(W * np.where(sizes > 0, sizes, mean)), parents
        if isinstance(own, OneParent) and max_iter and W.shape[1] <= self.before.shape[1]:
            starts.append(self.merged(W.shape[1]))
        return [self.settle(*start, max_iter) for start in starts]

    def settle(self, W: Array, H: Array, max_iter: int) -> list[Grown]:
        """Sweep W and H until the objective hardly decreases."""
        W = raised(W, self.sets["W"]) if self.keeps_zeros else W
        rows = [Grown(W, H, self.objective(W, H))]
        for _ in range(max_iter):
            W = self._improved("W", W, self._of_W(W, H))
            H = self._improved("H", H, self._of_H(W, H))
            rows.append(Grown(W, H, self.objective(W, H)))
            if rows[-2].objective - rows[-1].objective <= _TOL * abs(rows[-2].objective):
                break
        return rows

    def merged(self, rank: int) -> tuple[Array, Array]:
        """Components merged two at a time, each time the two that raise the term least."""
        size = float(np.max(np.abs(self.before), initial=0.0)) or 1.0
        centers = merge(self.before / size, np.diag(self.use), rank)
        norms = np.linalg.norm(centers, axis=0)
        along = np.abs((centers / np.where(norms > 0, norms, 1)).T @ self.before)
        H: Array = np.zeros(along.shape)
        H[along.argmax(axis=0), np.arange(H.shape[1])] = 1.0
        W = (self.before * self.use) @ H.T
        W = W / np.maximum(H @ self.use, np.finfo(float).tiny)
        scales = self.sets["W"].scales(W)
        if scales is not None and self.sets["H"].cone:
            W, H = W / scales, H * scales[:, None]
        return self.sets["W"].project(W), H

    def objective(self, W: Array, H: Array) -> float:
        """The term and the penalties."""
        if isinstance(self.fit, BetaDivergence):
            term = self.fit.value(self.before, W, H, self._weights)
        else:
            term = 0.5 * float(np.sum((self.before - W @ H) ** 2 * self.use))
        values = {"W": W, "H": H}
        return self.weight * term + sum(
            a * p.value(values[kind]) for kind, (a, p) in self.penalties.items()
        )

    @property
    def _weights(self) -> Array:
        return np.broadcast_to(self.use, self.before.shape)

    def _of_W(self, W: Array, H: Array) -> Surrogate:
        if isinstance(self.fit, BetaDivergence):
            return self.weight * self.fit.basis(self.before, W, H, self._weights)
        scaled = self.weight * H * self.use
        return Quadratic.of(B=scaled @ H.T, C=self.before @ scaled.T)

    def _of_H(self, W: Array, H: Array) -> Surrogate:
        if isinstance(self.fit, BetaDivergence):
            return self.weight * self.fit.codes(self.before, W, H, self._weights)
        scaled = self.weight * W
        C = scaled.T @ self.before * self.use
        return Quadratic.of(A=scaled.T @ W, B=np.diag(self.use), C=C)

    def _improved(self, kind: str, M: Array, q: Surrogate) -> Array:
        if kind in self.penalties:
            strength, penalty = self.penalties[kind]
            q = q + strength * penalty.majorize(M)
        return self.solver.improve(q, self.sets[kind], M, *self.inner)


def _use(s: State) -> Array:
    """||row j of H_1||^2 over their mean; 1 where the data side does not tell."""
    known = len(s.data.gram) > 0
    squares = np.diag(s.data.gram).astype(float) if known else np.ones(s.W[0].shape[1])
    mean = float(squares.mean())
    return squares / mean if mean > 0 else np.ones(len(squares))
