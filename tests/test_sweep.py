"""Every single block update decreases the objective, and errors from traces are true."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf import (
    L1,
    Box,
    CappedSimplex,
    FastProjectedGradient,
    GroupedSparse,
    LayerCentric,
    MinVolume,
    Nonnegative,
    Quadratic,
    Regularizer,
    Ridge,
    Simplex,
    Unconstrained,
)
from deepmf.core.state import State
from deepmf.core.terms import Factor
from deepmf.data.panels import Coding, DensePanels
from deepmf.fitting.add_layer import add_layer
from deepmf.fitting.calibration import joint
from deepmf.fitting.errors import measure
from deepmf.fitting.problem import build_problem
from deepmf.fitting.sweep import Sweep
from deepmf.init import random

M, N = 8, 30


class Smooth(Regularizer):
    """1/2 ||D M||^2 with D the first difference, of Regularizer's docstring."""

    def value(self, M):
        return 0.5 * np.sum(np.diff(M, axis=0) ** 2)

    def majorize(self, M):
        D = np.diff(np.eye(len(M)), axis=0)
        return Quadratic.of(A=D.T @ D)


def data(signed=False, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.random((M, 4)) @ rng.random((4, N)) + 0.1 * rng.random((M, N))
    return (X - 0.5 * X.mean() if signed else X).astype(dtype)


def grown(X, problem, width=None, seed=0):
    """Panels and a state with all layers started."""
    panels = DensePanels(X, width)
    s = State()
    sizes = [panels.norm2]
    for _ in problem.layers:
        add_layer(panels, s, problem, random, np.random.default_rng(seed))
        sizes.append(float(np.sum(s.W[-1] ** 2)))
    return panels, s, sizes


def sweep_of(panels, s, problem, loss, sizes, layers, inner_iter=10, inner_tol=0.01):
    """A sweep calibrated from the state as it is."""
    calibration = joint(panels, s, problem, loss, sizes, [])
    return Sweep(panels, s, problem, loss, calibration, layers, inner_iter, inner_tol)


def explicit_errors(panels, s):
    """Squared errors from the residuals themselves, in float64."""
    X, H1 = panels.X.astype(float), panels.codes.H.astype(float)
    Hs = [H1, *s.H[1:]]
    above = [X, *s.W]
    layer = [np.linalg.norm(above[k] - s.W[k] @ Hs[k]) ** 2 for k in range(s.depth)]
    codes, against_data = np.eye(X.shape[1]), []
    for W, H in zip(s.W, Hs):
        codes = H @ codes
        against_data.append(np.linalg.norm(X - W @ codes) ** 2)
    return np.array(layer), np.array(against_data)


def explicit_objective(sweep):
    s, panels = sweep.state, sweep.panels
    layer, against_data = explicit_errors(panels, s)
    total = (
        0.5 * sweep.calibration.weights @ (layer if sweep.loss.errors == "layer" else against_data)
    )
    for k in range(s.depth):
        for factor, M in (
            (Factor("W", k), s.W[k]),
            (Factor("H", k), panels.codes.H.astype(float) if k == 0 else s.H[k]),
        ):
            penalty = sweep.calibration.penalty(sweep.problem, factor)
            if penalty is not None:
                total += sweep.calibration.weights[k] * penalty.weight * penalty.value(M)
    return total


def check_monotone(problem, X, sweeps=4, rel=1e-12, width=11):
    panels, s, sizes = grown(X, problem, width)
    sweep = sweep_of(panels, s, problem, problem.loss, sizes, range(s.depth))
    began = previous = explicit_objective(sweep)
    scale = abs(began) + 0.5 * panels.norm2 * 1e-3
    for _ in range(sweeps):
        for block in sweep.blocks:
            sweep.update(block)
            now = explicit_objective(sweep)
            assert now <= previous + rel * scale, f"{block} went up by {(now - previous) / scale}"
            reported = sweep.objective(sweep.measure())
            assert reported == pytest.approx(now, rel=1e3 * rel, abs=1e3 * rel * scale)
            previous = now
        for k, settings in enumerate(problem.layers):
            H = panels.codes.H if k == 0 else s.H[k]
            tolerance = 1e-8 if X.dtype == np.float64 else 1e-5
            assert settings.constraint_W.violation(s.W[k]) <= tolerance
            assert settings.constraint_H.violation(H) <= tolerance
    assert previous < began
    return began, previous


RANKS = {1: [4], 2: [5, 3], 3: [5, 4, 2]}
MODELS = pytest.mark.parametrize("model", ["layer-centric", "data-centric"])
SETS = {
    "none": Unconstrained(),
    "nonnegative": Nonnegative(),
    "box": Box(0, 1),
    "signed box": Box(-2, 2),
    "simplex": Simplex(),
    "capped": CappedSimplex(),
    "GSP": GroupedSparse(0.5),
    "signed GSP": GroupedSparse(0.4, nonnegative=False),
}


@MODELS
@pytest.mark.parametrize("solver", ["fpgm", "pg"])
@pytest.mark.parametrize("name", SETS)
def test_every_block_decreases_with_a_set_on_W(model, name, solver):
    problem = build_problem([5, 3], model, constraint_W=SETS[name], solver=solver)
    check_monotone(problem, data())


@MODELS
@pytest.mark.parametrize("solver", ["fpgm", "pg"])
@pytest.mark.parametrize("name", SETS)
def test_every_block_decreases_with_a_set_on_H(model, name, solver):
    sets = [SETS[name], SETS[name]]
    if SETS[name].separable is None:  # H_1 comes in several panels
        sets[0] = Nonnegative()
    problem = build_problem([5, 3], model, constraint_H=sets, solver=solver)
    check_monotone(problem, data())


@MODELS
@pytest.mark.parametrize("depth", RANKS)
@pytest.mark.parametrize("solver", ["fpgm", "pg", "hals", "mu"])
def test_every_block_decreases_at_every_depth(model, depth, solver):
    check_monotone(build_problem(RANKS[depth], model, solver=solver), data())


@MODELS
@pytest.mark.parametrize("name", ["none", "box", "signed box"])
def test_every_block_decreases_under_hals(model, name):
    problem = build_problem(
        [5, 3], model, constraint_W=SETS[name], constraint_H=SETS[name], solver="hals"
    )
    check_monotone(problem, data())


@MODELS
def test_every_block_decreases_for_signed_data(model):
    problem = build_problem([5, 4, 2], model, constraint_W="none")
    check_monotone(problem, data(signed=True))


PENALTIES = {
    "min-volume": {"regularizer_W": MinVolume(0.5)},
    "min-volume, partner bounded": {
        "regularizer_W": MinVolume(0.5, delta=1e-3),
        "constraint_W": "nonnegative",
        "constraint_H": "simplex",
    },
    "ridge": {"regularizer_W": Ridge(0.3), "regularizer_H": Ridge(0.3)},
    "l1": {"regularizer_W": L1(0.3), "regularizer_H": L1(0.3)},
    "smooth": {"regularizer_W": Smooth(0.5)},
    "smooth on H_2": {"regularizer_H": [None, Smooth(0.5)]},
    "absolute": {"regularizer_W": Ridge(0.3, relative=False), "regularizer_H": L1(0.1, False)},
    "mixed": {
        "regularizer_W": [MinVolume(1.0), Smooth(1.0)],
        "regularizer_H": [L1(0.5), Ridge(0.5)],
        "constraint_W": [Simplex(), GroupedSparse(0.4)],
    },
}


@MODELS
@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("solver", ["fpgm", "pg", "hals", "mu"])
def test_every_block_decreases_under_a_penalty(model, name, solver):
    settings = PENALTIES[name]
    if solver in ("hals", "mu") and ("min-volume" in name or name == "mixed"):
        with pytest.raises(ValueError, match=f"Solver '{solver}' cannot handle"):
            build_problem([5, 3], model, solver=solver, **settings)
        return
    check_monotone(build_problem([5, 3], model, solver=solver, **settings), data())


@MODELS
@pytest.mark.parametrize("depth", [1, 3])
def test_every_block_decreases_under_min_volume_at_other_depths(model, depth):
    check_monotone(build_problem(RANKS[depth], model, regularizer_W=MinVolume(0.1)), data())


@MODELS
@pytest.mark.parametrize("solver", ["fpgm", "pg", "hals", "mu"])
@pytest.mark.parametrize("penalty", [None, Ridge(0.1), L1(0.1)], ids=repr)
def test_every_block_decreases_in_float32(model, solver, penalty):
    problem = build_problem([5, 3], model, regularizer_H=penalty, solver=solver)
    check_monotone(problem, data(dtype=np.float32), rel=1e-6)


@MODELS
def test_every_block_decreases_in_float32_with_sparsity(model):
    problem = build_problem([5, 3], model, constraint_W=GroupedSparse(0.5))
    check_monotone(problem, data(dtype=np.float32), rel=1e-6)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_one_layer_alone_leaves_the_others_as_they_are(layer):
    problem = build_problem([5, 4, 2], "multilayer")
    panels, s, sizes = grown(data(), problem)
    sweep = sweep_of(panels, s, problem, problem.loss, sizes, [layer])
    before = explicit_errors(panels, s)[0]
    factors = [*(W.copy() for W in s.W), panels.codes.H.copy(), *(H.copy() for H in s.H[1:])]
    for _ in range(3):
        sweep.run()
    after = explicit_errors(panels, s)[0]
    assert after[layer] < before[layer]
    now = [*s.W, panels.codes.H, *s.H[1:]]
    moved = [not np.array_equal(a, b) for a, b in zip(factors, now)]
    expected = [False] * 6
    expected[layer] = expected[3 + layer] = True
    assert moved == expected
    assert sweep.objective(sweep.measure()) == pytest.approx(0.5 * after[layer])


def test_blocks_in_the_order_of_algorithm_3():
    problem = build_problem([5, 3])
    panels, s, sizes = grown(data(), problem)
    sweep = sweep_of(panels, s, problem, problem.loss, sizes, range(2))
    assert sweep.blocks == [("H", 0), ("W", 0), ("H", 1), ("W", 1)]


def test_tri_dmf_is_not_monotone():
    """The baseline's updates share no loss: what its own first layer claims goes up."""
    problem = build_problem([6, 2], "trigeorgis")
    panels, s, sizes = grown(np.random.default_rng(5).random((M, N)), problem)
    sweep = sweep_of(panels, s, problem, problem.loss, sizes, range(2))
    values = []
    for _ in range(10):
        for block in sweep.blocks:
            sweep.update(block)
            values.append(explicit_errors(panels, s)[1][0])
    assert np.max(np.diff(values)) > 1e-3 * values[0]


# --- squared errors ------------------------------------------------------------------------------


def state_of(X, Ws, Hs, width=None):
    panels = DensePanels(X, width)
    panels.codes.set(Hs[0])
    W = Ws[0]
    coding = Coding.of(W, Nonnegative())
    products = panels.update(coding, FastProjectedGradient(), 0, 0)  # of the codes as they are
    return panels, State(list(Ws), [np.empty((W.shape[1], 0)), *Hs[1:]], products)


def factors(ranks, rng):
    widths = [N, *ranks]
    Ws = [rng.random((M, r)) for r in ranks]
    return Ws, [rng.random((r, widths[k])) for k, r in enumerate(ranks)]


@pytest.mark.parametrize("width", [None, 7])
@pytest.mark.parametrize("ranks", [[4], [5, 3], [5, 4, 2], [2, 4]], ids=str)
def test_squared_errors_of_a_poor_fit(ranks, width):
    rng = np.random.default_rng(0)
    Ws, Hs = factors(ranks, rng)
    panels, s = state_of(rng.random((M, N)), Ws, Hs, width)
    errors = measure(panels, s)
    layer, against_data = explicit_errors(panels, s)
    np.testing.assert_allclose(errors.layer, layer, rtol=1e-10)
    np.testing.assert_allclose(errors.data, against_data, rtol=1e-10)


@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6, 1e-9, 1e-12])
def test_squared_errors_of_a_nearly_exact_fit(size):
    """Traces alone lose every digit below 1e-8; the residuals must take over."""
    rng = np.random.default_rng(1)
    Ws, Hs = factors([5, 3], rng)
    Ws[0] = Ws[1] @ Hs[1] + size * rng.standard_normal((M, 5))
    X = Ws[0] @ Hs[0] + size * rng.standard_normal((M, N))
    panels, s = state_of(X, Ws, Hs, 7)
    errors = measure(panels, s)
    layer, against_data = explicit_errors(panels, s)
    np.testing.assert_allclose(errors.layer, layer, rtol=1e-3)
    np.testing.assert_allclose(errors.data, against_data, rtol=1e-3)
    if size < 1e-8:  # and the naive formula would indeed have failed
        B = s.W[0]
        naive = 2 * s.data.terms[0].value(B)
        assert abs(naive - layer[0]) > 0.1 * layer[0]


@pytest.mark.parametrize("size", [1e-1, 1e-2, 1e-3, 1e-5])
def test_squared_errors_in_float32(size):
    rng = np.random.default_rng(2)
    Ws, Hs = factors([4], rng)
    Ws[0] = Ws[0].astype(np.float32).astype(float)
    Hs[0] = Hs[0].astype(np.float32).astype(float)
    X = (Ws[0] @ Hs[0] + size * rng.standard_normal((M, N))).astype(np.float32)
    panels, s = state_of(X, Ws, Hs)
    exact = explicit_errors(panels, s)[0]
    np.testing.assert_allclose(measure(panels, s).layer, exact, rtol=1e-2)


def test_squared_errors_of_an_exact_fit_are_not_negative():
    rng = np.random.default_rng(3)
    Ws, Hs = factors([4], rng)
    panels, s = state_of(Ws[0] @ Hs[0], Ws, Hs)
    errors = measure(panels, s)
    assert 0 <= errors.data[0] <= 1e-28 * panels.norm2


# --- weights and strengths -----------------------------------------------------------------------


def strength(sweep, factor):
    """What the penalty on a factor is multiplied by."""
    return sweep.calibration.strength(sweep.problem, factor)


def strengths(sweep):
    return [strength(sweep, Factor(kind, k)) for kind in "WH" for k in range(sweep.state.depth)]


def test_strengths_of_section_6():
    problem = build_problem(
        [5, 3],
        LayerCentric(10),
        regularizer_W=[MinVolume(0.2, "paper"), MinVolume(0.4, "paper")],
        regularizer_H=L1(1),
    )
    panels, s, sizes = grown(data(), problem)
    sweep = sweep_of(panels, s, problem, problem.loss, sizes, range(2))
    err = 0.5 * explicit_errors(panels, s)[0]
    lam = np.array([1, 10 * err[0] / err[1]])
    np.testing.assert_allclose(sweep.calibration.weights, lam, rtol=1e-9)
    for k, (weight, M) in enumerate(zip((0.2, 0.4), s.W)):
        logdet = np.log(np.linalg.det(M.T @ M + 0.1 * np.eye(M.shape[1])))
        kappa = weight * err[k] / abs(logdet)
        assert strength(sweep, Factor("W", k)) == pytest.approx(lam[k] * kappa)
    assert strength(sweep, Factor("H", 0)) == pytest.approx(err[0] / panels.codes.H.sum())
    assert strength(sweep, Factor("H", 1)) == pytest.approx(lam[1] * err[1] / s.H[1].sum())


def test_weights_stay_as_they_were_at_the_start():
    problem = build_problem([5, 3], regularizer_W=MinVolume(0.1))
    panels, s, sizes = grown(data(), problem)
    sweep = sweep_of(panels, s, problem, problem.loss, sizes, range(2))
    before = [*sweep.calibration.weights, *strengths(sweep)]
    assert before[2] > 0
    sweep.run()
    assert [*sweep.calibration.weights, *strengths(sweep)] == before


def test_a_perfect_start_has_finite_weights():
    rng = np.random.default_rng(4)
    Ws, Hs = factors([5, 3], rng)
    Ws[0] = Ws[1] @ Hs[1]
    panels, s = state_of(Ws[0] @ Hs[0], Ws, Hs)
    problem = build_problem([5, 3], regularizer_W=Ridge(0.1))
    sizes = [panels.norm2, np.sum(Ws[0] ** 2)]
    sweep = sweep_of(panels, s, problem, problem.loss, sizes, range(2))
    assert np.isfinite(sweep.calibration.weights).all()
    assert np.isfinite(strengths(sweep)).all()
    sweep.run()
    assert all(np.isfinite(W).all() for W in s.W)
