"""Depth over codes: one block of all codes, one pass over X a sweep, and downhill."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepmf import (
    L1,
    DataCentric,
    Factorization,
    Fixed,
    GroupedSparse,
    LayerCentric,
    OneParent,
    Ridge,
    factorize,
)
from deepmf.core.state import State
from deepmf.core.terms import Factor
from deepmf.data.on_disk import OnDisk
from deepmf.data.validation import as_matrix
from deepmf.fitting.calibration import joint
from deepmf.fitting.problem import build_problem
from deepmf.fitting.sweep import Sweep

RNG = np.random.default_rng(0)
X = RNG.random((10, 4)) @ RNG.random((4, 60)) + 0.1 * RNG.random((10, 60))
V = np.where(RNG.random(X.shape) < 0.3, 0.0, RNG.uniform(0.2, 1.0, X.shape))
V.flat[np.argmax(V)] = 1.0
RANKS = [5, 3, 2]
MODELS = [LayerCentric(0.7), DataCentric([0.5, 2.0])]
models = pytest.mark.parametrize("model", MODELS, ids=repr)


def tensor(A):
    return pytest.importorskip("torch").from_numpy(np.ascontiguousarray(A))


KINDS = {
    "dense": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "float32": lambda A: A.astype(np.float32),
    "sparse": sparse.csc_array,
    "on disk": OnDisk,
    "tensor": tensor,
}


def sweep_of(matrix, problem, seed=1):
    """A sweep of all layers from random factors."""
    rng = np.random.default_rng(seed)
    (m, n), ranks = X.shape, problem.ranks
    W = [
        layer.constraint_W.project(rng.random(shape))
        for layer, shape in zip(problem.layers, zip([m, *ranks], ranks))
    ]
    H = [layer.constraint_H.project(rng.random((layer.rank, n))) for layer in problem.layers]
    scales = [10 ** rng.uniform(-0.5, 0.5, r) for r in ranks[:-1]]
    s = State(W, [np.empty((r, 0)) for r in ranks], scales=scales)
    panels = matrix.panels(17)
    fixed = joint_of_ones(problem)
    sweep = Sweep(panels, s, problem, problem.loss, fixed, range(s.depth), 10, 0.01)
    panels.begin(sweep.coding())
    panels.codes.set(panels_kind(panels, np.vstack(H)))
    s.data = panels.update(sweep.coding(), problem.solver, 0, 1.0)
    sizes = [panels.norm2, *(np.sum((M / c[:, None]) ** 2) for M, c in zip(H, scales))]
    calibration = joint(panels, s, problem, problem.loss, sizes, [])
    return Sweep(panels, s, problem, problem.loss, calibration, range(s.depth), 10, 0.01)


def joint_of_ones(problem):
    from deepmf.fitting.calibration import UNPENALIZED, Calibration

    depth = len(problem.layers)
    return Calibration(np.ones(depth), [UNPENALIZED] * depth)


def panels_kind(panels, H):
    return tensor(H) if type(panels.codes.H).__module__.startswith("torch") else H


def explicit(sweep, weights=None):
    """The objective, written out from dense factors."""
    s, c, depth = sweep.state, sweep.calibration, sweep.state.depth
    H = np.asarray(sweep.panels.codes.H, dtype=float)
    H = np.split(H, np.cumsum([W.shape[1] for W in s.W])[:-1])
    if sweep.loss.errors == "data":
        B = [np.linalg.multi_dot([*s.W[: k + 1], H[k]]) for k in range(1, depth)]
        rests = [X - s.W[0] @ H[0], *(X - M for M in B)]
        rests = [np.sqrt(1 if weights is None else weights) * R for R in rests]
    else:
        first = X - s.W[0] @ H[0]
        rests = [first if weights is None else np.sqrt(weights) * first]
        rests += [(H[k - 1] - s.W[k] @ H[k]) / s.scales[k - 1][:, None] for k in range(1, depth)]
    total = 0.5 * sum(w * np.sum(R**2) for w, R in zip(c.weights, rests))
    for k in range(depth):
        for kind, M in (("W", s.W[k]), ("H", H[k])):
            penalty = c.penalty(sweep.problem, Factor(kind, k))
            if penalty is not None:
                total += c.weights[k] * penalty.weight * penalty.value(M)
    return total


SETTINGS = {
    "plain": {},
    "simplex": {"constraint_W": "simplex"},
    "signed": {"constraint_W": "none"},
    "bounded codes": {"constraint_H": ["capped-simplex", "box", None]},
    "penalties": {
        "regularizer_W": [Ridge(0.1), L1(0.2), None],
        "regularizer_H": [L1(0.3), Ridge(0.2), L1(0.1)],
    },
    "hals": {"solver": "hals"},
    "mu": {"solver": "mu"},
}


def check_downhill(sweep, rel, weights=None):
    began = previous = explicit(sweep, weights)
    for _ in range(5):
        for block in sweep.blocks:
            sweep.update(block)
            now = explicit(sweep, weights)
            assert now <= previous + rel * began, f"{block} went up"
            assert sweep.objective(sweep.measure()) == pytest.approx(now, rel=1e3 * rel)
            previous = now
    assert previous < 0.9 * began


@models
@pytest.mark.parametrize("name", SETTINGS)
def test_every_block_decreases(model, name):
    problem = build_problem(RANKS, model, hierarchy="codes", **SETTINGS[name])
    check_downhill(sweep_of(as_matrix(X), problem), 1e-12)


@models
@pytest.mark.parametrize("kind", KINDS)
def test_every_block_decreases_for_every_kind_of_data(model, kind):
    problem = build_problem(RANKS, model, hierarchy="codes", regularizer_H=L1(0.1))
    sweep = sweep_of(as_matrix(KINDS[kind](X)), problem)
    check_downhill(sweep, 1e-12 if kind != "float32" else 1e-6)


@models
def test_every_block_decreases_with_weights(model):
    problem = build_problem(RANKS, model, hierarchy="codes")
    check_downhill(sweep_of(as_matrix(X, weights=V), problem), 1e-12, V)


@models
@pytest.mark.parametrize("kind", ["dense", "sparse", "on disk"])
def test_a_sweep_is_one_pass(model, kind, monkeypatch):
    """All codes in one update; errors follow from what it sends back."""
    problem = build_problem(RANKS, model, hierarchy="codes")
    sweep = sweep_of(as_matrix(KINDS[kind](X)), problem)
    passes = []
    for name in ("update", "residuals2", "values", "residuals"):
        own = getattr(sweep.panels, name)
        monkeypatch.setattr(
            sweep.panels, name, lambda *a, own=own, name=name: passes.append(name) or own(*a)
        )
    for _ in range(3):
        sweep.run()
        sweep.measure()
    assert passes == ["update"] * 3


FITS = [{"model": m} for m in ("layer-centric", "data-centric", "multilayer", "trigeorgis")]
SHORT = {"hierarchy": "codes", "max_iter": 5, "tol": 0, "random_state": 0}


@pytest.mark.parametrize("settings", FITS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_fits_do_not_depend_on_the_kind_of_data(settings, kind):
    settings = {**SHORT, **settings, "init": "nndsvd"}  # k-means jumps where there are no clusters
    f = factorize(X, RANKS, **settings)
    g = factorize(KINDS[kind](X), RANKS, **settings)
    rtol = 1e-7 if kind != "float32" else 1e-3
    np.testing.assert_allclose(g.history.objective, f.history.objective, rtol=rtol)
    for k in (1, 2, 3):
        np.testing.assert_allclose(
            np.asarray(g.reconstruct(k)), f.reconstruct(k), atol=100 * rtol * X.max()
        )


@pytest.mark.parametrize("settings", FITS[:2], ids=str)
def test_weights_of_one_are_the_plain_fit(settings):
    f = factorize(X, RANKS, **SHORT, **settings, init="nndsvd")
    g = factorize(X, RANKS, **SHORT, **settings, init="nndsvd", weights=np.ones(X.shape))
    np.testing.assert_allclose(g.history.objective, f.history.objective, rtol=1e-8)


@pytest.mark.parametrize("settings", FITS[:2], ids=str)
@pytest.mark.parametrize("penalty", [None, L1(0.1), Ridge(0.1)], ids=repr)
def test_the_objective_never_rises(settings, penalty):
    f = factorize(X, RANKS, **{**SHORT, "max_iter": 40}, **settings, regularizer_H=penalty)
    assert (np.diff(f.history.objective) <= 1e-12 * f.history.objective[0]).all()
    assert f.history.objective[-1] < f.history.objective[0]


def test_shapes_and_reconstructions():
    f = factorize(X, RANKS, **SHORT)
    assert [W.shape for W in f.W] == [(10, 5), (5, 3), (3, 2)]
    assert [H.shape for H in f.H] == [(5, 60), (3, 60), (2, 60)]
    for k in (1, 2, 3):
        basis = f.W[0]
        for Z in f.W[1:k]:
            basis = basis @ Z
        np.testing.assert_allclose(f.basis(k), basis)
        np.testing.assert_allclose(f.reconstruct(k), basis @ f.H[k - 1])
        error = np.sum((X - f.reconstruct(k)) ** 2) / np.sum(X**2)
        assert f.history.data_errors[-1, k - 1] == pytest.approx(error)


def test_one_layer_is_the_same_either_way():
    f, g = (factorize(X, [4], hierarchy=h, random_state=0) for h in ("components", "codes"))
    np.testing.assert_array_equal(f.W[0], g.W[0])
    np.testing.assert_array_equal(f.H[0], g.H[0])


PENALTIES = [[L1(0.3), None], [None, L1(0.3)], [Ridge(0.3), Ridge(3.0)]]


def objective(f, codes):
    """The objective of two layers over codes, written out."""
    H_1, H_2 = codes
    total = 0.5 * np.sum((X - f.W[0] @ H_1) ** 2)
    if f.problem.loss.errors == "data":
        total += 0.5 * f.weights[1] * np.sum((X - f.W[0] @ f.W[1] @ H_2) ** 2)
    else:
        total += 0.5 * f.weights[1] * np.sum(((H_1 - f.W[1] @ H_2) / f.scales[0][:, None]) ** 2)
    for H, layer, strength in zip(codes, f.problem.layers, [f.strength, *f.deeper_strengths]):
        total += strength * layer.regularizer_H.value(H) if layer.regularizer_H else 0.0
    return total


@pytest.mark.parametrize("settings", FITS[:2], ids=str)
@pytest.mark.parametrize("penalties", PENALTIES, ids=repr)
@pytest.mark.parametrize("augment", [None, 3])
def test_each_layer_has_its_own_penalty_on_codes(settings, penalties, augment, tmp_path):
    """It acts in the fit, and in the codes of new samples, which reach a lower objective."""
    f = factorize(
        X,
        [4, 2],
        **{**SHORT, "max_iter": 40},
        **settings,
        regularizer_H=penalties,
        constraint_W="simplex",
        augment=augment,
    )
    strengths = [f.strength, *f.deeper_strengths]
    assert [s > 0 for s in strengths] == [p is not None for p in penalties]
    reached = f.history.objective[-1]
    assert objective(f, f.H) == pytest.approx(reached, rel=1e-6)
    for g in (f, Factorization.load(f.save(tmp_path / "f.npz"))):
        codes = [g.encode(X, layer) for layer in (1, 2)]
        assert 0.9 * reached < objective(f, codes) <= reached * (1 + 1e-9)


@pytest.mark.parametrize("penalties", [None, *PENALTIES], ids=repr)
@pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer"])
def test_samples_of_the_fit_are_coded_as_in_the_fit(model, penalties):
    f = factorize(
        X,
        [4, 2],
        model=model,
        hierarchy="codes",
        regularizer_H=penalties,
        constraint_W="simplex",
        tol=1e-8,
        max_iter=5000,
        inner_iter=100,
        inner_tol=1e-6,
        random_state=0,
    )
    for layer in (1, 2):
        codes = f.codes(layer)
        np.testing.assert_allclose(f.encode(X, layer), codes, atol=2e-3 * codes.max())


@pytest.mark.filterwarnings("ignore:Layer 2 leaves")
@pytest.mark.parametrize("extrapolate", [True, False])
@pytest.mark.parametrize("model", ["layer-centric", "data-centric"])
@pytest.mark.parametrize(
    "sets",
    [
        {"constraint_H": [None, "box"]},
        {"constraint_H": [None, "simplex"]},
        {"constraint_W": [None, "box"]},
        {"constraint_W": [None, Fixed(np.full((5, 1), 0.4))]},
    ],
    ids=repr,
)
def test_deeper_layers_end_in_their_sets_and_below_where_they_began(sets, model, extrapolate):
    f = factorize(
        X, [5, 2], hierarchy="codes", model=model, extrapolate=extrapolate, random_state=0, **sets
    )
    for k, layer in enumerate(f.problem.layers):
        assert layer.constraint_W.violation(np.asarray(f.W[k])) < 1e-9
        assert layer.constraint_H.violation(np.asarray(f.H[k])) < 1e-9
    assert f.stop_reason == "tol"
    assert f.history.objective[-1] < f.history.objective[0]


@pytest.mark.filterwarnings("ignore:Layer 2 leaves")
@pytest.mark.parametrize("augment", [None, 0])
@pytest.mark.parametrize(
    "sets",
    [
        {},
        {"constraint_H": [None, "box", "box"]},
        {"constraint_H": [None, "simplex", None]},
        {"constraint_H": [None, OneParent(unit=True), OneParent()]},
        {"constraint_H": [None, Fixed(np.full((1, 60), 0.4)), None]},
        {"constraint_W": [None, "box", "capped-simplex"]},
        {"constraint_W": [None, Fixed(np.full((5, 1), 0.4)), GroupedSparse(0.5)]},
        {"constraint_W": [None, None, "box"], "constraint_H": [None, "box", None]},
    ],
    ids=repr,
)
def test_layers_fitted_one_by_one_are_in_their_sets(sets, augment):
    settings = {"hierarchy": "codes", "model": "multilayer", "random_state": 0, "max_iter": 40}
    f = factorize(X, RANKS, augment=augment, tol=0, **settings, **sets)
    for k, layer in enumerate(f.problem.layers):
        assert layer.constraint_W.violation(np.asarray(f.W[k])) < 1e-9
        assert layer.constraint_H.violation(np.asarray(f.H[k])) < 1e-9
    product = f.W[0] @ f.W[1] @ f.W[2] @ f.H[2]
    error = np.sum((X - product) ** 2) / np.sum(X**2)
    assert error == pytest.approx(f.history.data_errors[-1, 2], rel=1e-6)
