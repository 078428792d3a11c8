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
from deepmf.regularizers.base import LayerFit, effective_dimension


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


# --- weights in absolute terms -------------------------------------------------------------------


RNG = np.random.default_rng(5)
R = RNG.standard_normal((9, 40))
FACTOR = RNG.random((9, 3))


def fit(R=R, M=FACTOR, value=4.0, overfitted=False):
    """A layer's fit without penalties, with the residual R."""
    return LayerFit(M, value, 0.5 * float(np.sum(R**2)), lambda: R, overfitted)


def fixed(penalty, layer_fit):
    """The penalty as the fit has it."""
    return penalty.having(penalty.absolute(layer_fit))


@pytest.mark.parametrize("cls", [Ridge, L1, Smooth])
def test_weight_is_relative_to_the_error(cls):
    error = fit().error
    assert fixed(cls(0.2), fit()).weight == pytest.approx(0.2 * error / 4)
    assert fixed(cls(0.2), fit(value=-4.0)).weight == pytest.approx(0.2 * error / 4)
    assert cls(0.2).needs_fit


def test_weight_of_the_papers_volume():
    """kappa = weight * error / |logdet|, and value is half the logdet, of either sign."""
    for value in (4.0, -4.0):
        kappa = fixed(MinVolume(0.2, "paper"), fit(value=value))
        assert (kappa.weight, kappa.delta) == (pytest.approx(0.2 * fit().error / 8), 0.1)
    assert fixed(MinVolume(0.2, "paper", delta=0.3), fit()).delta == 0.3
    assert not MinVolume(0.2, "paper").needs_fit


def test_weight_of_the_likelihoods_volume():
    """kappa = weight * ||R||^2 / dim(R), delta relative to the components' squared norms."""
    squares = np.linalg.svd(R, compute_uv=False) ** 2
    kappa = np.sum(R**2) * np.sum(squares**2) / np.sum(squares) ** 2
    size = np.mean(np.linalg.norm(FACTOR, axis=0) ** 2)
    for weight in (1.0, 0.2):
        found = fixed(MinVolume(weight), fit())
        assert found.weight == pytest.approx(weight * kappa)
        assert found.delta == pytest.approx(0.01 * size)
    assert fixed(MinVolume(), fit(overfitted=True)).delta == pytest.approx(0.1 * size)
    assert fixed(MinVolume(delta=0.3), fit()).delta == pytest.approx(0.3 * size)
    assert MinVolume().needs_fit


def test_the_likelihood_has_no_units():
    """c X has c W: kappa grows by c^2 as the loss does, and the volume's gradient by 1 / c^2."""
    one, many = fixed(MinVolume(), fit()), fixed(MinVolume(), fit(1e3 * R, 1e3 * FACTOR))
    assert many.weight == pytest.approx(1e6 * one.weight)
    assert many.delta == pytest.approx(1e6 * one.delta)
    shift = 3 * np.log(1e6) / 2  # what logdet gains
    assert many.value(1e3 * FACTOR) == pytest.approx(one.value(FACTOR) + shift)
    # and with the scale in H: W stays, and so does delta
    other = fixed(MinVolume(), fit(1e3 * R))
    assert (other.weight, other.delta) == (pytest.approx(1e6 * one.weight), one.delta)


@pytest.mark.parametrize("copies", [2, 5])
def test_the_likelihood_knows_features_that_are_repeated(copies):
    """Bands that say the same again double error and loss, not the dimension."""
    again = fit(np.tile(R, (copies, 1)), np.tile(FACTOR, (copies, 1)))
    one, many = fixed(MinVolume(), fit()), fixed(MinVolume(), again)
    assert again.dimension == pytest.approx(fit().dimension)
    assert many.weight == pytest.approx(copies * one.weight)
    assert many.delta == pytest.approx(copies * one.delta)


def test_dimension_of_a_residual():
    rng = np.random.default_rng(0)
    assert effective_dimension(rng.standard_normal((5, 200_000))) == pytest.approx(5, rel=1e-2)
    m, n = 400, 600  # white noise
    white = effective_dimension(rng.standard_normal((m, n)))
    assert white == pytest.approx(m * n / (m + n), rel=0.01)
    assert effective_dimension(np.outer(rng.random(9), rng.random(7))) == pytest.approx(1)
    Q = np.linalg.qr(rng.standard_normal((9, 9)))[0]
    assert effective_dimension(Q @ R) == pytest.approx(effective_dimension(R))
    assert effective_dimension(R.T) == pytest.approx(effective_dimension(R))
    for scale in (1e-200, 1e200):  # whose fourth powers vanish or overflow
        assert effective_dimension(scale * R) == pytest.approx(effective_dimension(R))
    assert effective_dimension(np.zeros((4, 5))) == 1
    assert np.isfinite(effective_dimension(np.float32(1e30) * R.astype(np.float32)))


ABSOLUTE = [MinVolume(0.2, "absolute"), *(cls(0.2, relative=False) for cls in (Ridge, L1, Smooth))]


@pytest.mark.parametrize("penalty", ABSOLUTE, ids=repr)
def test_absolute_weight_is_the_weight(penalty):
    assert fixed(penalty, fit()).weight == 0.2
    assert not penalty.needs_fit


RELATIVE = [MinVolume(0.2), MinVolume(0.2, "paper"), *(cls(0.2) for cls in (Ridge, L1, Smooth))]


@pytest.mark.parametrize("penalty", RELATIVE, ids=repr)
def test_weight_survives_a_vanishing_value_and_residual(penalty):
    for layer_fit in (fit(value=0.0), fit(0 * R), fit(0 * R, value=0.0)):
        assert 0 <= fixed(penalty, layer_fit).weight < np.inf


@pytest.mark.parametrize("penalty", RELATIVE + ABSOLUTE, ids=repr)
def test_settings_stay_as_they_were_given(penalty):
    before = penalty.spec()
    assert fixed(penalty, fit()) is not penalty
    assert penalty.spec() == before


def test_an_unknown_scale_is_refused():
    with pytest.raises(ValueError, match="one of 'likelihood', 'paper', 'absolute', got 'error'"):
        MinVolume(scale="error")


def test_a_volume_of_the_first_version_keeps_its_meaning():
    """Its files have ``relative``, and nothing of the likelihood."""
    assert MinVolume.from_spec({"weight": 0.2, "relative": True}) == MinVolume(0.2, "paper")
    assert MinVolume.from_spec({"weight": 0.2, "relative": False}) == MinVolume(0.2, "absolute")


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
