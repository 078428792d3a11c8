"""Links between the components of two layers, and agreement of siblings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf.metrics.arrays import Array, real
from deepmf.metrics.clustering import contingency, numbered


def links(H: ArrayLike) -> Array:
    """Shares ``|H(i, j)| / sum_i |H(i, j)|``: how much of lower component j each upper one i takes.

    Parameters
    ----------
    H : array_like, r_l x r_{l-1}

    Returns
    -------
    ndarray of the shape of H
        Columns sum to 1, except that a zero column stays zero.
    """
    A = np.abs(real(H, "H"))
    if A.ndim != 2:
        raise ValueError(f"H has shape {A.shape}, but links need a matrix r_l x r_(l-1).")
    total = A.sum(axis=0)
    return A / np.where(total == 0, 1, total)


class HierarchyAgreement(NamedTuple):
    """Agreement of siblings on the class of their samples.

    Attributes
    ----------
    agreement : float
        Share of pairs of siblings that agree, in [0, 1]; NaN where no parent has two components.
    chance : float
        Share of all pairs that agree, which is the mean over all exchanges of parents.
    """

    agreement: float
    chance: float


def hierarchy_agreement(H: ArrayLike, codes: ArrayLike, labels: ArrayLike) -> HierarchyAgreement:
    """Share of pairs of components with one parent whose samples have the same majority class.

    ::

        parent(j) = argmax_i H(i, j)                                 upper component of j
        class(j) = most frequent label among the samples whose largest code is j's
        agreement = share of pairs j < k with parent(j) = parent(k) that have class(j) = class(k)

    A component without a sample or without a parent is left out. Every pair counts once, however
    many samples the two have.

    Parameters
    ----------
    H : array_like, r_l x r_{l-1}
        Links from layer l - 1 to layer l, as in ``f.links(l)``.
    codes : array_like, r_{l-1} x n
        Codes of the lower layer, as in ``f.codes(l - 1)``.
    labels : array_like of n
        Coarse classes of the samples, as numbers or names.

    Returns
    -------
    HierarchyAgreement
    """
    A, C, classes = links(H), real(codes, "codes"), numbered(labels, "labels")
    if C.shape != (A.shape[1], len(classes)):
        raise ValueError(
            f"codes have shape {C.shape}, but for {A.shape[1]} lower components in H and "
            f"{len(classes)} labels they must have shape {(A.shape[1], len(classes))}."
        )
    counts = contingency(classes, np.argmax(C, axis=0), len(C))
    used = (counts.sum(axis=0) > 0) & (A.sum(axis=0) > 0)
    parent, majority = np.argmax(A, axis=0)[used], np.argmax(counts, axis=0)[used]
    one, other = np.triu_indices(len(parent), 1)
    same, siblings = majority[one] == majority[other], parent[one] == parent[other]
    return HierarchyAgreement(_share(same[siblings]), _share(same))


def _share(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if values.size else float("nan")
