"""Findings about components: two that are nearly the same, and some that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import counted, setting
from deepmf.core.quadratic import Array
from deepmf.data.matrix import adapted, as_numpy
from deepmf.data.panels import Panels
from deepmf.fitting.diagnostics.finding import Finding
from deepmf.fitting.fit import Fit
from deepmf.fitting.problem import Problem

_NEAR = 0.25
"""Distance of two components, relative to that of others to their neighbors, below which they are
copies. The nearest in good fits of scenes, cells and text were at 0.34 to 0.95."""

_ANGLE = np.pi / 100
"""Angle between mean-removed components, MRSA 1, below which they are copies in any layer."""

_EMPTY = 1e-6
"""Share of a layer's squares below which a component is empty: a thousandth of its mass."""

_FAINT = 1e-3
"""Share of a layer's squares, times its rank, below which a component that is the largest part of
no sample is of no use; a material of a few pixels is the largest part of these."""


def near_copies(done: Fit, problem: Problem) -> Iterator[Finding]:
    """Pairs of near-copies: close both as they are and without their means."""
    for k in range(done.state.depth):
        pairs = pairs_of_copies(done.state.components(k))
        if not pairs:
            continue
        named = ", ".join(f"{i + 1} and {j + 1}" for i, j in pairs[:3])
        more = f" and {counted(len(pairs) - 3, 'more pair')}" if len(pairs) > 3 else ""
        weaker = (
            f", or a lower weight in {setting('regularizer_W')}"
            if problem.layers[k].regularizer_W is not None
            else ""
        )
        yield Finding.of(
            "near-copies",
            k + 1,
            f"Components {named}{more} of layer {k + 1} are near-copies of each other: try fewer "
            f"components there ({setting('ranks')}), another {setting('init')}{weaker}.",
        )


def pairs_of_copies(W: Array) -> list[tuple[int, int]]:
    """Pairs of columns that are nearly the same up to scale.

    Spectra resemble each other far more than topics do, so distances are relative: to the median
    distance of the other columns from their nearest.
    """
    used = np.flatnonzero(np.linalg.norm(W, axis=0) > 0)
    if len(used) < 2:
        return []
    raw, centered = distances(W[:, used]), distances(_centered(W[:, used]))
    chord = 2 * np.sin(_ANGLE / 2)
    doubtful = np.triu((raw < _NEAR * raw.max()) | (centered < chord), 1)
    return [
        (int(used[i]), int(used[j]))
        for i, j in np.argwhere(doubtful)
        if centered[i, j] < chord
        or all(D[i, j] < _NEAR * _typical(D, i, j) for D in (raw, centered))
    ]


def distances(A: Array, B: Array | None = None) -> Array:
    """Distances of the columns of A, scaled to norm one, from those of B, by default A."""
    U = _unit(A)
    V = U if B is None else _unit(B)
    return np.array([np.linalg.norm(V - u[:, None], axis=0) for u in U.T])


def neighbors(D: Array) -> Array:
    """Distance of each column from its nearest."""
    return np.min(D + np.where(np.eye(len(D)), np.inf, 0.0), axis=1)


def _typical(D: Array, i: int, j: int) -> float:
    """Median distance of the columns but i and j from their nearest, i < j; 0 if there are none."""
    others = np.delete(neighbors(np.delete(np.delete(D, j, 0), j, 1)), i)
    return float(np.median(others)) if len(others) else 0.0


def _unit(A: Array) -> Array:
    norms = np.linalg.norm(A, axis=0)
    return A / np.where(norms > 0, norms, 1.0)


def _centered(A: Array) -> Array:
    return A - A.mean(axis=0)


def unused(done: Fit, panels: Panels) -> Iterator[Finding]:
    """Components without mass, and faint ones that are the largest part of no sample."""
    for k, sizes in enumerate(done.sizes or []):
        shares = sizes / max(sizes.sum(), np.finfo(float).tiny)
        empty = shares < _EMPTY
        faint = ~empty & (shares < _FAINT / len(shares))
        if faint.any():
            faint &= ~_largest_somewhere(done, panels, k)
        for hit, what in ((empty, "nearly nothing"), (faint, "little, and lead in no sample")):
            if hit.any():
                named = ", ".join(f"L{k + 1}-{i + 1}" for i in np.flatnonzero(hit))
                yield Finding.of(
                    "unused",
                    k + 1,
                    f"Layer {k + 1}: {named} carry {what} (at most {shares[hit].max():.1g} of the "
                    f"layer's squares): lower {setting('ranks')} there, or try another "
                    f"{setting('init')}.",
                )


def _largest_somewhere(done: Fit, panels: Panels, k: int) -> NDArray[np.bool_]:
    """Components of a layer that are the largest part of some sample."""
    s, H = done.state, panels.codes.H
    W = s.components(k)
    out = np.zeros(W.shape[1], dtype=bool)
    matrix = adapted(H)
    if matrix is not None and matrix.lazy:
        return ~out  # codes stay on the workers
    lift = np.eye(len(H))[s.rows(k)]
    for deeper in [] if s.over_codes else s.H[1 : k + 1]:
        lift = deeper @ lift
    lift = np.linalg.norm(W, axis=0)[:, None] * lift
    for start in range(0, H.shape[1], panels.width):
        parts = lift @ as_numpy(H[:, start : start + panels.width])
        seen = parts.max(axis=0) > 0
        out[np.unique(parts[:, seen].argmax(axis=0))] = True
    return out
