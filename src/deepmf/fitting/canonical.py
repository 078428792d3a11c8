"""The canonical scale of a result: components of one size, or codes of one size."""

from __future__ import annotations

from functools import reduce

import numpy as np

from deepmf.constraints import OneParent
from deepmf.core.quadratic import Array
from deepmf.core.state import State
from deepmf.data.panels import Panels
from deepmf.fitting.problem import Problem


def rescale(problem: Problem, s: State, panels: Panels) -> None:
    """Give components the sum or the norm one, or codes the mean square one, in every layer.

    Signed components have norm one in the place of sum one.

    ``W_l D_l^-1`` and ``D_l H_l D_{l-1}^-1`` have the same products as W_l and H_l for all positive
    diagonal matrices D_l, so a model that compares products with X leaves scales open, and with
    them links and the relative sizes of codes. Nothing changes where the model, a set or a penalty
    fixes scales. Where parents are the sums of their children, these keep the scale of the parent.
    """
    if not _open(problem):
        return
    bases = [s.basis(k)[:, s.rows(k)] if s.over_codes else s.W[k] for k in range(s.depth)]
    scales = [_sizes(B, problem.normalize) for B in bases]
    if problem.normalize == "codes":
        scales = [_mean_squares(s, k, panels.shape[1]) for k in range(s.depth)]
    for k in range(s.depth - 1, 0, -1):
        if _sums_children(problem, k):  # all children have the scale of their parent
            scales[k - 1] = s.H[k].T @ scales[k]
    above: Array = np.ones(1)
    for k, own in enumerate(scales):
        if s.over_codes:
            s.W[k] = (s.W[k] * above[:, None] if k else s.W[k]) / own
        else:
            s.W[k] = s.W[k] / own
            s.H[k] = s.H[k] * own[:, None] / above if k else s.H[k]
        above = own
    first = np.concatenate(scales) if s.over_codes else scales[0]
    panels.codes.rescale(first)
    if s.over_codes:
        s.scales = [scale * own for scale, own in zip(s.scales, scales)]


def _open(problem: Problem) -> bool:
    """Whether scales can be moved between factors without any change of the objective."""
    compares_data = problem.loss.errors == "data" or len(problem.layers) == 1
    return compares_data and all(
        layer.constraint_W.cone
        and (layer.constraint_H.cone or _sums_children(problem, k))
        and layer.regularizer_W is layer.regularizer_H is None
        for k, layer in enumerate(problem.layers)
    )


def _sums_children(problem: Problem, k: int) -> bool:
    """Whether the codes of a layer are sums of those of the layer before."""
    constraint = problem.layers[k].constraint_H
    return k > 0 and isinstance(constraint, OneParent) and constraint.unit


def _mean_squares(s: State, k: int, n: int) -> Array:
    """Factors that give each component's codes mean square one; 1 for codes that are zero."""
    gram = s.data.gram[s.rows(k), s.rows(k)] if s.over_codes else s.data.gram
    squares = np.diag(gram)
    if not s.over_codes and k:
        up = reduce(lambda M, H: H @ M, s.H[1 : k + 1], np.eye(len(gram)))
        squares = np.einsum("ij,jk,ik->i", up, gram, up)
    return np.where(squares > 0, np.sqrt(n / np.where(squares > 0, squares, 1)), 1.0)


def _sizes(W: Array, by: str) -> Array:
    """Column sums, or norms if asked for or where entries are negative; 1 for zero columns."""
    sums = by == "sum" and (W >= 0).all()
    sizes = W.sum(axis=0) if sums else np.linalg.norm(W, axis=0)
    return np.where(sizes > 0, sizes, 1.0)
