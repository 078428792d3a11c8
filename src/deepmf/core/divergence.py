"""Beta divergences: Kullback and Leibler's, Itakura and Saito's, and those between and beside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import kl_div

from deepmf.core.datafit import Datafit
from deepmf.core.majorized import Majorized, Part
from deepmf.core.quadratic import Array
from deepmf.core.separable import FLOOR, Separable, product

BETAS = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}
"""Distances that have names."""

_BLOCK = 1 << 20
"""Products of a sparse matrix's entries that are formed together."""


class BetaDivergence(Datafit):
    """The beta divergence of a target T from a product P, summed over entries.

    ::

        b = 1      t log(t / p) - t + p                             Kullback-Leibler: counts
        b = 0      t / p - log(t / p) - 1                           Itakura-Saito: powers of sound
        otherwise  t^b / (b (b - 1)) + p^b / b - t p^(b-1) / (b - 1)

    b = 2 would be half the squared error, which `SquaredError` does better. Surrogates follow
    from Jensen's inequality for the convex part and from the tangent of the concave one, which
    there is for b < 1 (Fevotte and Idier, "Algorithms for nonnegative matrix factorization with
    the beta-divergence", Neural Computation 23, 2011).

    Parameters
    ----------
    beta : float
        b, in [0, 2).
    """

    name = "beta-divergence"
    nonnegative, weightable = True, True

    def __init__(self, beta: float) -> None:
        self.beta = float(beta)

    @property
    def needs_zeros(self) -> bool:  # type: ignore[override]
        """See `Datafit`: with b = 1, zeros count only through sums of the product."""
        return self.beta != 1

    def value(self, T: Any, B: Array, H: Array, weights: Array | None = None) -> float:
        """d(T, B H), each entry times its weight."""
        if sparse.issparse(T) and not self.needs_zeros:
            P = products_at(T, B, H)
            all_of_P = float(B.sum(axis=0) @ H.sum(axis=1, dtype=np.float64))
            return float(np.sum(kl_div(T.data, P) - P)) + all_of_P
        T = T.toarray() if sparse.issparse(T) else T
        return Explained(self.beta, T, weights).distance(B @ H)

    def residual(self, T: Array, P: Array) -> Array:
        """Pearson's residuals ``(T - P) / P^(1 - b/2)``."""
        P = np.maximum(P, FLOOR)
        return np.asarray((T - P) * P ** (self.beta / 2 - 1))

    def codes(self, T: Any, B: Array, H: Array, weights: Array | None = None) -> Majorized:
        """``H -> d(T, B H)`` itself."""
        return Majorized(parts=(Part(self._explained(T, weights), B),))

    def basis(self, T: Any, B: Array, H: Array, weights: Array | None = None) -> Majorized:
        """A separable function of B, whose coefficients add up over columns."""
        H = H.astype(np.float64, copy=False)
        return Majorized(self._explained(T, weights).pulled(None, H, B))

    def product(self, T: Array) -> Majorized:
        """``P -> d(T, P)`` itself, up to a constant."""
        return Majorized(parts=(Part(Explained(self.beta, T)),))

    def target(self, P: Array) -> Majorized:
        """``T -> d(T, P)`` itself, up to a constant; it is separable."""
        P, b = np.maximum(P, FLOOR), self.beta
        if b == 1:
            return Majorized(Separable({0: -np.log(P)}, 1.0))
        return Majorized(Separable({b - 1: 1 / (b - 1), 0: -(P ** (b - 1)) / (b - 1)}))

    def _explained(self, T: Any, weights: Array | None) -> Explained:
        if sparse.issparse(T) and self.needs_zeros:
            T = T.toarray()
        return Explained(self.beta, T, weights)


def beta_of(fit: Datafit) -> str | float:
    """The name or number by which users ask for a distance."""
    beta = fit.beta if isinstance(fit, BetaDivergence) else 2.0
    return next((name for name, known in BETAS.items() if known == beta), beta)


@dataclass(frozen=True, eq=False)
class Explained:
    """``P -> scale * d(T, P)`` for the divergence of some beta, up to a constant."""

    beta: float
    T: Any
    weights: Array | None = None
    scale: float = 1.0

    def __rmul__(self, weight: float) -> Explained:
        return replace(self, scale=weight * self.scale)

    def value(self, B: Array) -> float:
        """The divergence from B."""
        T = self.T.toarray() if sparse.issparse(self.T) else self.T
        return self.scale * replace(self, T=T).distance(B)

    def distance(self, P: Array) -> float:
        """d(T, P) of arrays."""
        b, T, P = self.beta, self.T, np.maximum(P, FLOOR)
        if b == 1:
            each = kl_div(T, P)
        elif b == 0:  # a factor that is a target may begin with zeros
            ratio = np.maximum(T, FLOOR) / P
            each = ratio - np.log(ratio) - 1
        else:
            each = T**b / (b * (b - 1)) + P**b / b - T * P ** (b - 1) / (b - 1)
        return float(np.sum(each if self.weights is None else self.weights * each))

    def single(self, L: Array, value: float | None = None) -> tuple[Array, Array]:
        """Each column of M with a single entry h_k: its best h_k and d(t_j, l_k h_k), for every k.

        ::

            h_kj = sum_i t_ij l_ik^(b-1) / sum_i l_ik^b,    or the given value
        """
        L, b = np.maximum(L, FLOOR), self.beta
        best = (L ** (b - 1)).T @ self.T / (L**b).sum(axis=0)[:, None]
        h = best if value is None else np.full(best.shape, value)
        by_column = [
            [self._column(j, L[:, k] * h[k, j]) for j in range(h.shape[1])] for k in range(len(h))
        ]
        return h, np.array(by_column)

    def _column(self, j: int, p: Array) -> float:
        return replace(self, T=self.T[:, j], weights=None).distance(p)

    def pulled(self, L: Array | None, R: Array | None, M: Array) -> Separable:
        """See `Convex.pulled`.

        ::

            slope  up (m / m~)^(b-1) - down (m / m~)^(b-2),    b < 1:  up - down (m / m~)^(b-2)
            up = L' (V o P^(b-1)) R',    down = L' (V o T o P^(b-2)) R',    P = L M~ R
        """
        b, V = self.beta, self.weights
        up, down = self._sums(L, R, M) if V is None and b == 1 else self._weighted_sums(L, R, M)
        at = np.where(M > 0, M, FLOOR)
        rising: dict[float, Array | float] = {max(b - 1, 0.0): up if b <= 1 else at ** (1 - b) * up}
        return self.scale * Separable({**rising, b - 2: -(M ** (2 - b)) * down})

    def _sums(self, L: Array | None, R: Array | None, M: Array) -> tuple[Array, Array]:
        """Up and down for b = 1 without weights, where zeros of T need no product."""
        up = np.ones((1, 1)) if L is None else L.sum(axis=0, dtype=np.float64)[:, None]
        up = up * (1.0 if R is None else R.sum(axis=1, dtype=np.float64))
        if sparse.issparse(self.T):  # X in a data term, with the basis or the codes for M
            B, H = (M, R) if R is not None else (L, M)
            ratio = self.T.copy()
            ratio.data = self.T.data / np.maximum(products_at(self.T, B, H), FLOOR)  # type: ignore
        else:
            ratio = self.T / np.maximum(product(L, M, R), FLOOR)
        return up, _back(L, ratio, R)

    def _weighted_sums(self, L: Array | None, R: Array | None, M: Array) -> tuple[Array, Array]:
        b, P = self.beta, np.maximum(product(L, M, R), FLOOR)
        V = 1.0 if self.weights is None else self.weights
        return _back(L, V * P ** (b - 1), R), _back(L, V * self.T * P ** (b - 2), R)


def _back(L: Array | None, S: Any, R: Array | None) -> Array:
    """L' S R'."""
    S = S if L is None else L.T @ S
    return np.asarray(S if R is None else S @ R.T)


def products_at(T: Any, B: Array, H: Array) -> Array:
    """The entries of ``B H`` at the nonzeros of a matrix in compressed columns."""
    out = np.empty(len(T.data))
    columns, Ht = np.repeat(np.arange(T.shape[1]), np.diff(T.indptr)), np.ascontiguousarray(H.T)
    step = max(1, _BLOCK // B.shape[1])
    for k in range(0, len(out), step):
        some = slice(k, k + step)
        out[some] = np.einsum("ij,ij->i", B[T.indices[some]], Ht[columns[some]])
    return out
