"""What holds for every fit, whatever the data and the settings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from deepmf import (
    L1,
    Box,
    Factorization,
    GroupedSparse,
    MinVolume,
    Nonnegative,
    Ridge,
    factorize,
)
from deepmf._utils.threads import limit_threads
from deepmf.data.panels import Coding

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, reject  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

MODELS = ["layer-centric", "data-centric", "multilayer", "trigeorgis"]
SETS = ["none", "nonnegative", Box(0, 2), "simplex", "capped-simplex"]
SETS += [GroupedSparse(0.5), GroupedSparse(0.3, nonnegative=False)]
PENALTIES = [None, None, Ridge(0.1), L1(0.05), MinVolume(0.1)]
PLAIN = {"tol": 0, "inner_tol": 0, "inner_iter": 4, "extrapolate": False, "max_iter": 3}
"""Settings under which no rounding decides what is done next."""


@dataclass
class Case:
    """Data and the settings of a fit."""

    X: np.ndarray
    ranks: list[int]
    settings: dict[str, Any] = field(default_factory=dict)

    def fit(self, X=None, **more: Any) -> Factorization:
        """The fit; settings that the library refuses with a sentence make no case."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                warnings.filterwarnings("ignore", "The first rank|The fit diverged")
                return factorize(
                    self.X if X is None else X, self.ranks, **{**self.settings, **more}
                )
        except ValueError as error:
            if not str(error).endswith("."):
                raise
            reject()


@st.composite
def matrices(draw, widest=40):
    """Random, of low rank, with zeros, with empty or equal rows and columns; of any size."""
    m, n = draw(st.integers(1, 12)), draw(st.integers(1, widest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["random", "mixed", "zeros", "empty", "equal", "spikes"]))
    X = rng.random((m, n)) + 0.01
    if kind == "mixed":
        X = rng.random((m, 2)) @ rng.dirichlet([0.5, 0.5], n).T + 1e-3
    elif kind == "zeros":
        X = np.where(rng.random((m, n)) < 0.7, 0, X)
    elif kind == "empty":
        X[:, rng.random(n) < 0.5] = 0
        X[rng.random(m) < 0.3] = 0
    elif kind == "equal":
        X[:] = X[:, :1]
    elif kind == "spikes":
        X = X ** draw(st.integers(2, 12))
    X[0, 0] = max(X[0, 0], 0.5)
    return X


@st.composite
def cases(draw, widest=40, sizes=(-6, 6)):
    """Any data under any settings."""
    X = draw(matrices(widest)) * 10.0 ** draw(st.integers(*sizes))
    X = X.astype(draw(st.sampled_from([np.float64, np.float64, np.float32])))
    X = np.asarray(X, order=draw(st.sampled_from("CF")))
    depth = draw(st.integers(1, 3))
    ranks = sorted((draw(st.integers(1, min(6, X.size))) for _ in range(depth)), reverse=True)
    solver = draw(st.sampled_from(["fpgm", "fpgm", "fpgm", "pg", "hals", "mu"]))
    sets = {"hals": SETS[:3], "mu": SETS[1:2]}.get(solver, SETS)

    def layers(choices):
        return [draw(st.sampled_from(choices)) for _ in ranks]

    settings = {
        "model": draw(st.sampled_from(MODELS)),
        "solver": solver,
        "constraint_W": layers(sets),
        "constraint_H": layers(sets),
        "regularizer_W": layers(PENALTIES),
        "regularizer_H": layers(PENALTIES),
        "init": draw(st.sampled_from([None, "random", "snpa", "nndsvd"])),
        "extrapolate": draw(st.booleans()),
        "max_iter": draw(st.integers(0, 8)),
        "tol": 0,
        "random_state": draw(st.integers(0, 99)),
    }
    return Case(X, ranks, settings)


@st.composite
def begun(draw, sets=("nonnegative", "simplex"), widest=40):
    """A consistent fit of float64 data from given factors, well-posed so that rounding stays small.

    Data of low rank leave the factors free to move along flat directions, which rounding chooses.
    """
    m, n = draw(st.integers(5, 12)), draw(st.integers(8, widest))
    ranks = sorted((draw(st.integers(1, 4)) for _ in range(draw(st.integers(1, 3)))), reverse=True)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.random((m, n)) ** draw(st.integers(1, 4))
    Ws = [W / W.sum(axis=0) for W in (rng.random((len(X), r)) + 0.1 for r in ranks)]
    widths = [X.shape[1], *ranks]
    Hs = [rng.random((r, width)) + 0.1 for r, width in zip(ranks, widths)]
    case = Case(X, ranks, {"model": draw(st.sampled_from(MODELS[:2])), **PLAIN})
    case.settings["constraint_W"] = draw(st.sampled_from(sets))
    case.settings["init"] = (Ws, Hs)
    return case


def factors(f):
    return [*f.W, *f.H]


def same_bits(f, g):
    for a, b in zip(factors(f), factors(g), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(f.history.objective, g.history.objective)


def close(f, g, turn=lambda M, k: M):
    """Equal factors but for rounding, after ``turn`` has been applied to those of the first."""
    for k, (a, b) in enumerate(zip(factors(f), factors(g), strict=True)):
        np.testing.assert_allclose(turn(a, k), b, rtol=1e-6, atol=1e-8 * max(1, abs(b).max()))


@given(cases())
def test_factors_are_finite_and_feasible_and_the_objective_never_rises(case):
    f = case.fit()
    single = case.X.dtype == np.float32
    for W, H, layer in zip(f.W, f.H, f.problem.layers):
        assert W.dtype == H.dtype == case.X.dtype
        for M, constraint in ((W, layer.constraint_W), (H, layer.constraint_H)):
            assert np.isfinite(M).all() or f.stop_reason == "diverged"
            if np.isfinite(M).all():
                assert constraint.violation(M) <= (5e-6 if single else 1e-9)
    if f.problem.loss.consistent and not single:
        o = f.history.objective
        size = float(np.sum(case.X.astype(float) ** 2))
        assert (np.diff(o) <= 1e-12 * np.abs(o[:-1]) + 1e-14 * size).all(), np.diff(o)


@given(cases(sizes=(-2, 2)))
def test_the_objective_of_float32_rises_by_rounding_at_most(case):
    f = case.fit(case.X.astype(np.float32))
    if f.problem.loss.consistent:
        o = f.history.objective
        size = float(np.sum(case.X.astype(float) ** 2))
        assert (np.diff(o) <= 1e-5 * np.abs(o[:-1]) + 1e-6 * size).all(), np.diff(o)


@given(cases())
def test_the_same_seed_gives_the_same_bits(case):
    same_bits(case.fit(), case.fit())


@given(cases())
def test_what_is_saved_comes_back(tmp_path_factory, case):
    f = case.fit()
    g = Factorization.load(f.save(tmp_path_factory.mktemp("f") / "f.npz"))
    same_bits(f, g)
    assert f.problem.spec() == g.problem.spec()
    assert (f.stop_reason, f.starts) == (g.stop_reason, g.starts)


@given(cases(widest=3000), st.integers(2, 4))
def test_threads_change_no_bit(case, count):
    fits = []
    for threads in (1, count):
        with limit_threads(threads):
            fits.append(case.fit())
    same_bits(*fits)


@given(begun(), st.randoms(use_true_random=False))
def test_permuted_samples_permute_the_codes(case, random):
    Ws, Hs = case.settings["init"]
    order = random.sample(range(case.X.shape[1]), case.X.shape[1])
    g = case.fit(case.X[:, order], init=(Ws, [Hs[0][:, order], *Hs[1:]]))
    close(case.fit(), g, lambda M, k: M[:, order] if k == len(Ws) else M)


@given(begun(), st.randoms(use_true_random=False))
def test_permuted_features_permute_the_bases(case, random):
    Ws, Hs = case.settings["init"]
    order = random.sample(range(len(case.X)), len(case.X))
    g = case.fit(case.X[order], init=([W[order] for W in Ws], Hs))
    close(case.fit(), g, lambda M, k: M[order] if k < len(Ws) else M)


@given(begun(sets=("nonnegative", "none")), st.integers(-20, 20))
def test_scaled_data_scale_the_bases(case, power):
    """Or the codes, where the bases of the result sum to one."""
    Ws, Hs = case.settings["init"]
    c = 2.0**power
    g = case.fit(c * case.X, init=([c * W for W in Ws], Hs))
    f = case.fit()
    canonical = case.settings["model"] == "data-centric" or len(case.ranks) == 1
    for a, b in zip(factors(f), factors(g)):
        scale = c if (a is f.H[0] if canonical else any(a is W for W in f.W)) else 1.0
        np.testing.assert_allclose(scale * a, b, rtol=1e-6, atol=1e-8 * max(scale, abs(b).max()))


@given(begun(widest=300), st.integers(1, 50))
def test_the_number_of_panels_does_not_matter(case, width):
    close(case.fit(), case.fit(panel_size=width))


@given(begun(), st.sampled_from([sparse.csr_array, sparse.csc_array, np.asfortranarray]))
def test_the_kind_of_matrix_does_not_matter(case, kind):
    close(case.fit(), case.fit(kind(case.X)))


@given(begun())
def test_float32_follows_float64(case):
    f, g = case.fit(), case.fit(case.X.astype(np.float32))
    assert g.W[0].dtype == np.float32
    np.testing.assert_allclose(g.history.data_errors, f.history.data_errors, rtol=2e-3, atol=1e-4)


@given(begun())
def test_codes_of_the_training_data_are_at_least_as_good_as_those_of_the_fit(case):
    f = case.fit()
    coding = Coding(f._model().bases(f._state()), Nonnegative())
    A, G = coding.A, coding.G

    def value(H):
        return 0.5 * np.sum(H * (A @ H)) - np.sum(H * (G.T @ case.X))

    size = max(abs(value(f.H[0])), np.sum((G.T @ case.X) ** 2) / np.trace(A))
    assert value(f.encode(case.X)) <= value(f.H[0]) + 1e-7 * size
