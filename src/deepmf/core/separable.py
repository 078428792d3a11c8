"""Sums over entries of powers, logarithms and m log m: what divergences leave of a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.special import wrightomega, xlogy

from deepmf.core.quadratic import Array, Block, Quadratic

FLOOR = 1e-120
"""Smallest product that is divided by, so that its square does not vanish."""

_STEPS, _EXACT = 100, 1e-13
"""Limits for roots: most need four to eight steps."""

_FARTHEST, _LOWEST = 4.0, -690.0
"""Longest step in log m, and the log m that stands for zero."""


@dataclass(frozen=True, eq=False)
class Separable:
    """f(M) = a sum over entries of a convex function of m > 0, given by its slope.

    ::

        f'(m) = sum_p a_p m^p + e log m,    a_p = powers[p], an array or a number,  e >= 0

    so ``a_0`` is linear, ``a_1`` a ridge, ``-a_-1`` in front of ``-log m``, and e of
    ``m log m - m``. Every such function here is convex with a concave slope: ``a_p >= 0`` for
    0 < p <= 1, ``a_p <= 0`` for p < 0.
    """

    powers: Mapping[float, Array | float] = field(default_factory=dict)
    log: float = 0.0
    __array_ufunc__ = None

    @property
    def terms(self) -> bool:
        """Whether f is more than zero."""
        return bool(self.powers) or self.log > 0

    def value(self, M: Array) -> float:
        """f(M)."""
        parts = [
            xlogy(a, M) if p == -1 else a * M ** (p + 1) / (p + 1) for p, a in self.powers.items()
        ]
        if self.log:
            parts.append(self.log * (xlogy(M, M) - M))
        return float(sum(np.sum(np.broadcast_to(part, M.shape)) for part in parts))

    def change(self, M: Array, D: Array) -> float:
        """f(M + D) - f(M)."""
        return self.value(M + D) - self.value(M)

    def slope(self, M: Array, eta: Array | float = 0.0) -> tuple[Array, Array]:
        """f'(m) + eta and f''(m) of every entry."""
        first, second = np.zeros(M.shape) + eta, np.zeros(M.shape)
        for p, a in self.powers.items():
            power = a if p == 0 else a * M**p
            first += power
            if p:
                second += p * power / M
        if self.log:
            first += self.log * np.log(M)
            second += self.log / M
        return first, second

    def argmin(self, M: Array, eta: Array | float = 0.0) -> Array:
        """The minimizer of f(m) + eta m over m >= 0 for every entry; M's own where f is zero."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = self._closed(M.shape, eta)
            if found is None:
                found = self._newton(M, eta)
        return np.where(np.isnan(found), M, found)

    def _closed(self, shape: tuple[int, ...], eta: Array | float) -> Array | None:
        """The minimizer where a formula gives it."""
        c = np.broadcast_to(self.powers.get(0, 0.0) + eta, shape)
        k = np.broadcast_to(-np.asarray(self.powers.get(-1, 0.0)), shape)
        others = [p for p in self.powers if p not in (0, -1)]
        if self.log:
            e = self.log
            omega = wrightomega(np.log(k / e) + c / e)
            return None if others else np.where(k > 0, k / (e * omega), np.exp(-c / e))
        if not others:
            return np.where(c > 0, k / c, np.where((k > 0) | (c < 0), np.inf, np.nan))
        if others == [1]:
            q = np.asarray(self.powers[1])
            root = np.sqrt(c * c + 4 * q * k)
            return np.where(c > 0, 2 * k / (root + c), (root - c) / (2 * q))
        if len(self.powers) == 2 and not np.any(c):
            low, high = sorted(self.powers)
            return np.asarray((-self.powers[low] / self.powers[high]) ** (1 / (high - low)))
        if others == [-2] and len(self.powers) == 2:
            return np.sqrt(-self.powers[-2] / c)
        return None

    def _newton(self, M: Array, eta: Array | float) -> Array:
        """Newton's method in log m, within a bracket."""
        x = np.log(np.where(M > 0, M, 1.0))
        low, high = np.full(M.shape, -np.inf), np.full(M.shape, np.inf)
        for _ in range(_STEPS):
            m = np.exp(x)
            first, second = self.slope(m, eta)
            low, high = np.where(first <= 0, x, low), np.where(first >= 0, x, high)
            step = np.clip(-first / (m * second), -_FARTHEST, _FARTHEST)
            after = x + np.where(np.isnan(step), -_FARTHEST * np.sign(first), step)
            middle = 0.5 * (low + high)
            outside = np.isfinite(middle) & ~((low <= after) & (after <= high))
            after = np.maximum(np.where(outside, middle, after), _LOWEST)
            moved, x = np.abs(after - x), after
            if np.all(moved <= _EXACT):
                break
        return np.where(x > _LOWEST, np.exp(x), 0.0)

    def on_simplex(self, M: Array, capped: bool = False) -> Array:
        """The minimizer over columns that sum to one, or with ``capped`` to at most one.

        That is ``argmin(eta)`` with a number eta for each column, found by Newton's method on
        ``1 / sum m(eta) = 1`` within the bracket where no entry exceeds 1 and where none exceeds
        1 / rows.
        """
        whole = np.full(M.shape, 1.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            low = np.max(-self.slope(whole)[0], axis=0)
            high = np.max(-self.slope(whole / len(M))[0], axis=0)
            eta = low.copy()
            if capped:
                eta = np.maximum(eta, 0.0)
            found = self.argmin(M, eta)
            for _ in range(_STEPS):
                total = found.sum(axis=0)
                low = np.where(total >= 1, np.maximum(low, eta), low)
                high = np.where(total <= 1, np.minimum(high, eta), high)
                settled = np.abs(total - 1) <= _EXACT * len(M)
                if capped:
                    settled |= (eta <= 0) & (total <= 1)
                settled |= ~np.isfinite(total) | (high - low <= 1e-15 * np.abs(high))
                if settled.all():
                    break
                curved = np.where(found > 0, 1 / self.slope(found, eta)[1], 0.0).sum(axis=0)
                after = eta + (total - 1) * total / curved
                inside = (after > low) & (after < high)
                after = np.where(inside, after, 0.5 * (low + high))
                if capped:
                    after = np.maximum(after, 0.0)
                eta = np.where(settled, eta, after)
                found = np.where(settled, found, self.argmin(M, eta))
            total = found.sum(axis=0)
            scale = np.maximum(total, 1.0) if capped else total
            possible = np.isfinite(scale) & (scale > 0)
            return np.where(possible, found / scale, M)

    def part(self, shape: tuple[int, ...], block: Block | None) -> Separable:
        """f as a function of a block of M alone."""
        if block is None:
            return self
        return Separable(
            {p: np.broadcast_to(a, shape)[block] for p, a in self.powers.items()}, self.log
        )

    def pulled(self, L: Array | None, R: Array | None, M: Array) -> Separable:
        """Above ``M -> f(L M R)`` and touching at M, by Jensen's inequality.

        ::

            a_p b^(p+1)  ->  a m^(p+1)  with  a = m^-p o (L' (a_p o b^p) R')
        """
        if L is None and R is None:
            return self
        if self.log:
            raise TypeError("m log m has a factor for its argument, never a product.")
        B = np.maximum(product(L, M, R), FLOOR)
        powers: dict[float, Array | float] = {}
        for p, a in self.powers.items():
            pulled = np.broadcast_to(a if p == 0 else a * B**p, B.shape)
            pulled = pulled if L is None else L.T @ pulled
            pulled = pulled if R is None else pulled @ R.T
            powers[p] = pulled if p == 0 else np.where(M > 0, M, FLOOR) ** -p * pulled
        return Separable(powers)

    def __add__(self, other: Separable) -> Separable:
        powers = dict(self.powers)
        for p, a in other.powers.items():
            powers[p] = powers[p] + a if p in powers else a
        return Separable(powers, self.log + other.log)

    def __rmul__(self, weight: float) -> Separable:
        return Separable({p: weight * a for p, a in self.powers.items()}, weight * self.log)


def product(L: Array | None, M: Array, R: Array | None) -> Array:
    """L M R; None stands for the identity."""
    M = M if L is None else L @ M
    return M if R is None else M @ R


def above(q: Quadratic, M: Array) -> Separable:
    """Above a quadratic and touching at M: ``1/2 sum tau d^2 + <grad, D>`` with D = Z - M."""
    tau = np.broadcast_to(q.curvatures(), M.shape)
    return Separable({1: tau, 0: q.gradient(M) - tau * M})
