"""Multilayer factorization (MMF): layer after layer, each to its end."""

from __future__ import annotations

from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import State
from deepmf.losses.base import Loss, Term


class Multilayer(Loss):
    """1/2 ||W_{l-1} - W_l H_l||^2 for one layer at a time (Cichocki et al.; Algorithm 1).

    ============  ==========  ==========  =================
    block         A           B           C
    ============  ==========  ==========  =================
    H_l           W_l' W_l    I           W_l' W_{l-1}
    W_l           I           H_l H_l'    W_{l-1} H_l'
    ============  ==========  ==========  =================
    """

    name = "multilayer"
    joint = False

    def terms(self, s: State, w: Array) -> list[Term]:
        """(1, W_1) alone: deeper layers see X through it."""
        return [(1.0, s.W[0])]

    def H(self, s: State, layer: int, w: Array) -> Quadratic:
        """w W_l'W_l and w W_l'W_{l-1}."""
        W = s.W[layer]
        return w[layer] * Quadratic.of(A=W.T @ W, C=W.T @ s.W[layer - 1])

    def W(self, s: State, layer: int, w: Array) -> Quadratic:
        """w H_l H_l' and w W_{l-1} H_l'."""
        if layer == 0:
            return w[0] * Quadratic.of(B=s.data.HHt, C=s.XHt(0))
        H = s.H[layer]
        return w[layer] * Quadratic.of(B=H @ H.T, C=s.W[layer - 1] @ H.T)
