"""Beta divergences of tensors: codes and surrogates by the operations of PyTorch.

All is in double precision, whatever the type of X: powers of small products leave the range of
float32. The formulas are those of `deepmf.core.divergence`, and so are the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import torch

from deepmf.constraints import Nonnegative
from deepmf.core.datafit import Datafit, SquaredError
from deepmf.core.majorized import Majorized
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.separable import FLOOR, Separable
from deepmf.core.terms import DataTerm
from deepmf.data.gpu.tensor import as_array, as_tensor
from deepmf.data.panels.base import Coding

_EXACT = torch.float64

_ENTRIES = 1 << 22
"""Entries of X that are worked on together: 32 MB in double precision."""

Powers = Mapping[float, torch.Tensor]
"""See `Separable`: coefficients of the powers of m in a slope."""


def strips(panels: Iterator[tuple[slice, torch.Tensor]]) -> Iterator[tuple[slice, torch.Tensor]]:
    """A few columns of each panel at a time, in double precision."""
    for cols, P in panels:
        width = max(1, _ENTRIES // P.shape[0])
        for start in range(0, P.shape[1], width):
            part = P[:, start : start + width].to(_EXACT)
            first = cols.start + start
            yield slice(first, first + part.shape[1]), part


def distance(fit: Datafit, T: torch.Tensor, P: torch.Tensor) -> torch.Tensor:
    """d(T, P), see `BetaDivergence.value`."""
    if type(fit) is SquaredError:
        return 0.5 * torch.sum((T - P).square_())
    b, P = fit.beta, P.clamp(min=FLOOR)  # type: ignore[attr-defined]
    if b == 1:
        each = torch.special.xlogy(T, T / P) - T + P
    elif b == 0:
        each = T / P - torch.log(T / P) - 1
    else:
        each = T**b / (b * (b - 1)) + P**b / b - T * P ** (b - 1) / (b - 1)
    return torch.sum(each)


class DivergenceCoding:
    """H_1's problem with divergences, for some columns of X at a time.

    Parameters
    ----------
    coding : Coding
        The problem: squared errors and beta divergences.
    device : torch.device
        Where columns of X are.
    """

    def __init__(self, coding: Coding, device: torch.device) -> None:
        self.coding, self.device = coding, device
        terms = [t for t in coding.terms if t.weight]
        self.divergent = [
            (float(t.weight), t.fit.beta, self._there(t.B))  # type: ignore[attr-defined]
            for t in terms
            if type(t.fit) is not SquaredError
        ]
        squared = [t for t in terms if type(t.fit) is SquaredError]
        known = [Quadratic.of(A=t.weight * (t.B.T @ t.B)) for t in squared]
        if coding.coupling is not None:
            known.append(Quadratic.of(A=coding.coupling))
        self.known = reduce(add, known, Quadratic())
        self.G = self._there(sum(t.weight * t.B for t in squared)) if squared else None

    def _there(self, M: Any) -> torch.Tensor:
        """A matrix of the small side on the device."""
        return as_tensor(np.ascontiguousarray(M, dtype=np.float64)).to(self.device)

    def descend(self, T: torch.Tensor, H: Array, max_iter: int, tol: float) -> Array:
        """See `Majorized.descend`: better codes for columns T of X."""
        constraint = self.coding.constraint
        q = self.coding.with_penalty(self.known, H.astype(np.float64))
        if not (isinstance(q, Quadratic) and q.column_separable):
            raise ValueError(
                f"{self.coding.regularizer!r} on H of layer 1 has no quadratic majorizer that "
                f"separates over columns, which a fit by divergences to tensors or on a device "
                f"needs. Give X as a NumPy array, without device."
            )
        tau, A, C = self._on_device(q, T)
        M = self._there(H)
        moving = torch.ones(M.shape[1], dtype=torch.bool, device=self.device)
        first = torch.full((M.shape[1],), -1.0, dtype=_EXACT, device=self.device)
        for _ in range(max_iter):
            before = M
            powers = self._touching(T, before)
            if tau is not None:
                slope = A @ before - C - tau * before
                powers[1.0] = powers.get(1.0, 0.0) + tau
                powers[0.0] = powers.get(0.0, 0.0) + slope
            elif C is not None:
                powers[0.0] = powers.get(0.0, 0.0) - C
            M = torch.where(moving, _minimizer(powers, before, constraint), before)
            step = (M - before).square().sum(dim=0)
            first = torch.where(first < 0, step, first)
            moving &= step > tol * tol * first
            if not moving.any():
                break
        return as_array(M).astype(H.dtype)

    def _on_device(self, q: Quadratic, T: torch.Tensor) -> tuple[Any, Any, Any]:
        """Curvatures above ``1/2 <M, A M> - <M, C>``, A and C; None where there are none."""
        C = None if isinstance(q.C, float) and q.C == 0.0 else self._there(np.atleast_2d(q.C))
        if self.G is not None:
            C = self.G.T @ T + (0.0 if C is None else C)
        if not q.terms:
            return None, None, C
        A = reduce(add, (_full(A, B, self.coding.rank) for A, B in q.terms))
        return self._there(q.curvatures()), self._there(A), 0.0 if C is None else C

    def _touching(self, T: torch.Tensor, M: torch.Tensor) -> dict[float, Any]:
        """A separable function above the divergences that touches them at M."""
        powers: dict[float, Any] = {}
        for weight, b, B in self.divergent:
            P = (B @ M).clamp_(min=FLOOR)
            if b == 1:
                up, down = B.sum(dim=0)[:, None], B.T @ (T / P)
            else:
                up, down = B.T @ P ** (b - 1), B.T @ (T * P ** (b - 2))
            for p, a in _slope(b, up, down, M):
                powers[p] = powers.get(p, 0.0) + weight * a
        return powers


def _full(A: Any, B: Any, rank: int) -> Array:
    """A Kronecker term whose right side is a number, as one matrix."""
    return np.asarray(B * (A * np.eye(rank) if isinstance(A, float) else A))


def _slope(
    b: float, up: torch.Tensor, down: torch.Tensor, M: torch.Tensor
) -> list[tuple[float, torch.Tensor]]:
    """See `Explained.pulled`."""
    at = torch.where(M > 0, M, FLOOR)
    return [
        (max(b - 1, 0.0), up if b <= 1 else at ** (1 - b) * up),
        (b - 2, -(M ** (2 - b)) * down),
    ]


def _minimizer(powers: Powers, M: torch.Tensor, constraint: Any) -> torch.Tensor:
    """The minimizer over a set: of nonnegative entries on the device where a formula gives it."""
    found = _closed(powers, M) if type(constraint) is Nonnegative else None
    if found is not None:
        return torch.where(torch.isnan(found), M, found)
    block = constraint.free(tuple(M.shape)) or (slice(None), slice(None))
    out = as_array(M).copy()
    s = Separable({p: as_array(a) for p, a in powers.items()}).part(out.shape, block)
    out[block] = constraint.inner.minimize(s, out[block])
    return as_tensor(np.ascontiguousarray(out)).to(M.device)


def _closed(powers: Powers, M: torch.Tensor) -> torch.Tensor | None:
    """See `Separable.argmin`: None where it takes Newton's method."""
    zero = torch.zeros((), dtype=_EXACT, device=M.device)
    c = (powers.get(0.0, zero) + zero).expand(M.shape)
    k = -powers.get(-1.0, zero)
    others = [p for p in powers if p not in (0, -1)]
    if not others:
        unbounded = torch.where((k > 0) | (c < 0), torch.inf, torch.nan)
        return torch.where(c > 0, k / c, unbounded)
    if others == [1]:
        q = powers[1.0]
        root = torch.sqrt(c * c + 4 * q * k)
        return torch.where(c > 0, 2 * k / (root + c), (root - c) / (2 * q))
    if len(powers) == 2 and 0.0 not in powers:
        low, high = sorted(powers)
        return (-powers[low] / powers[high]) ** (1 / (high - low))
    if others == [-2] and len(powers) == 2 and 0.0 in powers:
        return torch.sqrt(-powers[-2.0] / c)
    return None


class BasisSums:
    """Surrogate of a data term as a function of its basis, from sums over columns.

    Parameters
    ----------
    term : DataTerm
        The term.
    device : torch.device
        Where columns of X are.
    """

    def __init__(self, term: DataTerm, device: torch.device) -> None:
        self.term, (m, r) = term, term.B.shape
        self.B = as_tensor(np.ascontiguousarray(term.B)).to(device, _EXACT)
        self.squared = type(term.fit) is SquaredError
        self.beta = 2.0 if self.squared else float(term.fit.beta)  # type: ignore[attr-defined]
        rows = {True: r, False: 1 if self.beta == 1 else m}[self.squared]
        self.up = torch.zeros((rows, r), dtype=_EXACT, device=device)
        self.down = torch.zeros((m, r), dtype=_EXACT, device=device)

    def add(self, T: torch.Tensor, H: torch.Tensor) -> None:
        """Add columns T of X whose codes are H."""
        if self.squared:
            self.up += H @ H.T
            self.down += T @ H.T
            return
        b, P = self.beta, (self.B @ H).clamp_(min=FLOOR)
        self.up += H.sum(dim=1) if b == 1 else P ** (b - 1) @ H.T
        self.down += (T / P if b == 1 else T * P ** (b - 2)) @ H.T

    def surrogate(self, norm2: float) -> Quadratic | Majorized:
        """The surrogate, on the CPU; ``norm2`` is ||X||^2."""
        if self.squared:
            return Quadratic(((1.0, as_array(self.up)),), as_array(self.down), 0.5 * norm2)
        slope = _slope(self.beta, self.up, self.down, self.B)
        return Majorized(Separable({p: as_array(a) for p, a in slope}))
