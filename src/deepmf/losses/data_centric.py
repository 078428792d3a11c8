"""The data-centric loss (DC-DMF), eq. 5."""

from __future__ import annotations

from collections.abc import Sequence

from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import State
from deepmf.losses.base import Loss, Term, layer_weights, normal


class DataCentric(Loss):
    """1/2 sum_l mu_{l-1} ||X - W_l H_l ... H_1||^2 with mu_0 = 1.

    With D_l = H_{l-1}...H_1 (I for l = 1), Ht_l = H_l D_l and C_l^(k) = W_k H_k...H_{l+1}:

    =====  ====================================  ===================  ================
    block  A                                     B                    C
    =====  ====================================  ===================  ================
    H_l    sum_{k>=l} mu_{k-1} C_l^(k)' C_l^(k)  D_l D_l'             G' X D_l'
    W_l    I                                     mu_{l-1} Ht_l Ht_l'  mu_{l-1} X Ht_l'
    =====  ====================================  ===================  ================

    where G = sum_{k>=l} mu_{k-1} C_l^(k) (where entries are missing, each term has an X of its own,
    filled by its own approximation). All terms of H_l share the right factor, so
    lmax(A) lmax(B) is its exact Lipschitz constant and no line search is needed; X enters only
    through X H_1'.

    Parameters
    ----------
    mu : float or sequence of L - 1 floats
        Weights of the layers after the first, used as given.
    """

    name = "data-centric"
    errors = "data"

    def __init__(self, mu: float | Sequence[float] = 1.0) -> None:
        self.mu = mu

    def check_depth(self, depth: int) -> None:
        """See `Loss.check_depth`."""
        layer_weights(self.mu, depth, "mu")

    def weights(self, errors: Array, sizes: Array) -> Array:
        """[1, mu_1, ..., mu_{L-1}]."""
        return layer_weights(self.mu, len(errors), "mu")

    def terms(self, s: State, w: Array) -> list[Term]:
        """(mu_{l-1}, W_l H_l...H_2) of every layer."""
        return self.left(s, 0, w)

    def H(self, s: State, layer: int, w: Array) -> Quadratic:
        """A from `left`, B = D_l D_l', C = sum_k mu_{k-1} C_l^(k)' X D_l'."""
        left = self.left(s, layer, w)
        A, _ = normal(left)
        CtX = sum(weight * (C.T @ s.XHt(layer + i)) for i, (weight, C) in enumerate(left))
        return Quadratic.of(A=A, B=s.DDt(layer), C=CtX @ s.lift(layer - 1).T)

    def W(self, s: State, layer: int, w: Array) -> Quadratic:
        """B = mu Ht_l Ht_l', C = mu X Ht_l'."""
        T = s.lift(layer)
        return w[layer] * Quadratic.of(B=T @ s.data.HHt @ T.T, C=s.XHt(layer) @ T.T)

    def left(self, s: State, layer: int, w: Array) -> list[Term]:
        """(mu_{k-1}, C_l^(k)), k = l, ..., L: what stands to the left of H_l in each term."""
        return [(float(w[k]), s.chain(k, layer)) for k in range(layer, s.depth)]
