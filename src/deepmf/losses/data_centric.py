"""The data-centric model (DC-DMF), eq. 5."""

from __future__ import annotations

from collections.abc import Sequence

from deepmf.core.quadratic import Array
from deepmf.core.terms import Factor, H, Term, W, X
from deepmf.losses.base import Loss, layer_weights


class DataCentric(Loss):
    """1/2 sum_l mu_{l-1} ||X - W_l H_l ... H_1||^2 with mu_0 = 1.

    With D_l = H_{l-1}...H_1 (I for l = 1), Ht_l = H_l D_l and C_l^(k) = W_k H_k...H_{l+1}:

    =====  ====================================  ===================  ================
    block  A                                     B                    C
    =====  ====================================  ===================  ================
    H_l    sum_{k>=l} mu_{k-1} C_l^(k)' C_l^(k)  D_l D_l'             G' X D_l'
    W_l    I                                     mu_{l-1} Ht_l Ht_l'  mu_{l-1} X Ht_l'
    =====  ====================================  ===================  ================

    where G = sum_{k>=l} mu_{k-1} C_l^(k). All terms of H_l share the right factor, so
    lmax(A) lmax(B) is its exact Lipschitz constant and no line search is needed; X enters only
    through X H_1'.

    Parameters
    ----------
    mu : float or sequence of L - 1 floats
        Weights of the layers after the first, used as given.
    """

    name = "data-centric"

    def __init__(self, mu: float | Sequence[float] = 1.0) -> None:
        self.mu = mu

    def terms(self, depth: int, w: Array) -> list[Term]:
        """``mu_{l-1}/2 ||X - W_l H_l...H_1||^2``."""
        return [Term(w[k], X, chain(k)) for k in range(depth)]

    def check_depth(self, depth: int) -> None:
        """See `Loss.check_depth`."""
        layer_weights(self.mu, depth, "mu")

    def weights(self, errors: Array, sizes: Array) -> Array:
        """[1, mu_1, ..., mu_{L-1}]."""
        return layer_weights(self.mu, len(errors), "mu")


def chain(layer: int) -> tuple[Factor, ...]:
    """W_l, H_l, ..., H_1: the layer's approximation of X."""
    return (W(layer), *(H(k) for k in range(layer, -1, -1)))
