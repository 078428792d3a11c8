"""One parent each: exact minimizers of a block, against brute force over all parents."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from deepmf import OneParent, Quadratic, factorize
from deepmf.constraints.transposed import Transposed
from deepmf.fitting.problem import problem_from_spec
from deepmf.solvers import FastProjectedGradient

RNG = np.random.default_rng(0)
UNITS = pytest.mark.parametrize("unit", [False, True])


def gram(r, rows=9):
    """Positive definite, with diagonal entries of different sizes."""
    F = RNG.standard_normal((rows, r)) * 4.0 ** np.arange(r)
    return F.T @ F


def is_member(H, unit):
    entries = (H != 0).sum(axis=0)
    assert (H >= 0).all()
    if unit:
        return (entries == 1).all() and set(np.unique(H)) <= {0.0, 1.0}
    return (entries <= 1).all()


def brute_force(q, shape, unit):
    """The smallest q over all choices of parents; entries by nonnegative least squares."""
    r, n = shape
    best = np.inf
    for parents in product(range(r), repeat=n):
        where = (np.array(parents), np.arange(n))
        if unit:
            H = np.zeros(shape)
            H[where] = 1.0
            best = min(best, q.value(H))
            continue
        units = [np.zeros(shape) for _ in range(n)]
        for j, E in enumerate(units):
            E[where[0][j], j] = 1.0
        A = np.array([[np.sum(E * q.hessian(F)) for F in units] for E in units])
        c = np.array([-np.sum(E * q.gradient(np.zeros(shape))) for E in units])
        best = min(best, q.value(sum(h * E for h, E in zip(nonnegative(A, c), units))))
    return best


def nonnegative(A, c):
    """argmin of 1/2 h'Ah - c'h over h >= 0, by all active sets."""
    best, at = 0.0, np.zeros(len(c))
    for free in product([False, True], repeat=len(c)):
        i = np.flatnonzero(free)
        h = np.zeros(len(c))
        h[i] = np.linalg.lstsq(A[np.ix_(i, i)], c[i], rcond=None)[0]
        value = 0.5 * h @ A @ h - c @ h
        if (h >= 0).all() and value < best:
            best, at = value, h
    return at


@UNITS
@pytest.mark.parametrize("seed", range(5))
def test_independent_columns_are_minimized_exactly(unit, seed):
    """The block of H_l under the layer-centric loss."""
    rng = np.random.default_rng(seed)
    q = Quadratic.of(A=gram(3), C=rng.standard_normal((3, 4)))
    H = OneParent(unit).minimize(q, np.zeros((3, 4)))
    assert is_member(H, unit)
    assert q.value(H) == pytest.approx(brute_force(q, (3, 4), unit), rel=1e-12)
    far = OneParent(unit).minimize(q, 100 * rng.random((3, 4)))
    np.testing.assert_array_equal(H, far)  # wherever it begins


@UNITS
@pytest.mark.parametrize("seed", range(5))
def test_coupled_columns_never_rise_and_end_where_no_column_can_improve(unit, seed):
    """The block of H_l under the data-centric loss: H's columns meet in A M B."""
    rng = np.random.default_rng(seed)
    constraint = OneParent(unit)
    q = Quadratic.of(A=gram(3), B=gram(4), C=5 * rng.standard_normal((3, 4)))
    M = constraint.project(rng.random((3, 4)))
    H = constraint.minimize(q, M)
    assert is_member(H, unit)
    assert q.value(H) <= q.value(M)
    assert q.value(H) >= brute_force(q, (3, 4), unit) - 1e-9
    for j in range(4):
        for k in range(3):
            for h in [1.0] if unit else np.linspace(0, 2 * H.max() + 1, 41):
                other = H.copy()
                other[:, j] = 0
                other[k, j] = h
                assert q.value(other) >= q.value(H) - 1e-9


@UNITS
def test_several_terms_are_one_quadratic(unit):
    """Terms with right sides of their own, as with a penalty."""
    rng = np.random.default_rng(7)
    terms = ((gram(3), gram(4)), (0.3, 1.0), (gram(3), 1.0))
    q = Quadratic(terms, rng.standard_normal((3, 4)))
    constraint = OneParent(unit)
    H = constraint.minimize(q, constraint.project(rng.random((3, 4))))
    for j, k in product(range(4), range(3)):
        other = H.copy()
        other[:, j] = 0
        other[k, j] = 1.0 if unit else H[:, j].max()
        assert q.value(other) >= q.value(H) - 1e-9


@UNITS
def test_projection_is_the_nearest_member(unit):
    rng = np.random.default_rng(1)
    for _ in range(20):
        M = rng.standard_normal((3, 2))
        P = OneParent(unit).project(M)
        assert is_member(P, unit)
        q = Quadratic.of(A=np.eye(3), C=M)
        assert q.value(P) == pytest.approx(brute_force(q, (3, 2), unit))


@UNITS
def test_rows_of_a_transposed_set(unit):
    """Z_l of depth over codes has one parent for each row."""
    rng = np.random.default_rng(2)
    q = Quadratic.of(A=gram(4), B=gram(3), C=rng.standard_normal((4, 3)))
    M = OneParent(unit).project(rng.random((3, 4))).T
    Z = Transposed(OneParent(unit)).minimize(q, M)
    np.testing.assert_array_equal(Z, OneParent(unit).minimize(q.T, M.T).T)
    assert is_member(Z.T, unit)
    assert q.value(Z) <= q.value(M)


@UNITS
def test_solvers_take_the_exact_minimizer(unit):
    q = Quadratic.of(A=gram(3), C=RNG.standard_normal((3, 4)))
    constraint = OneParent(unit)
    M = constraint.project(RNG.random((3, 4)))
    found = FastProjectedGradient().improve(q, constraint, M, 1, 1.0)
    np.testing.assert_array_equal(found, constraint.minimize(q, M))


X = RNG.random((12, 5)) @ RNG.dirichlet(np.full(5, 0.2), 80).T + 0.02 * RNG.random((12, 80))


@UNITS
@pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer"])
def test_the_hierarchy_of_a_fit_is_a_tree(model, unit):
    settings = {"constraint_H": [None, OneParent(unit)], "model": model, "random_state": 0}
    f = factorize(X, [5, 2], tol=0, max_iter=30, extrapolate=False, **settings)
    assert is_member(f.H[1], unit)
    rises = np.diff(f.history.objective)
    assert (rises <= 1e-12 * f.history.objective[0]).all()
    shares = f.links(2)
    assert set(np.round(np.unique(shares), 12)) <= {0.0, 1.0}
    assert problem_from_spec(f.problem.spec()).layers[1].constraint_H == OneParent(unit)
    if unit:  # what a parent has is the sum of what its children have
        sums = [f.H[0][f.H[1][k] > 0].sum(axis=0) for k in range(2)]
        np.testing.assert_allclose(f.codes(2), sums)


@UNITS
@pytest.mark.parametrize("model", ["layer-centric", "data-centric"])
def test_the_hierarchy_of_codes_is_a_tree(model, unit):
    settings = {"constraint_H": [None, OneParent(unit)], "model": model, "random_state": 0}
    f = factorize(X, [5, 2], hierarchy="codes", **settings)
    assert is_member(f.W[1].T, unit)
    assert f.stop_reason == "tol"
    assert f.history.objective[-1] < f.history.objective[0]
    assert (np.asarray(f.codes(2)) >= 0).all()
    assert (np.asarray(f.codes(2)) > 0).sum(axis=0).max() == 2  # samples may have several parents
