"""A solver stays in the set and never goes up, column by column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepmf.checks.promise import close, kind_of, promise, untouched
from deepmf.constraints import Constraint, Nonnegative, Simplex, Unconstrained
from deepmf.core.quadratic import Array, Quadratic
from deepmf.solvers import Solver

_ROWS, _COLUMNS = 6, 8


def check_solver(solver: Solver, random_state: int = 0) -> None:
    """Check a solver on random quadratics over the built-in sets that it does not refuse.

    It stays in the set and never increases f; it moves where it can; where f and the set separate
    over columns, the result does not depend on which columns are solved together; zero curvature
    gives no NaN; its start is left as it is and its type is kept.

    Parameters
    ----------
    solver : Solver
        What is checked.
    random_state : int
        Seed of the quadratics.

    Raises
    ------
    AssertionError
        The first promise that is broken.

    Examples
    --------
    >>> from deepmf import HALS
    >>> from deepmf.checks import check_solver
    >>> check_solver(HALS())
    """
    kind_of("solver", solver, Solver)
    rng = np.random.default_rng(random_state)
    sets: list[Constraint] = [Nonnegative(), Unconstrained(), Simplex()]
    sets = [c for c in sets if solver.objection(c) is None]
    promise(sets, solver, "it refuses every set it could be checked on.")
    for constraint in sets:
        for q in _quadratics(rng):
            _never_up(solver, constraint, q, rng)
        _columns_apart(solver, constraint, rng)
        M = np.ones((_ROWS, _COLUMNS)) / _ROWS
        flat = solver.solve(Quadratic.of(A=np.zeros((_ROWS, _ROWS))), constraint, M, 5, 0.01)
        promise(np.isfinite(flat).all(), solver, "where nothing curves it returns NaN or inf.")


def _quadratics(rng: np.random.Generator) -> Iterator[Quadratic]:
    """Quadratics with separate columns (H), with separate rows (W), and with two terms."""
    A, B = _gram(_ROWS, rng), _gram(_COLUMNS, rng)
    C = rng.random((_ROWS, _COLUMNS))
    for weight in (1.0, 30.0, 0.1):
        yield weight * Quadratic.of(A=A, C=C)
        yield weight * Quadratic.of(B=B, C=C)
    yield Quadratic(((A, B), (_gram(_ROWS, rng), 1.0)), C)


def _gram(size: int, rng: np.random.Generator) -> Array:
    F = rng.random((size + 2, size))
    return F.T @ F


def _never_up(
    solver: Solver, constraint: Constraint, q: Quadratic, rng: np.random.Generator
) -> None:
    M = constraint.project(rng.random((_ROWS, _COLUMNS)))
    for max_iter in (1, 10, 100):
        try:
            N = solver.solve(q, constraint, untouched(M), max_iter, 0.01)
        except ValueError as error:
            promise("read-only" not in str(error), solver, "it writes to its starting point.")
            raise
        promise(N.shape == M.shape, solver, f"from {M.shape} it returns {N.shape}.")
        outside = constraint.violation(N)
        promise(outside <= 1e-8, solver, f"it leaves {constraint!r} by {outside:.2g}.")
        change = q.change(M, N - M)
        scale = float(np.sum(np.abs(M * q.gradient(M))))
        promise(change <= 1e-10 * scale, solver, f"it raised the function by {change:.3g}.")
        if max_iter == 100:
            promise(change < -1e-6 * scale, solver, "it does not move, though it could.")
    short = solver.solve(q.astype(np.dtype("f")), constraint, M.astype("f"), 5, 0.01)
    promise(short.dtype == np.float32, solver, f"from float32 it returns {short.dtype}.")


def _columns_apart(solver: Solver, constraint: Constraint, rng: np.random.Generator) -> None:
    A, C = _gram(_ROWS, rng), rng.random((_ROWS, _COLUMNS)) * 10 ** rng.uniform(-2, 2, _COLUMNS)
    M = constraint.project(rng.random((_ROWS, _COLUMNS)))
    whole = solver.solve(Quadratic.of(A=A, C=C), constraint, M, 30, 0.01)
    parts = [
        solver.solve(Quadratic.of(A=A, C=C[:, cols]), constraint, M[:, cols], 30, 0.01)
        for cols in (slice(0, 1), slice(1, 5), slice(5, None))
    ]
    promise(
        close(np.hstack(parts), whole, 1e-9),
        solver,
        "columns solved apart end elsewhere than columns solved together.",
    )
