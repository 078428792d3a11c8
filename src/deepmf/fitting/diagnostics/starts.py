"""Findings about starts whose fits explain the data equally well by other components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deepmf._utils.messages import setting
from deepmf.fitting.diagnostics.components import distances, neighbors
from deepmf.fitting.diagnostics.finding import Finding
from deepmf.fitting.fit import Fit

_EQUAL = 0.004
"""Objectives closer than this share of the loss hardly prefer one of two fits; fits from starts
with the same outcome differ by about 0.002 at the default tol."""

_ELSEWHERE = 0.75
"""A component is another one if its match is as far away as this share of the median distance of
components from their nearest; pairs that are the same are at 0 to 0.5."""


def unstable(done: Fit, starts: Sequence[str]) -> Iterator[Finding]:
    """Layers that another start explained equally well by other components."""
    from scipy.optimize import linear_sum_assignment

    for k, layer in enumerate(done.alone):
        near = neighbors(distances(layer.W)) if layer.W.shape[1] > 1 else np.full(1, np.inf)
        for rival in layer.rivals:
            if rival.excess > _EQUAL:
                continue
            D = distances(layer.W, rival.W)
            moved = D[linear_sum_assignment(D)] > _ELSEWHERE * max(np.median(near), 1e-3)
            if moved.any():
                which = ", ".join(str(i + 1) for i in np.flatnonzero(moved))
                yield Finding.of(
                    "unstable",
                    k + 1,
                    f"Start {rival.start + 1} of {setting('init')}, {starts[rival.start]}, gave "
                    f"layer {k + 1} other components in place of {which}, at an objective only "
                    f"{100 * rival.excess:.2g} % higher: rely on the rest of them, or take fewer "
                    f"({setting('ranks')}); deepmf.scan measures how stable each number is.",
                )
                break
