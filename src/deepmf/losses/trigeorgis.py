"""Tri-DMF: a different loss for each factor, kept as the baseline it is."""

from __future__ import annotations

from deepmf.core.quadratic import Array
from deepmf.core.state import State
from deepmf.losses.base import Term
from deepmf.losses.data_centric import DataCentric


class Trigeorgis(DataCentric):
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

    def __init__(self) -> None:
        super().__init__(mu=1.0)

    def value(self, layer: Array, data: Array, w: Array) -> float:
        """1/2 ||X - W_L H_L...H_1||^2."""
        return 0.5 * float(data[-1])

    def left(self, s: State, layer: int, w: Array) -> list[Term]:
        """Only the layer below counts, where the consistent loss sums over all."""
        below = min(layer + 1, s.depth - 1)
        return [(float(k == below), s.chain(k, layer)) for k in range(layer, s.depth)]
