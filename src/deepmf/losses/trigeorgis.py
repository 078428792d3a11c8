"""Tri-DMF: a different loss for each factor, kept as the baseline it is."""

from __future__ import annotations

from deepmf.core.quadratic import Array
from deepmf.core.terms import Factor, Term, X
from deepmf.losses.base import Loss
from deepmf.losses.data_centric import chain


class Trigeorgis(Loss):
    """The updates of Trigeorgis et al. (Algorithm 2, Table 1), which share no loss.

    With A_l = W_{l+1} H_{l+1} (W_L for l = L) and D_l = H_{l-1}...H_1 (I for l = 1):

    =====  ==========  ==============  ============
    block  A           B               C
    =====  ==========  ==============  ============
    H_l    A_l' A_l    D_l D_l'        A_l' X D_l'
    W_l    I           Ht_l Ht_l'      X Ht_l'
    =====  ==========  ==============  ============

    The value reported is the loss the model claims, 1/2 ||X - W_L H_L...H_1||^2; it may increase.
    """

    name = "trigeorgis"
    consistent = False

    def terms(self, depth: int, w: Array) -> list[Term]:
        """``1/2 ||X - W_L H_L...H_1||^2``."""
        return [Term(1.0, X, chain(depth - 1))]

    def block_terms(self, factor: Factor, depth: int, w: Array) -> list[Term]:
        """W_l: the layer's own approximation of X; H_l: that of the layer below."""
        below = factor.layer if factor.kind == "W" else min(factor.layer + 1, depth - 1)
        return [Term(1.0, X, chain(below))]
