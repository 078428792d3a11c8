"""Columns on the simplex that minimize a sum over entries, compiled by Numba.

::

    min over m >= 0, sum m = 1 of  sum_i  c_i m_i - k_i log m_i + q/2 m_i^2 + e (m_i log m_i - m_i)

where k >= 0 and either e > 0 or q = 0. With a number eta for the constraint, every entry has

    e log m + q m + c + eta = k / m.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepmf.kernels.tiles import inlined, jit

_STEPS, _EXACT = 60, 1e-14

_FARTHEST = 1.0
"""Longest step of log m."""

_NOTHING = 1e-280
"""Entry from which Newton's method would not come back in time."""


@jit
def simplex_roots(
    c: Any, k: Any, q: float, e: float, M: Any, first: int, last: int, out: Any
) -> bool:
    """Rows first, ..., last - 1 of ``out`` from those of M, near which they begin; false: failed.

    c, k, M and out hold columns as rows.
    """
    for j in range(first, last):
        if e > 0:
            done = _with_logarithm(c[j], k[j], q, e, M[j], out[j])
        else:
            done = _rational(c[j], k[j], M[j], out[j])
        if not done:
            return False
        total = out[j].sum()
        for i in range(out.shape[1]):
            out[j, i] /= total
    return True


@inlined
def _rational(c: Any, k: Any, M: Any, out: Any) -> bool:
    """m = k / (c + eta): Newton's method on ``1 / sum m = 1``, which comes from the left."""
    eta = -np.inf
    for i in range(len(k)):
        if k[i] > 0:
            eta = max(eta, k[i] - c[i])
    if eta == -np.inf:
        out[:] = M  # nothing to explain
        return True
    for _ in range(_STEPS):
        total = slope = 0.0
        for i in range(len(k)):
            if k[i] > 0:
                m = k[i] / (c[i] + eta)
                total += m
                slope += m * m / k[i]
        step = (total - 1) * total / slope
        eta += step
        if not abs(step) > _EXACT * abs(eta) or abs(total - 1) <= _EXACT:
            break
    for i in range(len(k)):
        out[i] = k[i] / (c[i] + eta) if k[i] > 0 else 0.0
    return np.isfinite(eta)


@inlined
def _with_logarithm(c: Any, k: Any, q: float, e: float, M: Any, out: Any) -> bool:
    """Newton's method on all log m and eta together.

    A step d of log m is taken as the factor (1 + d/2) / (1 - d/2).
    """
    for i in range(len(k)):
        out[i] = max(M[i], _NOTHING)
    for _ in range(_STEPS):
        excess, weight = -1.0, 0.0
        for i in range(len(k)):
            m = out[i]
            pull = k[i] / m
            share = m / (e + q * m + pull)
            weight += share
            excess += m - share * (e * np.log(m) + q * m + c[i] - pull)
        eta = excess / weight
        longest = 0.0
        for i in range(len(k)):
            m = out[i]
            pull = k[i] / m
            d = -(e * np.log(m) + q * m + c[i] + eta - pull) / (e + q * m + pull)
            d = max(min(d, _FARTHEST), -_FARTHEST)
            out[i] = max(m * (1 + d / 2) / (1 - d / 2), _NOTHING)
            if out[i] > _NOTHING:
                longest = max(longest, abs(d))
        if longest <= 1e-11:
            return True
    return False
