"""Nonnegative double singular value decomposition (Boutsidis and Gallopoulos 2008)."""

from __future__ import annotations

import numpy as np

from deepmf._utils.messages import counted, setting
from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels
from deepmf.init.base import StartError


def nndsvd(panels: Panels, rank: int, rng: np.random.Generator | None = None) -> Array:
    """Columns along ``u_+``, or along ``u_-`` where the negative parts are heavier.

    ``X ~ sum_j s_j u_j v_j'``; the heavier of ``(u_+, v_+)`` and ``(u_-, v_-)`` decides each sign.
    All columns get the norm of a typical data point: codes of one size make the fit's blocks well
    conditioned, and a bounded H can reach the data.
    """
    if rank > min(panels.shape):
        raise StartError(
            f"NNDSVD gives at most min{panels.shape} = {counted(min(panels.shape), 'component')}, "
            f"but rank {rank} was asked for. Lower the rank or use {setting(init='random')}."
        )
    U, _ = panels.leading(rank)
    heavy = np.sqrt(panels.halves_norms2(U))  # ||s_j v_j+||, ||s_j v_j-||
    typical = np.sqrt(panels.norm2 / panels.shape[1])
    W = np.zeros_like(U)
    for j in range(rank):
        sides = [np.maximum(sign * U[:, j], 0) for sign in (1, -1)]
        u = sides[int(_norm(sides[0]) * heavy[0, j] < _norm(sides[1]) * heavy[1, j])]
        if _norm(u) > 0:
            W[:, j] = typical * u / _norm(u)
    return W


def _norm(v: Array) -> float:
    return float(np.linalg.norm(v))
