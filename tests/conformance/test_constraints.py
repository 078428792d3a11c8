"""Every constraint: a true projection, and its declarations true."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from deepmf import (
    Box,
    CappedSimplex,
    Constraint,
    GroupedSparse,
    Nonnegative,
    Simplex,
    Unconstrained,
)


class UnitBall(Constraint):
    """Columns inside the unit ball, of Constraint's docstring."""

    separable = "columns"
    bounded = True

    def project(self, M):
        return M / np.maximum(np.linalg.norm(M, axis=0), 1)


CONVEX = [
    Unconstrained(),
    Nonnegative(),
    Box(),
    Box(-1, 2),
    Box(0.25, np.inf),
    Simplex(),
    CappedSimplex(),
    UnitBall(),
]
ALL = [
    *CONVEX,
    GroupedSparse(0.5),
    GroupedSparse(0.85),
    GroupedSparse(1.0),
    GroupedSparse(0.6, nonnegative=False),
]
MATRICES = {
    "normal": np.random.default_rng(0).standard_normal((6, 9)),
    "positive": np.random.default_rng(1).random((5, 4)),
    "large": 1e6 * np.random.default_rng(2).standard_normal((4, 7)),
    "small": 1e-6 * np.random.default_rng(3).standard_normal((4, 7)),
    "negative": -np.random.default_rng(4).random((4, 3)) - 0.1,
    "one column": np.random.default_rng(5).standard_normal((8, 1)),
    "one row": np.random.default_rng(6).standard_normal((1, 5)),
    "zero": np.zeros((3, 4)),
    "ties": np.ones((4, 3)),
    "zero column": np.c_[np.zeros(4), np.arange(4.0), -np.ones(4)],
}

constraints = pytest.mark.parametrize("constraint", ALL, ids=repr)
convex = pytest.mark.parametrize("constraint", CONVEX, ids=repr)


def cases(listed):
    """Constraint x matrix, without what the constraint refuses."""
    return pytest.mark.parametrize(
        ("constraint", "M"),
        [
            pytest.param(c, M, id=f"{c!r}-{name}")
            for c in listed
            for name, M in MATRICES.items()
            if c.objection(M.shape) is None
        ],
    )


def inside(constraint, Z):
    """Membership, written out for each set."""
    eps = 1e-9 * max(1.0, np.abs(Z).max())
    if isinstance(constraint, Box):
        return Z.min() >= constraint.lower - eps and Z.max() <= constraint.upper + eps
    if isinstance(constraint, UnitBall):
        return (np.linalg.norm(Z, axis=0) <= 1 + 1e-9).all()
    if isinstance(constraint, GroupedSparse):
        positive = Z.min() >= 0 if constraint.nonnegative else True
        return positive and hoyer_sparsity(Z) >= constraint.sparsity - 1e-8
    if isinstance(constraint, Unconstrained):
        return True
    if isinstance(constraint, Nonnegative):
        return Z.min() >= 0
    sums = Z.sum(axis=0)
    top = (sums <= 1 + 1e-9).all()
    return Z.min() >= 0 and top and (isinstance(constraint, CappedSimplex) or sums.min() > 1 - 1e-9)


def hoyer_sparsity(Z):
    """Average over columns of (sqrt n - |x|_1/|x|_2)/(sqrt n - 1); a zero column counts as 1."""
    root = np.sqrt(len(Z))
    each = [
        (root - np.abs(x).sum() / np.sqrt((x * x).sum())) / (root - 1) if x.any() else 1.0
        for x in Z.T
    ]
    return float(np.mean(each))


def random_member(constraint, shape, rng):
    """A point of a convex set, drawn without the projection."""
    Z = rng.standard_normal(shape) * 10 ** rng.uniform(-1, 1)
    if isinstance(constraint, Nonnegative):
        return np.abs(Z)
    if isinstance(constraint, Box):
        high = constraint.upper if np.isfinite(constraint.upper) else constraint.lower + 5
        return rng.uniform(constraint.lower, high, shape)
    if isinstance(constraint, Simplex):
        return rng.dirichlet(np.full(shape[0], 0.5), shape[1]).T
    if isinstance(constraint, CappedSimplex):
        return rng.dirichlet(np.full(shape[0] + 1, 0.5), shape[1]).T[:-1]
    if isinstance(constraint, UnitBall):
        return Z / np.linalg.norm(Z, axis=0) * rng.random(shape[1])
    return Z


# --- all constraints -----------------------------------------------------------------------------


@cases(ALL)
def test_projection_is_feasible_and_idempotent(constraint, M):
    P = constraint.project(M)
    assert P.shape == M.shape
    assert np.isfinite(P).all()
    assert inside(constraint, P)
    assert constraint.violation(P) <= (1e-10 if constraint.convex else 1e-9)
    atol = (1e-12 if constraint.convex else 1e-7) * max(np.abs(P).max(), 1e-300)
    np.testing.assert_allclose(constraint.project(P), P, rtol=0, atol=atol)


@cases(ALL)
def test_violation_is_positive_outside(constraint, M):
    assert (constraint.violation(M) > 1e-6) == (not inside(constraint, M))


@constraints
def test_input_is_left_as_it_is(constraint):
    M = np.random.default_rng(0).standard_normal((5, 6))
    kept = M.copy()
    M.flags.writeable = False
    constraint.project(M)
    constraint.violation(M)
    constraint.scales(M)
    np.testing.assert_array_equal(M, kept)


@pytest.mark.parametrize("constraint", [*ALL, Box(0, np.float64(0.5))], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_type_is_kept(constraint, dtype):
    M = np.random.default_rng(0).standard_normal((5, 6)).astype(dtype)
    P = constraint.project(M)
    assert P.dtype == dtype
    np.testing.assert_allclose(P, constraint.project(M.astype(float)), atol=1e-5)
    assert constraint.violation(P) <= 1e-5


@constraints
def test_memory_order_does_not_matter(constraint):
    M = np.random.default_rng(1).standard_normal((5, 6))
    np.testing.assert_allclose(
        constraint.project(np.asfortranarray(M)), constraint.project(M), atol=1e-14
    )


@constraints
def test_declared_separability_is_true(constraint):
    M = 2 * np.random.default_rng(2).standard_normal((4, 6))
    whole = constraint.project(M)
    by_column = np.hstack([constraint.project(M[:, [j]]) for j in range(6)])
    if constraint.separable is None:
        if constraint.sparsity == 1:  # the one case where nothing can be traded between columns
            return
        assert np.abs(by_column - whole).max() > 1e-3
        return
    np.testing.assert_allclose(by_column, whole, atol=1e-14)
    by_entry = np.array([[constraint.project(np.array([[x]]))[0, 0] for x in row] for row in M])
    assert np.allclose(by_entry, whole, atol=1e-14) == (constraint.separable == "entries")


@constraints
def test_declared_sign_and_boundedness_are_true(constraint):
    M = 1e8 * np.random.default_rng(3).standard_normal((6, 50))
    P = constraint.project(M)
    assert (P.min() >= 0) == constraint.nonnegative
    assert (np.abs(P).max() <= 1e6) == constraint.bounded


@constraints
def test_scales_lead_to_the_set(constraint):
    M = np.random.default_rng(4).random((6, 4)) + 0.5  # every column sums to more than 1
    scales = constraint.scales(M)
    if scales is None:
        assert not isinstance(constraint, Simplex | CappedSimplex)
    else:
        assert inside(constraint, M / scales)


@pytest.mark.parametrize("constraint", [Simplex(), CappedSimplex()], ids=repr)
def test_scales_of_columns_without_positive_part_divide_safely(constraint):
    M = np.c_[np.zeros(3), -np.ones(3), np.full(3, 0.1)]
    scales = constraint.scales(M)
    assert (scales > 0).all()
    np.testing.assert_array_equal(scales[:2], 1)
    assert scales[2] == pytest.approx(0.3 if isinstance(constraint, Simplex) else 1.0)


# --- convex sets: the closest point --------------------------------------------------------------


@cases(CONVEX)
def test_no_member_is_on_the_far_side(constraint, M):
    """<M - P, Z - P> <= 0 for every Z of a convex set, which makes P the closest point."""
    rng = np.random.default_rng(0)
    P = constraint.project(M)
    for _ in range(50):
        Z = random_member(constraint, M.shape, rng)
        assert inside(constraint, Z)
        inner = np.sum((M - P) * (Z - P))
        assert inner <= 1e-10 * (1 + np.linalg.norm(M - P) * np.linalg.norm(Z - P))


@convex
def test_closest_point_by_an_optimiser(constraint):
    rng = np.random.default_rng(1)
    for _ in range(3):
        m = 1.5 * rng.standard_normal(4)
        bounds, rules = None, []
        if isinstance(constraint, Box):
            bounds = [(constraint.lower, constraint.upper)] * 4
        elif constraint.nonnegative:
            bounds = [(0, None)] * 4
        if isinstance(constraint, Simplex):
            rules = [{"type": "eq", "fun": lambda z: z.sum() - 1}]
        elif isinstance(constraint, CappedSimplex):
            rules = [{"type": "ineq", "fun": lambda z: 1 - z.sum()}]
        elif isinstance(constraint, UnitBall):
            rules = [{"type": "ineq", "fun": lambda z: 1 - z @ z}]
        best = minimize(
            lambda z, m=m: np.sum((z - m) ** 2),
            np.full(4, 0.25),
            jac=lambda z, m=m: 2 * (z - m),
            bounds=bounds,
            constraints=rules,
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(constraint.project(m[:, None])[:, 0], best.x, atol=1e-5)


@convex
def test_projection_is_nonexpansive(constraint):
    rng = np.random.default_rng(2)
    for _ in range(30):
        M, N = 3 * rng.standard_normal((2, 5, 4))
        distance = np.linalg.norm(constraint.project(M) - constraint.project(N))
        assert distance <= np.linalg.norm(M - N) * (1 + 1e-12)


def closest_on_simplex(m, capped):
    """The best of the closest points of all faces, by enumeration."""
    found = []
    for face in product([False, True], repeat=len(m)):
        S = np.array(face)
        if capped:
            found.append(np.where(S, m, 0))
        if S.any():
            found.append(np.where(S, m - (m[S].sum() - 1) / S.sum(), 0))
    feasible = [z for z in found if z.min() >= 0 and (z.sum() <= 1 + 1e-12 or not capped)]
    return min(feasible, key=lambda z: np.sum((z - m) ** 2))


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_simplex_by_enumeration_of_faces(size, capped):
    rng = np.random.default_rng(size)
    M = np.c_[
        rng.standard_normal((size, 12)),
        0.2 * rng.random((size, 6)),  # inside the capped simplex for the smaller sizes
        rng.integers(-1, 3, (size, 12)),  # ties
        np.zeros(size),
    ].astype(float)
    expected = np.column_stack([closest_on_simplex(m, capped) for m in M.T])
    constraint = CappedSimplex() if capped else Simplex()
    np.testing.assert_allclose(constraint.project(M), expected, atol=1e-12)


def test_simplex_keeps_its_digits_far_away():
    m = np.array([[0.75], [0.5], [0.25]])
    near = m - 1 / 6
    np.testing.assert_allclose(Simplex().project(m), near, rtol=1e-14)
    for shift in (2.0**30, -(2.0**30)):  # m + shift is exact
        np.testing.assert_allclose(Simplex().project(m + shift), near, rtol=1e-14)


@pytest.mark.parametrize(("lower", "upper"), [(1, 1), (2, 1), (np.nan, 1)])
def test_empty_box_is_refused(lower, upper):
    with pytest.raises(ValueError, match="lower"):
        Box(lower, upper)


# --- grouped sparse projection -------------------------------------------------------------------


@pytest.mark.parametrize("sparsity", [0.3, 0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("shape", [(2, 3), (5, 1), (10, 7), (50, 4)])
def test_sparsity_is_reached_and_not_overshot(shape, nonnegative, sparsity):
    M = np.random.default_rng(0).standard_normal(shape)
    before = hoyer_sparsity(np.maximum(M, 0) if nonnegative else M)
    P = GroupedSparse(sparsity, nonnegative).project(M)
    if before >= sparsity:
        np.testing.assert_array_equal(P, np.maximum(M, 0) if nonnegative else M)
    else:
        assert hoyer_sparsity(P) == pytest.approx(sparsity, abs=1e-8)


def test_already_sparse_is_returned_as_it_is():
    M = np.eye(6)[:, :4] * [1.0, -2.0, 3.0, 0.5]
    M[1, 0] = 1e-3
    np.testing.assert_array_equal(GroupedSparse(0.9, False).project(M), M)
    np.testing.assert_array_equal(GroupedSparse(0.9, True).project(np.abs(M)), np.abs(M))


def test_sparsity_zero_changes_nothing():
    M = np.random.default_rng(0).standard_normal((5, 3))
    np.testing.assert_array_equal(GroupedSparse(0.0, False).project(M), M)
    np.testing.assert_array_equal(GroupedSparse(0.0, False).project(np.ones((5, 3))), 1)


def test_sparsity_one_keeps_the_largest_entry_of_each_column():
    M = np.random.default_rng(0).standard_normal((7, 5))
    P = GroupedSparse(1.0, nonnegative=False).project(M)
    top = np.argmax(np.abs(M), axis=0), np.arange(5)
    expected = np.zeros_like(M)
    expected[top] = M[top]
    np.testing.assert_allclose(P, expected, atol=1e-9)


def test_two_equal_largest_entries_take_the_sparser_side():
    # x = (1, 1, 0.5): nothing between two equal entries (1 - 1/sqrt(2) short) and one entry
    x = np.array([[1.0], [1.0], [0.5]])
    tied = (np.sqrt(3) - np.sqrt(2)) / (np.sqrt(3) - 1)
    P = GroupedSparse(tied + 0.1).project(x)
    assert np.count_nonzero(P) == 1
    assert P.max() == pytest.approx(1.0)
    assert hoyer_sparsity(P) >= tied + 0.1
    # a little less than that is reached without a jump
    Q = GroupedSparse(tied - 0.05).project(x)
    assert hoyer_sparsity(Q) == pytest.approx(tied - 0.05, abs=1e-8)


def test_ties_in_one_column_leave_the_others_reasonable():
    M = np.random.default_rng(0).random((8, 4))
    M[:, 0] = 1.0
    P = GroupedSparse(0.8).project(M)
    assert hoyer_sparsity(P) >= 0.8 - 1e-9
    assert np.isfinite(P).all()
    assert (P[:, 0] != 0).any()


def test_constant_matrix_is_all_ties():
    P = GroupedSparse(0.5).project(np.ones((9, 3)))
    assert hoyer_sparsity(P) >= 0.5
    assert (np.count_nonzero(P, axis=0) >= 1).all()


def test_zero_columns_stay_zero_and_count_as_sparse():
    M = np.random.default_rng(0).random((6, 4))
    M[:, 2] = 0
    P = GroupedSparse(0.7).project(M)
    np.testing.assert_array_equal(P[:, 2], 0)
    assert hoyer_sparsity(P) == pytest.approx(0.7, abs=1e-8)


def test_zero_matrix_stays_zero():
    np.testing.assert_array_equal(GroupedSparse(0.9).project(np.zeros((4, 3))), 0)
    np.testing.assert_array_equal(GroupedSparse(0.9).project(-np.ones((4, 3))), 0)
    assert GroupedSparse(0.9).violation(np.zeros((4, 3))) == 0


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_scale_equivariance(scale):
    M = np.random.default_rng(0).standard_normal((7, 5))
    constraint = GroupedSparse(0.6, nonnegative=False)
    np.testing.assert_allclose(
        constraint.project(scale * M) / scale, constraint.project(M), atol=1e-9
    )


def test_signs_and_order_of_sizes_are_kept():
    M = np.random.default_rng(0).standard_normal((9, 5))
    P = GroupedSparse(0.6, nonnegative=False).project(M)
    assert (P * M >= 0).all()
    assert (P < 0).any()
    for x, p in zip(M.T, P.T):
        assert (np.diff(np.abs(p)[np.argsort(np.abs(x))]) >= -1e-15).all()
    np.testing.assert_allclose(GroupedSparse(0.6, False).project(np.abs(M)), np.abs(P), atol=1e-12)


def test_formula_of_section_4():
    """<|x|, u> u with u = (|x| - t)_+ / ||.|| for one threshold t shared by the columns."""
    M = np.random.default_rng(0).random((8, 5))
    P = GroupedSparse(0.6).project(M)
    thresholds = []
    for x, p in zip(M.T, P.T):
        u = p / np.linalg.norm(p)
        assert np.linalg.norm(p) == pytest.approx(x @ u)  # p = <x, u> u
        on = np.flatnonzero(p)
        assert len(on) > 1
        i, j = on[np.argmax(x[on])], on[np.argmin(x[on])]
        # u_i / u_j = (x_i - t) / (x_j - t)
        thresholds.append((u[i] * x[j] - u[j] * x[i]) / (u[i] - u[j]))
        assert (x[p == 0] <= thresholds[-1] + 1e-9).all()
    np.testing.assert_allclose(thresholds, thresholds[0], rtol=1e-6)


def test_directions_are_optimal():
    """The unit columns maximize sum_i <|x_i|, u_i> among those of that average sparsity."""
    rng = np.random.default_rng(0)
    n, r, sparsity = 4, 3, 0.6
    M = rng.random((n, r))
    budget = r * (np.sqrt(n) - sparsity * (np.sqrt(n) - 1))
    P = GroupedSparse(sparsity).project(M)
    value = np.sum(M * (P / np.linalg.norm(P, axis=0)))

    best = -np.inf
    for _ in range(5):
        found = minimize(
            lambda u: -np.sum(M * u.reshape(n, r)),
            rng.random(n * r),
            bounds=[(0, 1)] * (n * r),
            constraints=[
                {"type": "ineq", "fun": lambda u: 1 - (u.reshape(n, r) ** 2).sum(axis=0)},
                {"type": "ineq", "fun": lambda u: budget - u.sum()},
            ],
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        best = max(best, -found.fun)
    assert value == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_no_perturbation_within_the_set_is_better(nonnegative):
    """A single column: P is the closest point of the set, to first order and beyond."""
    rng = np.random.default_rng(0)
    constraint = GroupedSparse(0.6, nonnegative)
    x = rng.standard_normal((6, 1))
    P = constraint.project(x)
    distance = np.linalg.norm(x - P)
    tried = 0
    for _ in range(4000):
        Z = P + 10 ** rng.uniform(-5, 0) * rng.standard_normal(P.shape) * (
            rng.random(P.shape) < 0.5
        )
        if nonnegative:
            Z = np.maximum(Z, 0)
        if Z.any() and hoyer_sparsity(Z) >= 0.6:
            tried += 1
            assert np.linalg.norm(x - Z) >= distance * (1 - 1e-9)
    assert tried > 100


@pytest.mark.parametrize("sparsity", [-0.1, 1.1, np.nan])
def test_impossible_sparsity_is_refused(sparsity):
    with pytest.raises(ValueError, match="sparsity"):
        GroupedSparse(sparsity)


def test_columns_of_length_one_are_refused():
    assert "length 1" in GroupedSparse(0.5).objection((1, 4))
    assert GroupedSparse(0.5).objection((2, 4)) is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("sparsity", [0.0, 0.3, 0.8, 1.0])
def test_compiled_grouped_sparsity_equals_numpys(sparsity, nonnegative, dtype):
    pytest.importorskip("numba")
    from deepmf.constraints import grouped_sparse
    from deepmf.kernels.grouped_sparse import grouped_sparse as compiled

    M = np.random.default_rng(0).standard_normal((31, 9)).astype(dtype)
    M[:, 4] = 0
    M[:, 5] *= 1e-12
    M[:, 6] = np.round(M[:, 6])  # ties
    settings = (nonnegative, grouped_sparse.MAX_STEPS, grouped_sparse.NOTHING)
    for given in (M, 1e-20 * M, 1e20 * M[:, :3], 0 * M):
        ours = compiled(np.ascontiguousarray(given), sparsity, *settings)
        theirs = grouped_sparse._project(given, sparsity, *settings)
        rtol = 1e-9 if dtype == np.float64 else 1e-3
        scale = np.abs(theirs).max() or 1
        np.testing.assert_allclose(ours / scale, theirs / scale, atol=rtol)
        assert ours.dtype == dtype
