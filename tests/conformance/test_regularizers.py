"""Every regularizer: its quadratic lies above it on the feasible set and touches at M."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from deepmf import (
    L1,
    CappedSimplex,
    GroupedSparse,
    MinVolume,
    Nonnegative,
    Quadratic,
    Regularizer,
    Ridge,
    Simplex,
    Unconstrained,
)


class Smooth(Regularizer):
    """1/2 ||D M||^2 with D the first difference, of Regularizer's docstring."""

    def value(self, M):
        return 0.5 * np.sum(np.diff(M, axis=0) ** 2)

    def majorize(self, M):
        D = np.diff(np.eye(len(M)), axis=0)
        return Quadratic.of(A=D.T @ D)


def logdet(M, delta):
    singular = np.linalg.svd(M, compute_uv=False)
    small = M.shape[1] - len(singular)
    return 0.5 * (np.sum(np.log(singular**2 + delta)) + small * np.log(delta))


# (regularizer, its value written out, the set it lives on)
CASES = [
    (MinVolume(), lambda M: logdet(M, 0.1), Unconstrained()),
    (MinVolume(delta=1e-4), lambda M: logdet(M, 1e-4), Unconstrained()),
    (MinVolume(), lambda M: logdet(M, 0.1), Simplex()),
    (Ridge(), lambda M: 0.5 * np.linalg.norm(M) ** 2, Unconstrained()),
    (L1(), lambda M: sum(abs(x) for x in M.ravel()), Nonnegative()),
    (
        Smooth(),
        lambda M: 0.5 * sum(np.linalg.norm(a - b) ** 2 for a, b in pairwise(M)),
        Unconstrained(),
    ),
]
cases = pytest.mark.parametrize(
    ("regularizer", "written_out", "members"),
    CASES,
    ids=[f"{r!r} on {c!r}" for r, _, c in CASES],
)
SHAPES = [(6, 3), (3, 5), (4, 1)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


@cases
@shapes
def test_value(regularizer, written_out, members, shape):
    M = members.project(np.random.default_rng(0).standard_normal(shape))
    assert regularizer.value(M) == pytest.approx(written_out(M), rel=1e-10)


@cases
@shapes
def test_quadratic_lies_above(regularizer, written_out, members, shape):
    rng = np.random.default_rng(1)
    M = members.project(rng.standard_normal(shape))
    q = regularizer.majorize(M)
    strict = 0
    for _ in range(100):
        Z = members.project(10 ** rng.uniform(-2, 2) * rng.standard_normal(shape))
        actual = written_out(Z) - written_out(M)
        above = q.change(M, Z - M)
        assert above >= actual - 1e-9 * (1 + abs(actual))
        strict += above > actual + 1e-6 * (1 + abs(actual))
    if not isinstance(regularizer, MinVolume):  # the others are exact on their set
        assert strict == 0


@cases
@shapes
def test_quadratic_touches(regularizer, written_out, members, shape):
    """The same gradient at M, by finite differences of the written-out value."""
    rng = np.random.default_rng(2)
    M = members.project(0.5 + rng.random(shape))  # inside: no entry at its bound
    q = regularizer.majorize(M)
    h = 1e-6
    numeric = np.empty(shape)
    for i, j in np.ndindex(shape):
        E = np.zeros(shape)
        E[i, j] = h
        numeric[i, j] = (written_out(M + E) - written_out(M - E)) / (2 * h)
    np.testing.assert_allclose(np.broadcast_to(q.gradient(M), shape), numeric, rtol=1e-5, atol=1e-6)


@cases
def test_input_is_left_as_it_is(regularizer, written_out, members):
    M = members.project(np.random.default_rng(3).random((5, 3)))
    kept = M.copy()
    regularizer.value(M)
    regularizer.majorize(M)
    np.testing.assert_array_equal(M, kept)


@pytest.mark.parametrize("regularizer", [Ridge(), L1()], ids=repr)
def test_declared_separability_is_true(regularizer):
    M = np.random.default_rng(4).random((3, 6))
    halves = regularizer.value(M[:, :2]) + regularizer.value(M[:, 2:])
    assert regularizer.separable
    assert regularizer.value(M) == pytest.approx(halves)
    assert regularizer.majorize(M).column_separable


@pytest.mark.parametrize("regularizer", [MinVolume(), Smooth()], ids=repr)
def test_default_separability_is_the_safe_one(regularizer):
    assert not regularizer.separable


def test_rank_deficient_volume_is_finite():
    M = np.ones((4, 3))
    assert np.isfinite(MinVolume().value(M))
    assert np.isfinite(MinVolume().majorize(M).lipschitz())
    assert MinVolume(delta=1e-8).value(np.zeros((4, 3))) == pytest.approx(1.5 * np.log(1e-8))


# --- strength (section 6) ------------------------------------------------------------------------


def test_strength_is_relative_to_the_error():
    assert Ridge(0.2).strength(value=4.0, error=10.0) == pytest.approx(0.5)
    assert L1(0.2).strength(value=4.0, error=10.0) == pytest.approx(0.5)
    # kappa = weight * error / |logdet|, and value is half the logdet, of either sign
    assert MinVolume(0.2).strength(value=-4.0, error=10.0) == pytest.approx(0.25)


@pytest.mark.parametrize("cls", [MinVolume, Ridge, L1, Smooth])
def test_absolute_strength_is_the_weight(cls):
    assert cls(0.2, relative=False).strength(value=4.0, error=10.0) == 0.2


@pytest.mark.parametrize("cls", [MinVolume, Ridge, L1, Smooth])
def test_strength_survives_a_vanishing_value(cls):
    strength = cls(0.2).strength(value=0.0, error=10.0)
    assert 0 <= strength < np.inf


@pytest.mark.parametrize("cls", [MinVolume, Ridge, L1])
@pytest.mark.parametrize("weight", [-1, np.nan, np.inf])
def test_bad_weight_is_refused(cls, weight):
    with pytest.raises(ValueError, match="weight"):
        cls(weight)


@pytest.mark.parametrize("delta", [0, -1, np.nan, np.inf])
def test_bad_delta_is_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        MinVolume(delta=delta)


def test_objections():
    free, simplex, positive = Unconstrained(), Simplex(), Nonnegative()
    assert "scale" in MinVolume().objection(positive, positive)
    assert MinVolume().objection(simplex, positive) is None
    assert MinVolume().objection(positive, CappedSimplex()) is None
    assert "negative" in L1().objection(free, positive)
    assert "negative" in L1().objection(GroupedSparse(0.5, nonnegative=False), positive)
    assert L1().objection(positive, free) is None
    assert Ridge().objection(free, free) is None
