"""Every solver on every constraint it accepts and every kind of quadratic."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from deepmf import (
    HALS,
    Box,
    CappedSimplex,
    FastProjectedGradient,
    GroupedSparse,
    Multiplicative,
    Nonnegative,
    ProjectedGradient,
    Quadratic,
    Simplex,
    Unconstrained,
)
from deepmf.solvers import dispatch, optimality

SOLVERS = [FastProjectedGradient(), ProjectedGradient(), HALS(), Multiplicative()]
CONSTRAINTS = [
    Unconstrained(),
    Nonnegative(),
    Box(),
    Box(-0.5, 0.25),
    Simplex(),
    CappedSimplex(),
    GroupedSparse(0.5),
    GroupedSparse(0.7, nonnegative=False),
]
ROWS, COLS = 5, 7


def columns(q, keep):
    """The restriction of a column-separable q to some columns."""
    return Quadratic(q.terms, q.C[:, keep] if np.ndim(q.C) == 2 and q.C.shape[1] > 1 else q.C)


@pytest.fixture(autouse=True, params=["compiled", "numpy"])
def engine(request, monkeypatch):
    """Every test twice: with the compiled kernels, and with the NumPy code they stand in for."""
    if request.param == "numpy":
        monkeypatch.setattr(dispatch, "load_kernels", lambda: None)
    elif dispatch.load_kernels() is None:
        pytest.skip("Numba is not installed")
    return request.param


def psd(size, rng, rank=None):
    F = rng.standard_normal((size, rank or size + 2))
    return F @ F.T


def gram(size, rng):
    F = rng.random((size, size + 2))
    return F @ F.T


def quadratics():
    rng = np.random.default_rng(0)
    C = 5 * rng.standard_normal((ROWS, COLS))
    A, B = psd(ROWS, rng), psd(COLS, rng)
    return {
        "one-sided, left": Quadratic.of(A=A, C=C),
        "one-sided, right": Quadratic.of(B=B, C=C),
        "two-sided": Quadratic.of(A=A, B=B, C=C),
        "positive": Quadratic.of(A=gram(ROWS, rng), C=np.abs(C)),
        "rank-deficient": Quadratic.of(A=psd(ROWS, rng, 2), B=psd(COLS, rng, 3), C=C),
        "two terms": Quadratic(((A, 1.0), (1.0, B)), C),
        "two terms, general": Quadratic(((A, B), (psd(ROWS, rng), psd(COLS, rng))), C),
        "three terms": Quadratic(((A, 1.0), (0.5, B), (psd(ROWS, rng), psd(COLS, rng))), C),
        "linear part a number": Quadratic.of(A=A, C=-1.0),
    }


QUADRATICS = quadratics()


def value(q, M):
    """f(M) with every term as an explicit matrix."""
    total = -np.sum(M * q.C)
    for A, B in q.terms:
        A = A * np.eye(len(M)) if np.ndim(A) == 0 else A
        B = B * np.eye(M.shape[1]) if np.ndim(B) == 0 else B
        total += 0.5 * np.trace(M.T @ A @ M @ B)
    return total


def start(constraint, seed=0, shape=(ROWS, COLS)):
    return constraint.project(np.random.default_rng(seed).standard_normal(shape) + 0.3)


ACCEPTED = [
    pytest.param(solver, constraint, name, id=f"{solver.name}-{constraint!r}-{name}")
    for solver in SOLVERS
    for constraint in CONSTRAINTS
    if solver.objection(constraint) is None
    for name in QUADRATICS
]


@pytest.mark.parametrize(("solver", "constraint", "name"), ACCEPTED)
def test_never_increases_and_stays_feasible(solver, constraint, name):
    q = QUADRATICS[name]
    for seed, max_iter in enumerate((1, 2, 7, 40)):
        M = start(constraint, seed)
        kept = M.copy()
        N = solver.solve(q, constraint, M, max_iter, 0.01)
        np.testing.assert_array_equal(M, kept)
        assert N.shape == M.shape
        assert constraint.violation(N) <= (1e-10 if constraint.convex else 1e-8)
        before, after = value(q, M), value(q, N)
        assert after <= before + 1e-12 * max(abs(before), abs(after), 1)
        if constraint.convex and max_iter == 40:
            assert after < before


@pytest.mark.parametrize(("solver", "constraint", "name"), ACCEPTED)
def test_zero_iterations_change_nothing(solver, constraint, name):
    M = start(constraint)
    np.testing.assert_array_equal(solver.solve(QUADRATICS[name], constraint, M, 0, 0.1), M)


def hard_quadratics():
    """Ill-conditioned and far from the start, where extrapolation overshoots."""
    rng = np.random.default_rng(1)
    F = rng.standard_normal((ROWS, ROWS)) * 10.0 ** np.arange(0, -ROWS, -1)
    A = F @ F.T
    G = rng.standard_normal((COLS, 2))
    B = G @ G.T + 1e-3 * np.eye(COLS)
    C = 10 * rng.standard_normal((ROWS, COLS))
    return {
        "left": Quadratic.of(A=A, C=A @ C),
        "right": Quadratic.of(B=B, C=C @ B),
        "two-sided": Quadratic.of(A=A, B=B, C=A @ C @ B),
        "two terms": Quadratic(((A, 1.0), (1.0, B)), C),
        "repelling": Quadratic.of(A=2 * np.eye(ROWS) - 0.4, C=np.full((ROWS, COLS), 0.1)),
    }


@pytest.mark.parametrize("name", hard_quadratics())
@pytest.mark.parametrize(
    ("solver", "constraint"),
    [
        pytest.param(solver, constraint, id=f"{solver.name}-{constraint!r}")
        for solver in SOLVERS
        for constraint in CONSTRAINTS
        if solver.objection(constraint) is None
    ],
)
def test_every_iteration_decreases(solver, constraint, name):
    """The same run, one iteration longer each time."""
    q = hard_quadratics()[name]
    M = constraint.project(1 + np.random.default_rng(0).random((ROWS, COLS)))
    values = [value(q, solver.solve(q, constraint, M, k, 0)) for k in range(25)]
    scale = max(abs(values[0]), abs(values[-1]))
    assert np.max(np.diff(values)) <= 1e-12 * scale


# --- long runs reach the optimum -----------------------------------------------------------------


def least_squares(seed=0, rows=9, cols=6):
    """min ||F M - Y||^2 as a quadratic, with an F of moderate condition."""
    rng = np.random.default_rng(seed)
    F, Y = rng.random((rows, ROWS)) + np.eye(rows, ROWS), rng.standard_normal((rows, cols))
    return F, Y, Quadratic.of(A=F.T @ F, C=F.T @ Y)


EXACT = [s for s in SOLVERS if not isinstance(s, Multiplicative)]
exact = pytest.mark.parametrize("solver", EXACT, ids=lambda s: s.name)


@exact
def test_unconstrained_optimum(solver):
    F, Y, q = least_squares()
    M = solver.solve(q, Unconstrained(), np.zeros((ROWS, 6)), 5000, 0)
    np.testing.assert_allclose(M, np.linalg.solve(F.T @ F, F.T @ Y), atol=1e-8)


@exact
def test_nonnegative_optimum(solver):
    F, Y, q = least_squares()
    M = solver.solve(q, Nonnegative(), np.ones((ROWS, 6)), 5000, 0)
    expected = np.column_stack([nnls(F, y)[0] for y in Y.T])
    assert (expected == 0).any()
    np.testing.assert_allclose(M, expected, atol=1e-8)


@exact
def test_box_optimum(solver):
    F, Y, q = least_squares()
    M = solver.solve(q, Box(-0.2, 0.3), np.zeros((ROWS, 6)), 5000, 0)
    expected = np.column_stack(
        [lsq_linear(F, y, (-0.2, 0.3), tol=1e-14, method="bvls").x for y in Y.T]
    )
    assert (expected == 0.3).any()
    np.testing.assert_allclose(M, expected, atol=1e-8)


def test_multiplicative_optimum():
    """Slow to reach the boundary: close in value, not in every entry."""
    rng = np.random.default_rng(1)
    F, Y = rng.random((9, ROWS)), rng.random((9, 6))
    q = Quadratic.of(A=F.T @ F, C=F.T @ Y)
    best = value(q, np.column_stack([nnls(F, y)[0] for y in Y.T]))
    M = Multiplicative().solve(q, Nonnegative(), np.ones((ROWS, 6)), 20000, 0)
    assert value(q, M) == pytest.approx(best, rel=1e-4)


def well_conditioned():
    rng = np.random.default_rng(5)
    C = 5 * rng.standard_normal((ROWS, COLS))
    A, B = np.eye(ROWS) + psd(ROWS, rng) / ROWS, np.eye(COLS) + psd(COLS, rng) / COLS
    return {
        "one-sided, left": Quadratic.of(A=A, C=C),
        "one-sided, right": Quadratic.of(B=B, C=C),
        "two-sided": Quadratic.of(A=A, B=B, C=C),
        "two terms": Quadratic(((A, 1.0), (1.0, B)), C),
    }


@pytest.mark.parametrize(("name", "q"), well_conditioned().items())
@pytest.mark.parametrize(
    ("solver", "constraint"),
    [
        pytest.param(solver, constraint, id=f"{solver.name}-{constraint!r}")
        for solver in EXACT
        for constraint in CONSTRAINTS[:6]
        if solver.objection(constraint) is None
    ],
)
def test_optimality_vanishes_at_the_end_only(solver, constraint, name, q):
    M = start(constraint, seed=3)
    at_start = optimality(q, constraint, M)
    N = solver.solve(q, constraint, M, 1000, 0)
    assert at_start > 1e-2
    assert optimality(q, constraint, N) <= 1e-7 * at_start
    # no feasible direction improves f
    rng = np.random.default_rng(0)
    for _ in range(20):
        Z = constraint.project(N + 0.1 * rng.standard_normal(N.shape))
        assert q.change(N, Z - N) >= -1e-8 * at_start


@exact
def test_right_sided_optimum_is_the_transposed_one(solver):
    F, Y, q = least_squares(2)
    expected = np.column_stack([nnls(F, y)[0] for y in Y.T])
    M = solver.solve(q.T, Nonnegative(), np.ones((6, ROWS)), 5000, 0)
    np.testing.assert_allclose(M.T, expected, atol=1e-8)


def test_acceleration_pays():
    """On an ill-conditioned problem FPGM is ahead of plain projected gradient."""
    rng = np.random.default_rng(0)
    F = rng.random((30, 8))
    q = Quadratic.of(A=F.T @ F, C=F.T @ rng.random((30, 5)))
    M = np.ones((8, 5))
    fast = value(q, FastProjectedGradient().solve(q, Nonnegative(), M, 50, 0))
    plain = value(q, ProjectedGradient().solve(q, Nonnegative(), M, 50, 0))
    best = value(q, FastProjectedGradient().solve(q, Nonnegative(), M, 20000, 0))
    assert fast - best < 0.1 * (plain - best)


@pytest.mark.parametrize(
    "constraint", [CappedSimplex(), Simplex(), Box(0, 1), Nonnegative()], ids=repr
)
@pytest.mark.parametrize("tol", [0, 1e-8])
def test_extrapolation_past_a_vertex_is_not_convergence(constraint, tol):
    """Y may project back onto M without M being stationary: every column must still get there."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(8):
        F = rng.random((5, 3))
        codes = constraint.project(rng.dirichlet(np.ones(3), 40).T)
        q = Quadratic.of(A=F.T @ F, C=F.T @ (F @ codes))  # exact: the optimum is `codes`
        M = constraint.project(rng.dirichlet(np.full(3, 0.1), 40).T)
        N = FastProjectedGradient().solve(q, constraint, M, 3000, tol)
        worst = max(worst, np.max(np.sum((F @ (N - codes)) ** 2, axis=0)))
    assert worst < 1e-10


@pytest.mark.parametrize("engine", ["compiled"], indirect=True)
@pytest.mark.parametrize("solver", [FastProjectedGradient(), ProjectedGradient()], ids=repr)
@pytest.mark.parametrize("constraint", CONSTRAINTS[:6], ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", QUADRATICS)
def test_compiled_kernels_take_the_same_steps(solver, constraint, dtype, name, engine, monkeypatch):
    q = QUADRATICS[name].astype(np.dtype(dtype))
    for max_iter, order in ((1, "C"), (2, "F"), (5, "C"), (12, "F")):
        M = np.array(start(constraint, max_iter), dtype=dtype, order=order)
        fast = solver.solve(q, constraint, M, max_iter, 0.01)
        with monkeypatch.context() as patch:
            patch.setattr(dispatch, "load_kernels", lambda: None)
            plain = solver.solve(q, constraint, M, max_iter, 0.01)
        assert fast.dtype == plain.dtype == dtype
        atol = 1e-11 if dtype == np.float64 else 1e-4
        np.testing.assert_allclose(fast, plain, rtol=0, atol=atol)


# --- columns apart -------------------------------------------------------------------------------

SEPARATE = [
    pytest.param(solver, constraint, id=f"{solver.name}-{constraint!r}")
    for solver in SOLVERS
    for constraint in CONSTRAINTS
    if solver.objection(constraint) is None and constraint.separable
]


@pytest.mark.parametrize(("solver", "constraint"), SEPARATE)
@pytest.mark.parametrize("max_iter", [3, 10, 60])
def test_result_does_not_depend_on_the_grouping_of_columns(solver, constraint, max_iter):
    rng = np.random.default_rng(0)
    n = 40
    F = rng.random((9, ROWS))
    # columns of very different difficulty, so that they converge at different moments
    Y = rng.random((9, n)) * 10 ** rng.uniform(-3, 3, n)
    q = Quadratic.of(A=F.T @ F, C=F.T @ Y)
    M = constraint.project(rng.random((ROWS, n)))
    together = solver.solve(q, constraint, M, max_iter, 0.01)
    for cuts in ([7], [1, 2, 20], list(range(1, n))):
        pieces = [
            solver.solve(columns(q, slice(a, b)), constraint, M[:, a:b], max_iter, 0.01)
            for a, b in zip([0, *cuts], [*cuts, n])
        ]
        scale = np.maximum(np.abs(together).max(axis=0), 1e-300)
        np.testing.assert_allclose(np.hstack(pieces) / scale, together / scale, atol=1e-12)


def test_converged_columns_stand_still():
    """A column that starts at its optimum is returned as it is, whatever the others do."""
    F, Y, q = least_squares()
    M = np.ones((ROWS, 6))
    M[:, 2] = nnls(F, Y[:, 2])[0]
    N = FastProjectedGradient().solve(q, Nonnegative(), M, 200, 1e-3)
    np.testing.assert_allclose(N[:, 2], M[:, 2], atol=1e-10)
    assert np.abs(N - M).max() > 0.1


@pytest.mark.parametrize("tol", [0.3, 0.01])
def test_a_looser_tolerance_stops_earlier(tol):
    _, _, q = least_squares()
    M = np.ones((ROWS, 6))
    solver = FastProjectedGradient()
    loose = solver.solve(q, Nonnegative(), M, 1000, tol)
    tight = solver.solve(q, Nonnegative(), M, 1000, tol / 100)
    assert value(q, tight) < value(q, loose) < value(q, M)


# --- degenerate cases ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_zero_curvature_keeps_the_start(solver):
    M = np.random.default_rng(0).random((ROWS, COLS))
    for q in (
        Quadratic.of(A=np.zeros((ROWS, ROWS))),
        Quadratic.of(A=0.0, B=np.zeros((COLS, COLS))),
        Quadratic(),
    ):
        N = solver.solve(q, Nonnegative(), M, 10, 0.01)
        np.testing.assert_array_equal(N, M)
        assert optimality(q, Nonnegative(), M) == 0


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_a_dead_component_stays_finite(solver):
    """A zero row and column of A: a component that nothing uses."""
    A = gram(ROWS, np.random.default_rng(0))
    A[2], A[:, 2] = 0, 0
    C = np.random.default_rng(1).random((ROWS, COLS))
    C[2] = 0
    q = Quadratic.of(A=A, C=C)
    M = np.ones((ROWS, COLS))
    N = solver.solve(q, Nonnegative(), M, 50, 0)
    assert np.isfinite(N).all()
    np.testing.assert_allclose(N[2], 1)
    assert value(q, N) < value(q, M)


@pytest.mark.parametrize("solver", [FastProjectedGradient(), ProjectedGradient()], ids=repr)
def test_a_bad_column_does_not_spread(solver):
    _, _, q = least_squares()
    C = q.C.copy()
    C[1, 3] = np.nan
    M = np.ones((ROWS, 6))
    N = solver.solve(Quadratic(q.terms, C), Nonnegative(), M, 50, 0.01)
    good = np.arange(6) != 3
    np.testing.assert_array_equal(N[:, 3], M[:, 3])
    expected = solver.solve(columns(q, np.flatnonzero(good)), Nonnegative(), M[:, good], 50, 0.01)
    np.testing.assert_allclose(N[:, good], expected, atol=1e-12)


def test_infinite_curvature_keeps_the_start():
    q = Quadratic.of(A=1e200 * np.eye(3), B=1e200 * np.eye(4))
    M = np.ones((3, 4))
    np.testing.assert_array_equal(FastProjectedGradient().solve(q, Nonnegative(), M, 5, 0.01), M)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_float32_is_kept(solver):
    _, _, q = least_squares()
    q32 = q.astype(np.dtype(np.float32))
    M = np.ones((ROWS, 6), dtype=np.float32)
    N = solver.solve(q32, Nonnegative(), M, 20, 0.01)
    assert N.dtype == np.float32
    assert value(q, N.astype(float)) < value(q, M.astype(float))


def test_multiplicative_keeps_zeros_and_signs():
    rng = np.random.default_rng(0)
    q = Quadratic.of(A=gram(ROWS, rng), C=rng.random((ROWS, 6)))
    M = np.ones((ROWS, 6))
    M[1, 2] = 0
    N = Multiplicative().solve(q, Nonnegative(), M, 30, 0)
    assert N[1, 2] == 0
    assert N.min() >= 0
    assert np.count_nonzero(N == 0) == 1


# --- refusals ------------------------------------------------------------------------------------


def test_who_accepts_what():
    accepted = {
        solver.name: [c for c in CONSTRAINTS if solver.objection(c) is None] for solver in SOLVERS
    }
    assert accepted["fpgm"] == accepted["pg"] == CONSTRAINTS
    assert accepted["hals"] == CONSTRAINTS[:4]
    assert accepted["mu"] == [Nonnegative()]


def test_refusals_say_why():
    assert "single entries" in HALS().objection(Simplex())
    assert "single entries" in HALS().objection(GroupedSparse())
    assert "nonnegativity" in Multiplicative().objection(Box())
    assert "nonnegativity" in Multiplicative().objection(Unconstrained())
