"""Adding layers: each starts from the basis of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepmf.constraints import Constraint
from deepmf.init import Start, StartError
from deepmf.panels import Coding, DensePanels, Panels
from deepmf.problem import Problem
from deepmf.quadratic import Array
from deepmf.solvers import FastProjectedGradient
from deepmf.state import State

_CODING_ITER = 100
_CODING_TOL = 1e-3
_TOLERATED_VIOLATION = 1e-6


@dataclass(frozen=True)
class Given:
    """Factors the user starts from."""

    W: list[Array]
    H: list[Array]


def add_layer(
    panels: Panels, s: State, problem: Problem, start: Start | Given, rng: np.random.Generator
) -> None:
    """Append W_l and H_l to the state (H_1 to the panels), feasible for the layer's constraints."""
    k = s.depth
    data = panels if k == 0 else DensePanels(s.W[k - 1])
    if isinstance(start, Given):
        W = start.W[k]
        data.set_codes(start.H[k])
        inner_iter = 0
    else:
        W = _first_basis(data, problem, k, start, rng)
        inner_iter = _CODING_ITER
    layer = problem.layers[k]
    coding = Coding(W.T @ W, W, layer.constraint_H, layer.regularizer_H)
    # Least-squares codes; a solver that cannot leave zero makes its own.
    solver = problem.solver if problem.solver.keeps_zeros else FastProjectedGradient()
    if inner_iter:
        data.begin(coding, positive=solver.keeps_zeros)
    products = data.update(coding, solver, inner_iter, _CODING_TOL)
    s.W.append(W)
    if k == 0:
        s.data = products
        s.H.append(np.empty((layer.rank, 0)))
    else:
        s.H.append(data.get_codes())


def _first_basis(
    data: Panels, problem: Problem, k: int, start: Start, rng: np.random.Generator
) -> Array:
    """The start's basis, rescaled and projected onto the layer's set."""
    layer = problem.layers[k]
    try:
        W: Array = np.asarray(start(data, layer.rank, rng), dtype=np.float64)
    except StartError as error:
        raise StartError(f"Layer {k + 1}: {error}") from None
    expected = (data.shape[0], layer.rank)
    if W.shape != expected or not np.isfinite(W).all():
        raise ValueError(
            f"init gave layer {k + 1} a matrix of shape {W.shape}; "
            f"expected {expected} with finite entries."
        )
    scales = layer.constraint_W.scales(W)
    W = layer.constraint_W.project(W if scales is None else W / scales)
    if problem.solver.keeps_zeros:
        W = np.maximum(W, 1e-2 * np.mean(W))
    return W


def check_given(init: Sequence[Any], problem: Problem, shape: tuple[int, int]) -> Given:
    """The user's factors with shapes, finiteness and feasibility checked."""
    Ws, Hs = ([_matrix(M) for M in factors] for factors in init)
    depth = len(problem.layers)
    if len(Ws) != depth or len(Hs) != depth:
        raise ValueError(
            f"init gives {len(Ws)} W and {len(Hs)} H for {depth} layers; "
            f"give one of each per layer."
        )
    widths = [shape[1], *problem.ranks]
    for k, layer in enumerate(problem.layers):
        _check_factor("W", k, Ws[k], (shape[0], layer.rank), layer.constraint_W)
        _check_factor("H", k, Hs[k], (layer.rank, widths[k]), layer.constraint_H)
    return Given(Ws, Hs)


def _matrix(M: object) -> Array:
    return np.array(M, dtype=np.float64)


def _check_factor(
    name: str, k: int, M: Array, shape: tuple[int, int], constraint: Constraint
) -> None:
    what = f"init's {name} of layer {k + 1}"
    if M.shape != shape:
        raise ValueError(f"{what} has shape {M.shape}; expected {shape}.")
    if not np.isfinite(M).all():
        raise ValueError(f"{what} has NaN or infinite entries.")
    violation = constraint.violation(M)
    if violation > _TOLERATED_VIOLATION:
        raise ValueError(
            f"{what} is not in {constraint!r}: it is off by {violation:.3g} of its size. "
            f"Project it first, with the constraint's own project()."
        )
