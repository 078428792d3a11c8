"""Multilayer factorization (MMF): one layer after the other, each to its end."""

from __future__ import annotations

from deepmf.core.quadratic import Array
from deepmf.core.terms import Factor, H, Term, W, X
from deepmf.losses.base import Loss


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

    def terms(self, depth: int, w: Array) -> list[Term]:
        """``w_l/2 ||W_{l-1} - W_l H_l||^2`` with W_0 = X."""
        return [Term(w[k], X if k == 0 else W(k - 1), (W(k), H(k))) for k in range(depth)]

    def block_terms(self, factor: Factor, depth: int, w: Array) -> list[Term]:
        """The layer's own term: the next layer does not pull at W_l."""
        return [self.terms(depth, w)[factor.layer]]
