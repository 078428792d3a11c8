"""Beta divergences: surrogates above and touching, exact minimizers, and fits that never rise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from deepmf import Box, Fixed, MinVolume, OneParent, Ridge, Simplex, factorize
from deepmf.constraints import CappedSimplex, Nonnegative
from deepmf.core.datafit import SQUARED
from deepmf.core.divergence import BetaDivergence, products_at
from deepmf.core.majorized import Majorized
from deepmf.core.quadratic import Quadratic
from deepmf.core.separable import Separable, above

BETAS = [0, 0.5, 1, 1.5]
KL, IS = BetaDivergence(1), BetaDivergence(0)
KINDS = ["kullback-leibler", "itakura-saito", 0.5, 1.5]


def drawn(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).gamma(0.7, 1.0, shape) + 1e-3


def counts(m=12, n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(4 * rng.gamma(0.5, 1, (m, 4)) @ rng.gamma(0.5, 1, (4, n))).astype(float)


# --- the distance --------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", BETAS)
def test_the_distance_is_scikit_learns(beta):
    from sklearn.decomposition._nmf import _beta_divergence

    B, H, T = drawn(7, 3), drawn(3, 9), drawn(7, 9)
    expected = _beta_divergence(T, B, H, beta)
    assert BetaDivergence(beta).value(T, B, H) == pytest.approx(expected)


def test_the_distance_of_sparse_targets_looks_at_nonzeros_and_sums():
    T, B, H = counts(), drawn(12, 3), drawn(3, 40)
    assert KL.value(sparse.csc_array(T), B, H) == pytest.approx(KL.value(T, B, H))
    P = sparse.csc_array(T)
    np.testing.assert_allclose(products_at(P, B, H), (B @ H).T[T.T > 0])


def test_beta_two_would_be_half_the_squared_error():
    T, B, H = drawn(7, 9), drawn(7, 3), drawn(3, 9)
    near = BetaDivergence(2 - 1e-7).value(T, B, H)
    assert near == pytest.approx(SQUARED.value(T, B, H), rel=1e-5)


@pytest.mark.parametrize("beta", BETAS)
def test_the_size_is_the_distance_from_the_product_of_sums(beta):
    T, D = drawn(7, 9), BetaDivergence(beta)
    P = np.outer(T.sum(axis=1), T.sum(axis=0)) / T.sum()
    assert D.size(T) == pytest.approx(2 * D.value(T, P, np.eye(9)))


# --- surrogates ----------------------------------------------------------------------------------


def surrogates(beta, weights):
    """Surrogates, the factor that they are functions of, and the distance as a function of it."""
    D, (T, B, H) = BetaDivergence(beta), (drawn(6, 8), drawn(6, 3), drawn(3, 8))
    L, M, R = drawn(6, 4, seed=1), drawn(4, 3, seed=2), drawn(3, 8, seed=3)
    V = np.random.default_rng(5).random(T.shape) if weights else None
    extra = () if V is None else (V,)
    yield D.codes(T, B, H, *extra), H, lambda Z: D.value(T, B, Z, *extra)
    yield D.basis(T, B, H, *extra), B, lambda Z: D.value(T, Z, H, *extra)
    chain = D.basis(T, L @ M, R, *extra).through(L, None, M)
    yield chain, M, lambda Z: D.value(T, L @ Z, R, *extra)
    if V is None:
        yield D.product(T).through(L, R, M), M, lambda Z: D.value(T, L @ Z, R)
        yield D.target(B @ H), T, lambda Z: D.value(Z, B, H)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("beta", BETAS)
def test_surrogates_lie_above_and_touch(beta, weights):
    rng = np.random.default_rng(1)
    for s, M, distance in surrogates(beta, weights):
        touching = s.touching(M)
        for _ in range(20):
            Z = M * rng.uniform(0.2, 5, M.shape)
            change = distance(Z) - distance(M)
            assert change <= touching.change(M, Z - M) + 1e-9 * distance(M)
            assert s.change(M, Z - M) <= touching.change(M, Z - M) + 1e-9 * distance(M)
        for size in (1e-4, 1e-5):  # the slopes are equal
            D = size * M * rng.standard_normal(M.shape)
            change = distance(M + D) - distance(M - D)
            twice = touching.change(M, D) - touching.change(M, -D)
            assert twice == pytest.approx(change, rel=1e-3, abs=1e-9 * distance(M))


def test_a_quadratic_has_a_separable_function_above_it():
    rng = np.random.default_rng(0)
    A, B, C = (rng.standard_normal((k, k)) for k in (5, 4, 5))
    q = Quadratic(((A @ A.T, B @ B.T), (1.0, B.T @ B)), C[:, :4])
    M = rng.random((5, 4))
    s = above(q, M)
    for _ in range(50):
        D = rng.standard_normal(M.shape) * rng.choice([0.01, 1, 100])
        assert q.change(M, D) <= s.change(M, D) * (1 + 1e-12) + 1e-9


# --- minimizers ----------------------------------------------------------------------------------


SEPARABLE = {
    "linear and log": Separable({0: drawn(5, 4), -1: -drawn(5, 4, seed=1)}),
    "ridge": Separable({1: 2.0, 0: drawn(5, 4) - 1, -1: -drawn(5, 4, seed=1)}),
    "target": Separable({0: drawn(5, 4) - 1, -1: -drawn(5, 4, seed=1)}, 0.7),
    "target alone": Separable({0: drawn(5, 4) - 1}, 0.7),
    "target and ridge": Separable({0: drawn(5, 4) - 1, 1: 0.3, -1: -drawn(5, 4, seed=1)}, 0.7),
    "sound": Separable({0: drawn(5, 4), -2: -drawn(5, 4, seed=1)}),
    "between": Separable({0.5: drawn(5, 4), -0.5: -drawn(5, 4, seed=1)}),
    "between and more": Separable({0.5: 1.0, 0: drawn(5, 4), -0.5: -drawn(5, 4, seed=1), 1: 0.1}),
}


def grid_minimum(s, i, j, eta=0.0):
    one = s.part((5, 4), (slice(i, i + 1), slice(j, j + 1)))
    f = lambda t: one.value(np.array([[np.exp(t)]])) + eta * np.exp(t)  # noqa: E731
    coarse = np.linspace(-25, 10, 3501)
    best = coarse[np.argmin([f(t) for t in coarse])]
    fine = np.linspace(best - 0.02, best + 0.02, 2001)
    return np.exp(fine[np.argmin([f(t) for t in fine])])


@pytest.mark.parametrize("name", SEPARABLE)
def test_minimizers_of_entries_are_those_of_a_grid(name):
    s = SEPARABLE[name]
    found = s.argmin(np.ones((5, 4)))
    for i, j in itertools.product(range(0, 5, 2), range(0, 4, 3)):
        assert found[i, j] == pytest.approx(grid_minimum(s, i, j), rel=1e-3, abs=1e-10)


def test_an_entry_with_a_rising_slope_and_no_log_is_zero():
    rising = Separable({0: np.array([[1.0, -1.0]]), 1: 1.0})
    np.testing.assert_allclose(rising.argmin(np.ones((1, 2))), [[0, 1]])
    again = Separable({0: np.array([[1.0, -1.0]]), 0.5: 1.0, 1: 1e-12})
    np.testing.assert_allclose(again.argmin(np.ones((1, 2))), [[0, 1]], atol=1e-6)


def test_an_entry_without_any_slope_stays():
    none = Separable({0: np.zeros((1, 1)), -1: np.zeros((1, 1))})
    assert none.argmin(np.full((1, 1), 3.0)) == 3


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("name", SEPARABLE)
def test_minimizers_on_the_simplex_are_those_of_a_general_solver(name, capped):
    s, M = SEPARABLE[name], np.full((5, 4), 0.2)
    found = s.on_simplex(M, capped)
    assert found.min() >= 0
    sums = found.sum(axis=0)
    assert np.all(sums <= 1 + 1e-9)
    assert capped or np.allclose(sums, 1)
    kind = "ineq" if capped else "eq"
    for j in range(4):
        own = s.part((5, 4), (slice(None), slice(j, j + 1)))
        best = minimize(
            lambda m, own=own: own.value(m[:, None]), np.full(5, 0.2), bounds=[(1e-12, 1)] * 5,
            constraints={"type": kind, "fun": lambda m: 1 - m.sum()}, method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        ).fun  # fmt: skip
        assert own.value(found[:, [j]]) <= best + 1e-6 * abs(best)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("name", ["linear and log", "target", "target alone", "target and ridge"])
def test_the_compiled_minimizer_on_the_simplex_is_the_same(name, scale):
    """Also from a start far away, and with entries of very different size."""
    s = scale * SEPARABLE[name] + Separable({-1: -scale * np.geomspace(1e-12, 1, 20).reshape(5, 4)})
    expected = s.on_simplex(np.full((5, 4), 0.2))
    for start in (np.full((5, 4), 0.2), np.eye(5, 4)):
        np.testing.assert_allclose(Simplex().minimize(s, start), expected, rtol=1e-7, atol=1e-30)


def test_a_column_of_the_simplex_with_nothing_to_explain_stays():
    s = Separable({0: np.ones((3, 2)), -1: -np.array([[1.0, 0], [2, 0], [1, 0]])})
    found = s.on_simplex(np.full((3, 2), 1 / 3))
    np.testing.assert_allclose(found, [[0.25, 1 / 3], [0.5, 1 / 3], [0.25, 1 / 3]])


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_simplex_does_not_mind_the_scale(scale):
    K = drawn(6, 3)
    found = Separable({0: scale * drawn(6, 3, seed=4), -1: -scale * K}).on_simplex(np.ones((6, 3)))
    np.testing.assert_allclose(found.sum(axis=0), 1)
    whole = Separable({0: drawn(6, 3, seed=4), -1: -K}).on_simplex(np.ones((6, 3)))
    np.testing.assert_allclose(found, whole, rtol=1e-7)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("unit", [False, True])
def test_one_parent_is_the_best_of_all(beta, unit):
    D, T, L = BetaDivergence(beta), drawn(7, 6), drawn(7, 3, seed=1)
    M = OneParent(unit).minimize(D.product(T).through(L, None), np.zeros((3, 6)))
    for j in range(6):
        best = np.inf
        for k, h in itertools.product(range(3), [1.0] if unit else np.geomspace(1e-3, 1e3, 4001)):
            best = min(best, D.value(T[:, [j]], L[:, [k]], np.array([[h]])))
        own = D.value(T[:, [j]], L, np.maximum(M[:, [j]], 1e-300))
        assert np.count_nonzero(M[:, j]) == 1
        assert own <= best * (1 + 1e-9)
        assert own >= best * (1 - 1e-4)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize(
    "constraint", [Nonnegative(), Simplex(), CappedSimplex(), Box(0.01, 0.5)], ids=repr
)
def test_blocks_never_rise_and_stay_in_their_sets(constraint, beta):
    D, T, B = BetaDivergence(beta), drawn(7, 6), drawn(7, 4, seed=1)
    M = constraint.project(drawn(4, 6, seed=2))
    M = np.maximum(M, 1e-3 * (M.max() > 0)) if constraint.separable == "entries" else M
    volume = 0.3 * Quadratic.of(A=np.eye(4) + 0.5)
    values = [D.value(T, B, M) + volume.value(M)]
    for _ in range(10):
        s = D.codes(T, B, M) + volume
        M = s.descend(constraint, M, 3, 1e-3)
        assert constraint.violation(M) < 1e-12
        values.append(D.value(T, B, M) + volume.value(M))
    assert np.all(np.diff(values) <= 1e-12 * abs(values[0]))


def test_held_entries_stay_and_the_others_fall():
    known = drawn(7, 2)
    constraint, T, H = Fixed(known), drawn(7, 6), drawn(4, 6, seed=1)
    B = constraint.project(drawn(7, 4, seed=2))
    after = KL.basis(T, B, H).descend(constraint, B, 5, 0.01)
    np.testing.assert_array_equal(after[:, :2], known)
    assert KL.value(T, after, H) < KL.value(T, B, H)


def test_sums_of_surrogates_keep_all_parts():
    T, B, H = drawn(7, 6), drawn(7, 4), drawn(4, 6)
    whole = KL.basis(T, B, H)
    halves = KL.basis(T[:, :2], B, H[:, :2]) + KL.basis(T[:, 2:], B, H[:, 2:])
    Z = drawn(7, 4, seed=9)
    assert isinstance(halves, Majorized)
    assert halves.change(B, Z - B) == pytest.approx(whole.change(B, Z - B))


# --- fits ----------------------------------------------------------------------------------------

FITS = {
    "flat": {"ranks": [4]},
    "layer-centric": {"ranks": [5, 3, 2]},
    "data-centric": {"ranks": [5, 3, 2], "model": "data-centric"},
    "multilayer": {"ranks": [5, 3], "model": "multilayer"},
    "over codes, data-centric": {"ranks": [5, 3], "hierarchy": "codes", "model": "data-centric"},
    "over codes, multilayer": {"ranks": [5, 3], "hierarchy": "codes", "model": "multilayer"},
    "one parent": {"ranks": [5, 3, 2], "constraint_H": [None, "one-parent", "one-parent"]},
    "minimum volume": {"ranks": [4, 2], "regularizer_W": MinVolume(0.1)},
    "simplex codes": {"ranks": [4], "constraint_H": "simplex"},
    "sparse codes": {"ranks": [4, 2], "regularizer_H": "l1"},
    "ridges": {"ranks": [4, 2], "regularizer_W": Ridge(0.1), "regularizer_H": Ridge(0.1)},
    "fixed": {"ranks": [4], "constraint_W": Fixed(drawn(12, 2))},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("beta_loss", KINDS)
@pytest.mark.parametrize("name", FITS)
def test_sweeps_never_rise(name, beta_loss):
    X = counts() + (beta_loss in ("itakura-saito", 0.5))
    f = factorize(X, beta_loss=beta_loss, max_iter=20, tol=0, init="random", random_state=0,
                  **FITS[name])  # fmt: skip
    objective = f.history.objective
    assert np.all(np.diff(objective) <= 1e-10 * np.abs(objective[:-1]))
    assert objective[-1] < objective[0]
    assert all(np.isfinite(M).all() and (M >= 0).all() for M in (*f.W, *f.H))


MIXED = {
    "layer-centric": {"beta_loss": ["kullback-leibler", "frobenius", 1.5]},
    "data-centric": {"beta_loss": ["kullback-leibler", "frobenius", 1.5], "model": "data-centric"},
    "over codes": {"beta_loss": ["kullback-leibler", "frobenius", "frobenius"],
                   "hierarchy": "codes"},
    "squared data": {"beta_loss": ["frobenius", "kullback-leibler", "frobenius"]},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MIXED)
def test_distances_may_differ_from_layer_to_layer(name):
    f = factorize(counts(), [5, 3, 2], max_iter=20, tol=0, random_state=0, **MIXED[name])
    assert np.all(np.diff(f.history.objective) <= 1e-10 * f.history.objective[:-1])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_flat_fit_ends_where_scikit_learn_cannot_better_it():
    from sklearn.decomposition import NMF

    X, settings = counts(20, 60), {"tol": 0, "max_iter": 500}
    theirs = NMF(4, solver="mu", beta_loss="kullback-leibler", init="custom", **settings)
    H = theirs.fit_transform(X.T, W=drawn(60, 4), H=drawn(4, 20)).T
    begun = (theirs.components_.T, np.ascontiguousarray(H))
    ours = factorize(X, [4], beta_loss="kullback-leibler", init=begun, **settings)
    ends = [theirs.reconstruction_err_**2 / 2, ours.history.objective[-1]]
    W, H = np.ascontiguousarray(ours.W[0].T), np.ascontiguousarray(ours.H[0].T)
    theirs.fit_transform(X.T, W=H, H=W)
    ends.append(theirs.reconstruction_err_**2 / 2)
    assert ends[1] <= ends[0]
    assert ends[2] == pytest.approx(ends[1], rel=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("beta_loss", ["kullback-leibler", 1.5])
def test_sparse_data_panels_and_arrays_give_the_same_fit(beta_loss):
    X, settings = counts(), {"beta_loss": beta_loss, "max_iter": 15, "tol": 0, "init": "random"}
    whole = factorize(X, [4, 2], random_state=0, **settings)
    for other, width in ((sparse.csc_array(X), None), (sparse.csr_array(X), 7), (X, 7)):
        again = factorize(other, [4, 2], random_state=0, panel_size=width, **settings)
        np.testing.assert_allclose(again.history.objective, whole.history.objective, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("beta_loss", KINDS)
def test_weights_are_multiples_of_entries(beta_loss):
    """A column of weight 1 beside one of weight 1/2 is that column twice beside it once."""
    X = counts(8, 10) + 1
    V = np.ones(X.shape)
    V[:, 5:] = 0.5
    settings = {"beta_loss": beta_loss, "max_iter": 30, "tol": 0, "extrapolate": False}
    W, H = drawn(8, 2), drawn(2, 10)
    ours = factorize(X, [2], weights=V, init=(W, H), **settings)
    twice = np.r_[0:5, 0:5, 5:10]
    ones = np.ones((8, 15))
    theirs = factorize(X[:, twice], [2], weights=ones, init=(W, H[:, twice]), **settings)
    np.testing.assert_allclose(2 * ours.history.objective, theirs.history.objective, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_missing_entries_are_left_out():
    X = counts(8, 20) + 1
    holes = X.copy()
    holes[2, 3:9] = np.nan
    settings = {"beta_loss": "kullback-leibler", "max_iter": 30, "tol": 0}
    W, H = drawn(8, 2), drawn(2, 20)
    f = factorize(holes, [2], weights="observed", init=(W, H), **settings)
    seen = ~np.isnan(holes)
    P = f.reconstruct(1)
    deviance = np.sum((X * np.log(X / P) - X + P)[seen])
    assert f.history.objective[-1] == pytest.approx(deviance)


# --- scales and zeros ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["array", "sparse", "float32"])
@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e10])
def test_scales_empty_rows_and_columns(scale, kind):
    X = scale * counts()
    X[3], X[:, 5] = 0, 0
    X = {"array": X, "sparse": sparse.csc_array(X), "float32": X.astype(np.float32)}[kind]
    f = factorize(X, [4, 2], beta_loss="kullback-leibler", max_iter=30, random_state=0)
    plain = factorize(counts_with_gaps(), [4, 2], beta_loss="kullback-leibler", max_iter=30,
                      random_state=0)  # fmt: skip
    assert all(np.isfinite(M).all() for M in (*f.W, *f.H))
    tolerance = 1e-2 if kind == "float32" else 1e-4
    assert f.explained(1) == pytest.approx(plain.explained(1), abs=tolerance)
    assert f.reconstruct(1)[3].max() <= 1e-6 * scale


@pytest.mark.filterwarnings("ignore")
def test_powers_of_very_different_size():
    """A component that is fitted alone ends with zeros, and is then a target."""
    rng = np.random.default_rng(0)
    X = (rng.gamma(0.5, size=(40, 4)) ** 2 + 1e-12) @ rng.gamma(0.3, size=(4, 200)) ** 2 + 1e-12
    X *= rng.exponential(size=X.shape)
    f = factorize(X, [8, 4], beta_loss="itakura-saito", init="random", random_state=0, max_iter=20)
    assert np.isfinite(f.history.objective).all()


@pytest.mark.filterwarnings("ignore")
def test_multiplicative_steps_keep_the_scale_of_components_too():
    f = factorize(counts(), [4, 2], beta_loss="kullback-leibler", solver="mu", max_iter=10)
    for W in f.W:
        np.testing.assert_allclose(W.sum(axis=0), 1)


def counts_with_gaps():
    X = counts()
    X[3], X[:, 5] = 0, 0
    return X


# --- what surrounds a fit ------------------------------------------------------------------------


def test_explained_deviance_of_a_fit():
    X = counts(20, 80)
    f = factorize(X, [4, 2], beta_loss="kullback-leibler", random_state=0)
    P = f.reconstruct(1)
    null = np.outer(X.sum(axis=1), X.sum(axis=0)) / X.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        deviances = [np.nansum(X * np.log(X / Q)) - X.sum() + Q.sum() for Q in (P, null)]
    assert f.explained(1) == pytest.approx(1 - deviances[0] / deviances[1])
    assert "deviance" in repr(f)


def test_new_samples_are_coded_by_the_divergence(tmp_path):
    X = counts(20, 80)
    f = factorize(X, [4], beta_loss="kullback-leibler", tol=1e-8, max_iter=2000, random_state=0)
    f.save(tmp_path / "f.npz")
    again = type(f).load(tmp_path / "f.npz")
    assert again.problem == f.problem
    codes = again.encode(X[:, :7])
    np.testing.assert_allclose(codes, f.H[0][:, :7], rtol=0.05, atol=0.02 * f.H[0].max())
    assert again.deviance(X) <= 2 * f.history.objective[-1] * (1 + 1e-4)


def test_the_estimator_is_scikit_learns_score_and_error():
    from sklearn.decomposition import NMF

    from deepmf import DeepMF

    X = counts(20, 80).T
    model = DeepMF([3], beta_loss="kullback-leibler", tol=1e-6, max_iter=1000).fit(X)
    theirs = NMF(3, solver="mu", beta_loss="kullback-leibler", max_iter=1000, tol=1e-6).fit(X)
    assert model.reconstruction_err_ <= 1.01 * theirs.reconstruction_err_
    assert -model.score(X) * X.size == pytest.approx(model.reconstruction_err_**2, rel=1e-2)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"beta_loss": "kl"}, "beta_loss must be 'frobenius', 'kullback-leibler'"),
        ({"beta_loss": 2.5}, "number from 0 to 2"),
        ({"beta_loss": True}, "number from 0 to 2"),
        ({"beta_loss": ["kullback-leibler"] * 3}, "beta_loss has 3 entries for 2 layers"),
        ({"constraint_W": "none"}, "kullback-leibler.*Unconstrained.*on W of layer 1"),
        ({"constraint_H": [None, Box(-1, 1)]}, "Box.*on H of layer 2"),
        ({"model": "trigeorgis"}, "Trigeorgis.*share no loss"),
        ({"hierarchy": "codes"}, "hierarchy='codes'.*'kullback-leibler', 'frobenius'"),
        (
            {"constraint_H": [None, "one-parent"], "model": "data-centric"},
            "OneParent.*layer-centric",
        ),
    ],
)
def test_what_cannot_be_combined_is_said_before_the_fit(settings, said):
    with pytest.raises(ValueError, match=said):
        factorize(np.full((5, 6), np.nan), [4, 2], **{"beta_loss": "kullback-leibler", **settings})


def test_bad_data_are_counted():
    X = counts() + 1
    X[2, 3], X[4, 5] = -1, 0
    with pytest.raises(ValueError, match=r"nonnegative data, but X has 1 negative .*row 2, col"):
        factorize(X, [3], beta_loss="kullback-leibler", allow_negative=True)
    X[2, 3] = 1
    with pytest.raises(ValueError, match=r"positive data, but X has 1 zero .*row 4, column 5"):
        factorize(X, [3, 2], beta_loss=[0, 1])
