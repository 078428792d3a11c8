"""Components that are held: they never move, and the rest is as good as it can be beside them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.base import clone

from deepmf import (
    HALS,
    L1,
    Box,
    DeepMF,
    Factorization,
    Fixed,
    GroupedSparse,
    MinVolume,
    Nonnegative,
    Quadratic,
    Simplex,
    factorize,
)
from deepmf.fitting.registry import known

RNG = np.random.default_rng(0)
W_TRUE = RNG.random((12, 4))
X = W_TRUE @ RNG.dirichlet(np.full(4, 0.4), 60).T + 0.01 * RNG.random((12, 60))
KNOWN = W_TRUE[:, [2, 0]]
ROWS = RNG.random((2, 60))
MODELS = sorted(known("model"))


def stochastic(M):
    return M / M.sum(axis=0)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("solver", ["fpgm", "pg", "hals", "mu"])
def test_held_columns_never_move(model, solver):
    deep = 3 * W_TRUE[:, 3:]
    settings = {"constraint_W": [Fixed(KNOWN), Fixed(deep)], "max_iter": 15, "tol": 0}
    f = factorize(X, [4, 2], model=model, solver=solver, random_state=0, **settings)
    np.testing.assert_array_equal(f.W[0][:, :2], KNOWN)
    np.testing.assert_array_equal(f.W[1][:, :1], deep)
    assert min(W.min() for W in f.W) >= 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("solver", ["fpgm", "hals", "mu"])
def test_held_rows_never_move(model, solver):
    links = np.array([[0.1, 0.2, 0.3, 0.4]])
    sets = [Fixed(ROWS), Fixed(links)]
    f = factorize(X, [4, 2], model=model, solver=solver, constraint_H=sets, max_iter=15, tol=0)
    np.testing.assert_array_equal(f.H[0][:2], ROWS)
    np.testing.assert_array_equal(f.H[1][:1], links)


@pytest.mark.parametrize("init", ["snpa", "hierarchical", "nndsvd", "random"])
@pytest.mark.parametrize("extrapolate", [True, False])
def test_the_objective_never_rises(init, extrapolate):
    sets = [Fixed(KNOWN), None]
    for regularizer in (None, L1(0.1)):
        f = factorize(
            X, [4, 2], constraint_W=sets, regularizer_W=regularizer, init=init, max_iter=60,
            tol=0, extrapolate=extrapolate, random_state=0,
        )  # fmt: skip
        objective = f.history.objective
        assert (np.diff(objective) <= 1e-12 * objective[0]).all()
        assert objective[-1] < objective[0]


def test_with_all_of_W_held_the_codes_are_least_squares():
    f = factorize(X, [4], constraint_W=Fixed(W_TRUE), max_iter=300, tol=0)
    np.testing.assert_array_equal(f.W[0], W_TRUE)
    best = np.column_stack([nnls(W_TRUE, x)[0] for x in X.T])
    np.testing.assert_allclose(f.H[0], best, atol=1e-6)
    np.testing.assert_allclose(f.encode(X), best, atol=1e-6)


def test_with_all_of_H_held_the_basis_is_least_squares():
    H = RNG.random((4, 60))
    f = factorize(X, [4], constraint_H=Fixed(H), max_iter=300, tol=0)
    np.testing.assert_array_equal(f.H[0], H)
    best = np.array([nnls(H.T, x)[0] for x in X])
    np.testing.assert_allclose(f.W[0], best, atol=1e-6)


@pytest.mark.parametrize("model", ["layer-centric", "data-centric"])
def test_the_free_columns_are_optimal_beside_the_held_ones(model):
    """Each row of W_1's free part, by an independent solver, codes as they are."""
    f = factorize(X, [4], model=model, constraint_W=Fixed(KNOWN), max_iter=3000, tol=0)
    W, H = f.W[0], f.H[0]
    rest = X - W[:, :2] @ H[:2]
    best = np.array([nnls(H[2:].T, row)[0] for row in rest])
    np.testing.assert_allclose(W[:, 2:], best, atol=1e-4)


@pytest.mark.parametrize("block", [np.s_[:, 2:], np.s_[1:, :], np.s_[:, 3:4]])
def test_a_restricted_quadratic_changes_as_the_whole_does(block):
    rng = np.random.default_rng(1)
    F, G = rng.random((5, 5)), rng.random((4, 4))
    M, D = rng.random((2, 5, 4))
    step = np.zeros_like(M)
    step[block] = D[block]
    for q in (
        Quadratic.of(F @ F.T, G @ G.T, rng.random((5, 4))),
        Quadratic.of(1.0, G @ G.T, rng.random((5, 4))) + Quadratic.of(F @ F.T, 0.5, 0.3),
    ):
        part = q.restricted(M, block).change(M[block], D[block])
        assert part == pytest.approx(q.change(M, step), rel=1e-12)


def test_solvers_leave_the_held_part_and_reach_the_optimum_of_the_rest():
    rng = np.random.default_rng(2)
    H = rng.random((4, 30))
    C = rng.random((6, 30)) @ H.T
    q = Quadratic.of(B=H @ H.T, C=C)
    V = rng.random((6, 1))
    found = [
        HALS().improve(q, Fixed(V), Fixed(V).project(rng.random((6, 4))), 3000, 0) for _ in range(2)
    ]
    np.testing.assert_array_equal(found[0][:, :1], V)
    np.testing.assert_allclose(*found, atol=1e-8)


def test_projection_is_the_closest_matrix_with_the_values():
    M = np.random.default_rng(3).standard_normal((12, 5))
    for inner in (Nonnegative(), Simplex(), Box(0, 1), GroupedSparse(0.4)):
        V = stochastic(KNOWN)
        P = Fixed(V, inner).project(M)
        np.testing.assert_array_equal(P[:, :2], V)
        np.testing.assert_array_equal(P[:, 2:], inner.project(M[:, 2:]))
        assert Fixed(V, inner).violation(P) <= 1e-9


def test_starts_drop_the_columns_that_are_nearest_to_the_values():
    start = W_TRUE[:, [3, 2, 1, 0]] * [1, 5, 1, 0.1]
    arranged = Fixed(KNOWN).arrange(start)
    np.testing.assert_array_equal(arranged, np.c_[KNOWN, W_TRUE[:, [3, 1]]])


def test_scales_leave_the_values_alone():
    V = stochastic(KNOWN)
    scales = Fixed(V, Simplex()).scales(np.c_[V, 4 * V])
    np.testing.assert_allclose(scales, [1, 1, 4, 4])
    f = factorize(X, [4, 2], constraint_W=[Fixed(V, Simplex()), "simplex"], max_iter=20, tol=0)
    np.testing.assert_allclose(f.W[0].sum(axis=0), 1)
    np.testing.assert_array_equal(f.W[0][:, :2], V)


def test_minimum_volume_moves_only_the_free_columns():
    V = stochastic(KNOWN)
    sets = [Fixed(V, Simplex()), None]
    f = factorize(X, [4, 2], constraint_W=sets, regularizer_W=MinVolume(0.1), max_iter=40, tol=0)
    np.testing.assert_array_equal(f.W[0][:, :2], V)
    assert (np.diff(f.history.objective) <= 1e-10 * abs(f.history.objective[0])).all()


def test_short_floats_hold_the_rounded_values():
    f = factorize(X.astype(np.float32), [4], constraint_H=Fixed(ROWS), max_iter=10, tol=0)
    np.testing.assert_array_equal(f.H[0][:2], ROWS.astype(np.float32))


def test_new_data_are_coded_without_the_rows_that_were_held():
    f = factorize(X, [4], constraint_H=Fixed(ROWS), max_iter=10, tol=0)
    best = np.column_stack([nnls(f.W[0], x)[0] for x in X[:, :7].T])
    np.testing.assert_allclose(f.encode(X[:, :7]), best, atol=1e-6)


def test_save_and_load_keep_every_bit(tmp_path):
    f = factorize(X, [4, 2], constraint_W=[Fixed(KNOWN, Box(0, 1)), None], max_iter=3, tol=0)
    g = Factorization.load(f.save(tmp_path / "f.npz"))
    held = g.problem.layers[0].constraint_W
    assert held == Fixed(KNOWN, Box(0, 1))
    np.testing.assert_array_equal(held.values, KNOWN)
    np.testing.assert_array_equal(g.encode(X), f.encode(X))


def test_estimators_are_cloned_with_it():
    model = DeepMF([4, 2], constraint_W=[Fixed(KNOWN, Box(0, 1)), None], max_iter=5, tol=0)
    fitted = clone(model).fit(X.T)
    np.testing.assert_array_equal(fitted.components(1)[:2], KNOWN.T)
    assert clone(Fixed(KNOWN)) == Fixed(KNOWN)
    assert Fixed(KNOWN) != Fixed(KNOWN, Box(0, 1))


def test_it_can_be_written_as_plain_data():
    f = factorize(
        X,
        [4],
        constraint_W={"name": "fixed", "values": KNOWN.tolist(), "constraint": "nonnegative"},
        max_iter=3,
        tol=0,
    )
    np.testing.assert_array_equal(f.W[0][:, :2], KNOWN)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"constraint_W": Fixed(KNOWN[:5])}, r"values are 5 x 2, but must have 12 rows"),
        ({"constraint_W": Fixed(np.ones((12, 5)))}, r"components in columns, at most 4"),
        ({"constraint_W": Fixed(np.ones((5, 4)))}, r"values are 5 x 4, but must have 12 rows"),
        ({"constraint_H": Fixed(np.ones((4, 9)))}, r"values are 4 x 9, but must have 60 columns"),
        ({"constraint_H": Fixed(ROWS[:, :9])}, r"60 columns \(components in rows, at most 4\)"),
        ({"constraint_H": Fixed(ROWS / 100, Box(0, 1)), "solver": "mu"}, "multiplicative"),
        ({"constraint_W": "fixed"}, "needs parameters: values, constraint"),
    ],
)
def test_what_cannot_be_held_gets_a_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        factorize(X, [4], **settings)


def test_rows_under_proportions_are_refused():
    H = np.full((4, 60), 0.25)
    assert Fixed(H, Simplex()).objection((4, 60)) is None
    with pytest.raises(ValueError, match="rows can be held only under a constraint on single"):
        factorize(X, [5], constraint_H=Fixed(H, Simplex()))


@pytest.mark.parametrize(
    ("values", "constraint", "sentence"),
    [
        (-KNOWN, None, r"not in Nonnegative\(\): they are off by"),
        (KNOWN, Simplex(), r"not in Simplex\(\)"),
        (np.full((3, 2), np.nan), None, "Fixed's values has 6 entries that are NaN"),
        (KNOWN[:, 0], None, r"must be a matrix \(2-D\)"),
        (KNOWN, "simplex", r"such as Simplex\(\), got 'simplex'"),
        (KNOWN, Fixed(KNOWN), "must be a set for the free part"),
    ],
)
def test_values_outside_the_set_get_a_sentence(values, constraint, sentence):
    with pytest.raises(ValueError, match=sentence):
        Fixed(values, constraint)


def test_given_factors_must_hold_the_values():
    W, H = W_TRUE, np.ones((4, 60))
    with pytest.raises(ValueError, match=r"init's W of layer 1 is not in Fixed\(12 x 2 values"):
        factorize(X, [4], constraint_W=Fixed(KNOWN), init=(W, H))


@pytest.mark.parametrize("model", MODELS)
def test_missing_entries_leave_what_is_held(model):
    Y = np.where(np.random.default_rng(4).random(X.shape) < 0.1, np.nan, X)
    settings = {"model": model, "weights": "observed", "max_iter": 20, "tol": 0}
    f = factorize(Y, [4, 2], constraint_W=[Fixed(KNOWN), None], **settings)
    np.testing.assert_array_equal(f.W[0][:, :2], KNOWN)
    g = factorize(Y, [4, 2], constraint_H=[Fixed(ROWS), None], **settings)
    np.testing.assert_array_equal(g.H[0][:2], ROWS)
