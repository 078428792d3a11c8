"""Maximum volume of the dual simplex (MV-Dual, Abdolali, Barbarino and Gillis 2024)."""

from __future__ import annotations

import numpy as np

from deepmf._utils.messages import setting
from deepmf._utils.threads import single_blas
from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels
from deepmf.init.base import StartError
from deepmf.init.nfindr import largest_simplex
from deepmf.init.reduced import reduced

_FIRST, _SHARPER, _LAST = 1e-2, 0.3, 1e-5
"""Slack relative to the data: at first, factor from stage to stage, and at least."""

_NEVER = 1e10
"""Objective where the simplex is turned inside out, which a line search must step back from."""

_STAGE = {"maxiter": 500, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}


def mv_dual(panels: Panels, rank: int, rng: np.random.Generator | None = None) -> Array:
    """Vertices of the simplex around the data whose dual is largest; they need not be columns.

    With Y = U'X the data in r dimensions, u'y the sum of a column and h = Q y its coordinates::

        max  log|det Q| - 1/n sum_kj rho((-q_k'y_j)_+ / (s ||q_k||))   with   1'Q = u'
        rho(t) = t^2 / 2 for t <= 1, t - 1/2 above;   s^2 = ||X - U Y||^2 / (n (m - r))

    On the plane u'y = 1, rows of Q are facets ``q_k'y = (1 - t_k'(y - v)) / r`` of the simplex with
    vertices Q^-1 and center v. The t_k are the vertices of its dual about v, whose volume is
    proportional to ``|det Q|``. The slack rho is what noise of the size of the residual makes of
    columns inside. ||q_k|| is that of the largest simplex of columns (N-FINDR), the first Q.
    Stages with less and less slack approach s where there is little noise. In the end vertices are
    scaled such that codes sum to one, as nearly as a single scale for each allows.
    """
    data = reduced(panels, rank, "MV-Dual")
    Y, seeds = data.Y, largest_simplex(data)
    sums = data.U.sum(axis=0)
    average, extreme = sums @ Y.mean(axis=1), sums @ Y[:, seeds]
    if min(average, *extreme) <= 0:
        raise StartError(
            f"MV-Dual scales columns to a common sum, and the sum of an extreme column is not "
            f"positive. Use {setting(init='snpa')} or {setting(init='random')} for such data."
        )
    V = Y[:, seeds] * (average / extreme)
    signed = panels.columns(data.index[seeds]).min() < 0
    norm2 = np.sum(Y * Y)
    rest2 = max(np.sum(panels.column_norms2()[data.index]) - norm2, 0.0)
    noise = np.sqrt(rest2 / (Y.shape[1] * max(panels.shape[0] - rank, 1)))
    size = np.sqrt(norm2 / Y.size)
    with single_blas():
        V = _vertices(Y, V, max(noise, _LAST * size), _FIRST * size)
    W: Array = data.U @ (V / _scales(np.linalg.solve(V, Y)))
    return W if signed else np.maximum(W, 0)


def _vertices(Y: Array, V: Array, slack: float, first: float) -> Array:
    """Q^-1 of the best Q, from the vertices V of another simplex."""
    if len(V) == 1:
        return V
    widths = np.linalg.norm(np.linalg.inv(V), axis=1)
    s = max(slack, first)
    while True:
        V = V @ np.linalg.inv(_change(np.linalg.solve(V, Y), s * widths))
        if s <= slack:
            return V
        s = max(_SHARPER * s, slack)


def _scales(H: Array) -> Array:
    """argmin over d of ||H'd - 1||, where that is positive."""
    d = np.linalg.lstsq(H @ H.T, H.sum(axis=1), rcond=None)[0]
    return d if d.min() > 0 else np.ones_like(d)


def _change(H: Array, slacks: Array) -> Array:
    """The best G for Q <- G Q, with H = Q Y: columns of G sum to one."""
    from scipy.optimize import minimize  # late: it loads slowly

    r, n = H.shape
    eye = np.eye(r)

    def whole(free: Array) -> Array:
        A = free.reshape(r - 1, r)
        return eye + np.vstack([A, -A.sum(axis=0)])

    def objective(free: Array) -> tuple[float, Array]:
        G = whole(free)
        sign, log_det = np.linalg.slogdet(G)
        if sign <= 0:
            return _NEVER, np.zeros_like(free)
        outside = np.maximum(-(G @ H) / slacks[:, None], 0)
        inner = np.minimum(outside, 1)
        value = np.sum(inner * (outside - 0.5 * inner)) / n - log_det
        gradient = -(inner / slacks[:, None]) @ H.T / n - np.linalg.inv(G).T
        return value, (gradient[:-1] - gradient[-1]).ravel()

    free = np.zeros((r - 1) * r)
    return whole(minimize(objective, free, jac=True, method="L-BFGS-B", options=_STAGE).x)
