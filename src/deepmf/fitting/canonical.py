"""The canonical scale of a result: components of sum one."""

from __future__ import annotations

import numpy as np

from deepmf.core.quadratic import Array
from deepmf.core.state import State
from deepmf.data.panels import Panels
from deepmf.fitting.problem import Problem


def rescale(problem: Problem, s: State, panels: Panels) -> None:
    """Give the components of every layer sum one, or norm one if they are signed.

    ``W_l D_l^-1`` and ``D_l H_l D_{l-1}^-1`` have the same products as W_l and H_l for all positive
    diagonal matrices D_l, so a model that compares products with X leaves scales open, and with
    them links and the relative sizes of codes. Nothing changes where the model, a set or a penalty
    fixes scales.
    """
    if not _open(problem):
        return
    scales = [_sizes(s.basis(k) if s.over_codes else s.W[k]) for k in range(s.depth)]
    if s.over_codes:
        scales = [_sizes(s.basis(k)[:, s.rows(k)]) for k in range(s.depth)]
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
        and layer.constraint_H.cone
        and layer.regularizer_W is layer.regularizer_H is None
        for layer in problem.layers
    )


def _sizes(W: Array) -> Array:
    """Column sums, or norms where entries are negative; 1 for columns of zeros."""
    sizes = W.sum(axis=0) if (W >= 0).all() else np.linalg.norm(W, axis=0)
    return np.where(sizes > 0, sizes, 1.0)
