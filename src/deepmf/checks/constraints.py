"""A projection is the nearest point of the set, and what the class says of the set is true."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepmf.checks.promise import close, kind_of, promise, untouched
from deepmf.constraints import Constraint
from deepmf.core.quadratic import Array

_PAIRS = 30
"""Points of the set to which the projection is compared."""

_APPROXIMATE = 0.05
"""Tolerated excess distance of a projection onto a set that is not convex."""


def check_constraint(
    constraint: Constraint, shape: tuple[int, int] = (7, 5), random_state: int = 0
) -> None:
    """Check a constraint on random matrices of one shape.

    With P the projection of M and Z any point of the set: P is in the set, and projecting it again
    changes nothing; ``||M - P|| <= ||M - Z||``, up to 5 % where the set is not convex, and where it
    is ``<M - P, Z - P> <= 0``; what ``separable``, ``nonnegative`` and ``bounded`` say is so; M is
    left as it is and its type is kept.

    Parameters
    ----------
    constraint : Constraint
        What is checked.
    shape : (int, int)
        Of the matrices; more than one column, or separability cannot show.
    random_state : int
        Seed of the matrices.

    Raises
    ------
    AssertionError
        The first promise that is broken.

    Examples
    --------
    >>> from deepmf import Simplex
    >>> from deepmf.checks import check_constraint
    >>> check_constraint(Simplex())
    """
    kind_of("constraint", constraint, Constraint)
    rng = np.random.default_rng(random_state)
    for M in _matrices(shape, rng):
        _nearest(constraint, M, rng)
    _declared(constraint, 3 * rng.standard_normal(shape))


def _matrices(shape: tuple[int, int], rng: np.random.Generator) -> Iterator[Array]:
    for size in (1.0, 1e3, 1e-3):
        yield size * rng.standard_normal(shape)
    yield rng.random(shape)
    yield -rng.random(shape)
    yield np.zeros(shape)


def _nearest(constraint: Constraint, M: Array, rng: np.random.Generator) -> None:
    try:
        P = constraint.project(untouched(M))
    except ValueError as error:
        promise(
            "read-only" not in str(error), constraint, "project writes to the matrix it is given."
        )
        raise
    promise(isinstance(P, np.ndarray), constraint, "project does not return an array.")
    promise(P.shape == M.shape, constraint, f"project of {M.shape} has shape {P.shape}.")
    promise(np.isfinite(P).all(), constraint, "a projection is NaN or infinite.")
    again = constraint.project(P)
    promise(close(again, P, 1e-6), constraint, "projecting a projection changes it.")
    distance = float(np.linalg.norm(M - P))
    slack = 1e-9 if constraint.convex else _APPROXIMATE
    for _ in range(_PAIRS):
        size = 10 ** rng.uniform(-2, 1) * max(float(np.abs(M).max()), 1.0)
        Z = constraint.project(M + size * rng.standard_normal(M.shape))
        further = float(np.linalg.norm(M - Z))
        promise(
            distance <= further * (1 + slack) + 1e-12,
            constraint,
            f"a point of the set is at distance {further:.6g}, its projection at {distance:.6g}.",
        )
        if constraint.convex:
            inner = float(np.sum((M - P) * (Z - P)))
            promise(
                inner <= 1e-9 * (1 + distance * float(np.linalg.norm(Z - P))),
                constraint,
                "the set is not convex: a point of it lies beyond the projection. Set "
                "convex = False, or fix project.",
            )


def _declared(constraint: Constraint, M: Array) -> None:
    P = constraint.project(M)
    if constraint.separable is not None:
        columns = np.hstack([constraint.project(M[:, [j]]) for j in range(M.shape[1])])
        promise(
            close(columns, P, 1e-9),
            constraint,
            f"separable is {constraint.separable!r}, but columns projected alone differ.",
        )
    if constraint.separable == "entries":
        entries = [[float(constraint.project(np.array([[x]]))[0, 0]) for x in row] for row in M]
        promise(close(entries, P, 1e-9), constraint, "entries projected alone differ.")
    if constraint.nonnegative:
        promise(P.min() >= 0, constraint, "nonnegative is true, but a projection is not.")
    if constraint.bounded:
        near, far = (np.abs(constraint.project(size * M)).max() for size in (1e8, 1e12))
        promise(far <= 10 * near, constraint, f"bounded is true, but an entry is {far:.3g}.")
    short = constraint.project(M.astype(np.float32))
    promise(short.dtype == np.float32, constraint, f"float32 is projected to {short.dtype}.")
