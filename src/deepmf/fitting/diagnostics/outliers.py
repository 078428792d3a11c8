"""Findings about single samples and features that a squared error bows to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import setting
from deepmf.core.quadratic import Array, Quadratic
from deepmf.data.layout import Layout
from deepmf.data.matrix import adapted, as_numpy
from deepmf.data.panels import Panels
from deepmf.fitting.diagnostics.finding import Finding
from deepmf.fitting.fit import Fit
from deepmf.fitting.problem import Problem

_FEW = 3
"""Largest number of samples that a component of outliers is for."""

_SAMPLES = 20
"""Samples per component below which a component of a few samples is nothing unusual."""

_LONG = 0.3
"""Squares of a component in one sample, relative to those of the average sample, from which on
the component is there for that sample; a nearly empty one may be there for any."""

_ALL = 0.9
"""Share of all squares in one feature from which on the others hardly count: at most 0.05 in
scenes, cells, texts and pictures."""

_FEATURES = 10
"""Number of features below which one of them may well have most of the squares."""


def outliers(done: Fit, problem: Problem, panels: Panels, layout: Layout) -> Iterator[Finding]:
    """Samples that a component of layer 1 is for, and a feature with nearly all of the squares.

    Divergences bow less to large entries, and counts have long tails.
    """
    if problem.fits:
        return
    found: dict[int, list[int]] = {}
    for component, samples in enumerate(_samples_of_components(done, panels)):
        for j in samples:
            found.setdefault(int(j), []).append(component)
    for j, components in list(found.items())[:_FEW]:
        yield Finding.of("outlier", None, _of_sample(j, components, panels, layout))
    i = _feature_with_all(done)
    if i is not None:
        yield Finding.of(
            "outlier",
            None,
            f"Nearly all of the data's squares are in {layout.feature_name(i)}, and the others "
            f"hardly count: leave it out if it is broken, or bring it to the size of the others.",
        )


def _of_sample(j: int, components: list[int], panels: Panels, layout: Layout) -> str:
    """The sentence about a sample; about one entry of it, where that has most of its squares."""
    squares = np.nan_to_num(panels.columns([j])[:, 0]) ** 2
    i = int(np.argmax(squares))
    name, named = layout.sample_name(j), ", ".join(str(k + 1) for k in components)
    one = len(components) == 1
    what = f"Component{'' if one else 's'} {named} of layer 1 {'is' if one else 'are'} there for"
    if squares[i] > squares.sum() / 2 and len(squares) >= _FEATURES:
        return (
            f"{what} {name} alone, whose entry of {layout.feature_name(i)} is larger than all its "
            f"others together: if it is broken, put NaN there and use "
            f"{setting(weights='observed')}, or leave out the sample."
        )
    return f"{what} {name} alone, which is unlike all others: leave it out if it is broken."


def _samples_of_components(done: Fit, panels: Panels) -> Iterator[NDArray[np.intp]]:
    """Few samples that have most of a component of layer 1, component by component."""
    s, H = done.state, panels.codes.H
    n, rank = panels.shape[1], s.W[0].shape[1]
    matrix = adapted(H)
    if n < _SAMPLES * rank or (matrix is not None and matrix.lazy):
        return  # lazy codes stay on the workers
    total, top, index = np.zeros(rank), np.zeros((rank, 0)), np.zeros((rank, 0), dtype=np.intp)
    for start in range(0, n, panels.width):
        block = as_numpy(H[s.rows(0), start : start + panels.width]).astype(np.float64) ** 2
        total += block.sum(axis=1)
        few = min(_FEW, block.shape[1])
        here = np.argpartition(block, -few, axis=1)[:, -few:]
        top = np.hstack([top, np.take_along_axis(block, here, axis=1)])
        index = np.hstack([index, start + here])
        last = np.argsort(top, axis=1)[:, -_FEW:]
        top = np.take_along_axis(top, last, axis=1)
        index = np.take_along_axis(index, last, axis=1)
    long = top * np.sum(s.W[0] ** 2, axis=0)[:, None] > _LONG * panels.norm2 / n
    large = long & (top > total[:, None] / (_FEW + 1))
    for k in range(rank):
        most = top[k, large[k]].sum() > total[k] / 2
        yield index[k, large[k]] if most else index[k, :0]


def _feature_with_all(done: Fit) -> int | None:
    """The feature with nearly all squares of what layer 1 explains, if there is one."""
    s = done.state
    if len(s.W[0]) < _FEATURES or not s.data.terms or not isinstance(s.data.terms[0], Quadratic):
        return None
    B: Array = s.basis(0)
    squares = np.sum((B @ s.data.gram) * B, axis=1)
    i = int(np.argmax(squares))
    return i if squares[i] > _ALL * squares.sum() else None
