"""A scene's factors as one measures them: fractions of pixels, spectra in the data's units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from deepmf.core.quadratic import Array

if TYPE_CHECKING:
    from deepmf.data.layout import Layout
    from deepmf.factorization import Factorization

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


class Amounts(NamedTuple):
    """How much of each component every sample holds, as files tell it."""

    kind: Literal["fractions", "codes"]
    values: Array
    """Components x samples."""
    text: str
    """What the values are, in a sentence."""

    def maps(self, layout: Layout) -> Array:
        """A scene's as pictures, components x rows x cols, NaN where there is no data."""
        return np.stack([layout.image(row) for row in self.values]).astype(self.values.dtype)


def amounts(f: Factorization, layer: int) -> Amounts:
    """Fractions of the pixels of a scene, where its factors have no sign; codes of other data."""
    codes = f.codes(layer)
    mixed = mixture_of(f, layer)
    if mixed is None:
        chain = " ".join(f"H_{k}" for k in range(layer, 0, -1))
        return Amounts("codes", codes, f"deepmf, layer {layer}: codes {chain}")
    return Amounts("fractions", mixed.fractions, f"deepmf, layer {layer}: {FRACTIONS}")


def mixture_of(f: Factorization, layer: int) -> Mixture | None:
    """A scene's fractions and spectra, where its factors have no sign.

    Where codes were computed for the spectra of another fit, ``layout.spectra_totals`` has the
    sums of these.
    """
    if f.layout.kind != "scene":
        return None
    known = f.layout.spectra_totals
    totals = np.array(known[layer - 1]) if known else None
    return mixture(f.basis(layer), f.codes(layer), totals)


def components(f: Factorization, layer: int) -> tuple[Array, str]:
    """W_l, a scene's in the data's units where its factors have no sign; and what that is."""
    mixed = mixture_of(f, layer)
    if mixed is None:
        return f.basis(layer), f"deepmf, layer {layer}: components W_{layer} of the fit"
    return mixed.spectra, f"deepmf, layer {layer}: {SPECTRA}"
