"""A scene's factors as one measures them: fractions of pixels, spectra in the data's units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepmf.core.quadratic import Array

FRACTIONS = "fractions of each pixel; they sum to 1 over the components"
SPECTRA = "spectra in the data's units, as bright as the pixels that hold them are on average"
"""What the parts of a `Mixture` are, for files and pages."""

_SUM = 1e-3
"""Codes whose sums are this near to 1 are fractions already."""


class Mixture(NamedTuple):
    """``x_j = b_j sum_k F(k, j) s_k``: a pixel is a mixture of spectra, more or less lit."""

    spectra: Array
    """S, m x r, in the data's units."""
    fractions: Array
    """F, r x n; columns sum to 1, and are 0 where a pixel has no codes."""
    brightness: Array
    """b, of each pixel; about 1."""


def mixture(W: Array, A: Array, totals: Array | None = None) -> Mixture | None:
    """``W A = S F diag(b)``: the same product as a linear mixing model.

    ::

        c_k = sum_i W(i, k)
        L = diag(c) A                   what a component adds to a pixel, summed over all bands
        l_j = sum_k L(k, j)             a pixel's total
        t_k = sum_j L(k, j) / sum_j (L(k, j) / l_j)
        S = W diag(t / c),  F diag(b) = diag(c / t) A,  sum_k F(k, j) = 1

    t_k is the mean of the totals l_j, each weighted by component k's share of it: a spectrum is as
    bright as the pixels that hold it are on average. Codes that sum to 1 in every pixel are
    fractions already: there S = W and F = A.

    Parameters
    ----------
    W : array, m x r
        A layer's components.
    A : array, r x n
        Its codes, one column a pixel.
    totals : array of r floats, optional
        t, where the spectra are known already: their sums over the bands.

    Returns
    -------
    Mixture or None
        None where factors have negative entries or are not finite: these mix nothing.
    """
    if not all(np.isfinite(M).all() and (M >= 0).all() for M in (W, A)):
        return None
    if np.allclose(A.sum(axis=0), 1, rtol=0, atol=_SUM):
        return Mixture(W, A, np.ones(A.shape[1], A.dtype))
    c = W.sum(axis=0)
    L = c[:, None] * A
    t = _means(L) if totals is None else _nonzero(np.asarray(totals, dtype=L.dtype))
    L /= t[:, None]
    b = L.sum(axis=0)
    L /= _nonzero(b)
    return Mixture(W * (t / _nonzero(c)), L, b)


def _means(L: Array) -> Array:
    """t, and for components that no pixel holds the mean of all pixels."""
    totals = L.sum(axis=0)
    shares = L @ (1 / _nonzero(totals))
    return _nonzero(np.where(shares > 0, L.sum(axis=1) / _nonzero(shares), totals.mean()))


def _nonzero(v: Array) -> Array:
    return np.where(v > 0, v, v.dtype.type(1))
