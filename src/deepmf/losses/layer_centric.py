"""The layer-centric model (LC-DMF), eq. 4."""

from __future__ import annotations

from collections.abc import Sequence

from deepmf.core.quadratic import Array
from deepmf.core.terms import H, Term, W, X
from deepmf.losses.base import Loss, expected_errors, layer_weights


class LayerCentric(Loss):
    """1/2 sum_l lam_{l-1} ||W_{l-1} - W_l H_l||^2 with W_0 = X and lam_0 = 1.

    Every layer but the last is pulled by the layer above, whose data it is, and by its own.

    =====  ==================  ============================  ===========================
    block  A                   B                             C
    =====  ==================  ============================  ===========================
    H_l    lam_{l-1} W_l' W_l  I                             lam_{l-1} W_l' W_{l-1}
    W_l    I                   lam_{l-1} H_l H_l' + lam_l I  lam_{l-1} W_{l-1} H_l'
                                                             + lam_l W_{l+1} H_{l+1}
    =====  ==================  ============================  ===========================

    (the terms with lam_l only for l < L).

    Parameters
    ----------
    lam : float or sequence of L - 1 floats
        With ``calibrate`` (default) the wanted ratio of each term to the first one, with the errors
        of layers that have each settled alone: ``lam_l = lam * err_1 / err_{l+1}``. Without it,
        lam_l itself. The paper takes 10 and the errors at the start; large values make layer 1 a
        copy of layer 2 wherever the data are noisy.
    calibrate : bool
        Whether ``lam`` is relative to the layers' errors.
    """

    name = "layer-centric"

    def __init__(self, lam: float | Sequence[float] = 0.3, calibrate: bool = True) -> None:
        self.lam = lam
        self.calibrate = calibrate

    def terms(self, depth: int, w: Array) -> list[Term]:
        """``lam_{l-1}/2 ||W_{l-1} - W_l H_l||^2`` with W_0 = X."""
        return [Term(w[k], X if k == 0 else W(k - 1), (W(k), H(k))) for k in range(depth)]

    def check_depth(self, depth: int) -> None:
        """See `Loss.check_depth`."""
        layer_weights(self.lam, depth, "lam")

    def weights(self, errors: Array, sizes: Array) -> Array:
        """[1, lam_1, ..., lam_{L-1}]."""
        lam = layer_weights(self.lam, len(errors), "lam")
        if self.calibrate:
            err = expected_errors(errors, sizes)
            lam = lam * err[0] / err
        return lam
