"""The quadratic touches the penalty at one point and lies above it elsewhere."""

from __future__ import annotations

import numpy as np

from deepmf.checks.promise import close, kind_of, promise, untouched
from deepmf.constraints import Constraint, Nonnegative
from deepmf.regularizers import Regularizer

_POINTS = 40


def check_regularizer(
    regularizer: Regularizer,
    constraint: Constraint | None = None,
    shape: tuple[int, int] = (7, 4),
    random_state: int = 0,
) -> None:
    """Check a regularizer at random points of a set.

    With q the quadratic of ``majorize(M)``: ``q(Z) - q(M) >= value(Z) - value(M)`` for every Z of
    the set, with equal slopes at M; where ``separable`` is true, both are sums over columns.

    Parameters
    ----------
    regularizer : Regularizer
        What is checked.
    constraint : Constraint, optional
        The set: by default the regularizer's natural one, or else nonnegative matrices.
    shape : (int, int)
        Of the matrices.
    random_state : int
        Seed of the matrices.

    Raises
    ------
    AssertionError
        The first promise that is broken.

    Examples
    --------
    >>> from deepmf import MinVolume
    >>> from deepmf.checks import check_regularizer
    >>> check_regularizer(MinVolume())
    """
    kind_of("regularizer", regularizer, Regularizer)
    rng = np.random.default_rng(random_state)
    constraint = constraint or regularizer.natural_set or Nonnegative()
    for _ in range(5):
        M = untouched(constraint.project(rng.random(shape)))
        value, q = float(regularizer.value(M)), regularizer.majorize(M)
        promise(np.isfinite(value), regularizer, f"its value is {value}.")
        for _ in range(_POINTS):
            Z = constraint.project(M + 10 ** rng.uniform(-2, 1) * rng.standard_normal(shape))
            rise, above = float(regularizer.value(Z)) - value, q.change(M, Z - M)
            promise(
                above >= rise - 1e-9 * (abs(rise) + abs(above) + abs(value)),
                regularizer,
                f"from one point to another the penalty changes by {rise:.6g} and the quadratic "
                f"by less, {above:.6g}; it must lie above.",
            )
        _touches(regularizer, constraint.project(0.9 * M + 0.1 * M.mean()), rng)
        if regularizer.separable:
            parts = [float(regularizer.value(M[:, [j]])) for j in range(shape[1])]
            promise(
                close(sum(parts), value, 1e-9),
                regularizer,
                "separable is true, but its value is not the sum over columns.",
            )
            promise(
                q.column_separable,
                regularizer,
                "separable is true, but its quadratic has a right factor B that mixes columns.",
            )


def _touches(regularizer: Regularizer, M: np.ndarray, rng: np.random.Generator) -> None:
    """Equal slopes at an inner point of a convex set, by central differences."""
    q, h = regularizer.majorize(M), 1e-6
    E = M * rng.standard_normal(M.shape)  # nonnegative points stay so
    slope = (regularizer.value(M + h * E) - regularizer.value(M - h * E)) / (2 * h)
    ours = float(np.sum(q.gradient(M) * E))
    promise(
        abs(slope - ours) <= 1e-4 * (abs(slope) + abs(ours)) + 1e-7,
        regularizer,
        f"in some direction its slope is {slope:.6g} and the quadratic's {ours:.6g}; they must "
        f"touch.",
    )
