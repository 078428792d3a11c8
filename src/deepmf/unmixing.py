"""Linear unmixing: a layer as fractions of pixels and spectra in the data's units.

Files, figures and pages all take a layer's fractions and spectra from its `LayerView`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deepmf.core.quadratic import Array
from deepmf.data.layout import Layout

_FRACTIONS = "fractions of each pixel; they sum to 1 over the components"
_SPECTRA = "spectra in the data's units, as bright as the pixels that hold them are on average"

_SUM = 1e-3
"""Codes whose sums are within this distance of 1 are fractions already."""


class Mixture(NamedTuple):
    """Linear mixing model ``x_j = b_j sum_k F(k, j) s_k`` of pixels x_j."""

    spectra: Array
    """S, m x r, in the data's units."""
    fractions: Array
    """F, r x n; columns sum to 1, and are 0 where a pixel has no codes."""
    brightness: Array
    """b, n numbers around 1: how brightly each pixel is lit."""


def mixture(W: Array, A: Array, totals: ArrayLike | None = None) -> Mixture | None:
    """Rewrite ``W A`` as a linear mixing model ``S F diag(b)``.

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
    totals : array_like of r floats, optional
        t, the sums of the spectra over the bands, where other data have fixed them already.

    Returns
    -------
    Mixture or None
        None where a factor has entries that are negative or not finite, which cannot be a mixture.
    """
    if not all(np.isfinite(M).all() and (M >= 0).all() for M in (W, A)):
        return None
    if totals is None and np.allclose(A.sum(axis=0), 1, rtol=0, atol=_SUM):
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
    """Amounts of each component in every sample."""

    kind: Literal["fractions", "codes"]
    values: Array
    """Components x samples."""
    text: str
    """Description of the values, for files."""

    def maps(self, layout: Layout) -> Array:
        """Images of a scene, components x rows x cols, NaN where there is no data."""
        return np.stack([layout.image(row) for row in self.values]).astype(self.values.dtype)


@dataclass(frozen=True, eq=False)
class LayerView:
    """One layer of a result: its components, and how much of each every sample holds.

    Every property is computed at most once; see `Factorization.view`.

    Attributes
    ----------
    number : int
        The layer, from 1.
    W : array, m x r_l
        Its components.
    H : sequence of arrays
        H_1, ..., H_l.
    layout : Layout
        Of the data.
    """

    number: int
    W: Array
    H: Sequence[Array]
    layout: Layout

    @cached_property
    def mixture(self) -> Mixture | None:
        """The layer as a linear mixing model, taking samples as pixels; None for signed factors."""
        totals = self.layout.spectra_totals
        return mixture(self.W, self._product(), totals[self.number - 1] if totals else None)

    @property
    def unmixed(self) -> Mixture | None:
        """`mixture` where the samples are the pixels of a scene, else None."""
        return self.mixture if self.layout.kind == "scene" else None

    @cached_property
    def codes(self) -> Amounts:
        """Codes H_l ... H_1."""
        chain = " ".join(f"H_{k}" for k in range(self.number, 0, -1))
        return Amounts("codes", self._product(), f"deepmf, layer {self.number}: codes {chain}")

    @cached_property
    def fractions(self) -> Amounts:
        """Fractions, taking samples as pixels; codes where factors are signed."""
        if self.mixture is None:
            return self.codes
        text = f"deepmf, layer {self.number}: {_FRACTIONS}"
        return Amounts("fractions", self.mixture.fractions, text)

    @property
    def amounts(self) -> Amounts:
        """`fractions` of a scene, `codes` of other data."""
        return self.fractions if self.layout.kind == "scene" else self.codes

    @property
    def components(self) -> Array:
        """Spectra of a scene in the data's units; W_l of other data, and of signed factors."""
        return self.W if self.unmixed is None else self.unmixed.spectra

    @property
    def components_text(self) -> str:
        """Description of `components`, for files."""
        what = f"components W_{self.number} of the fit" if self.unmixed is None else _SPECTRA
        return f"deepmf, layer {self.number}: {what}"

    def _product(self) -> Array:
        return reduce(lambda codes, H: H @ codes, self.H[1:], self.H[0])
