"""The identity every loss must meet: value(M + D) - value(M) == block.change(M, D)."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf import (
    L1,
    DataCentric,
    LayerCentric,
    MinVolume,
    Multilayer,
    Nonnegative,
    Quadratic,
    Regularizer,
    Ridge,
    Solver,
    Trigeorgis,
)
from deepmf.core.state import State
from deepmf.data.panels import Coding, DensePanels
from deepmf.data.panels.base import squared_answer
from deepmf.fitting.calibration import joint
from deepmf.fitting.errors import measure
from deepmf.fitting.problem import build_problem
from deepmf.fitting.sweep import Sweep
from deepmf.losses import Factor, H

CASES = {
    "depth 1": (6, 9, [4]),
    "depth 2": (7, 12, [5, 3]),
    "depth 3, n < m": (11, 6, [5, 4, 2]),
    "increasing ranks": (5, 8, [2, 4, 3]),
    "depth 4": (6, 10, [5, 4, 3, 2]),
    "rank 1": (4, 5, [1, 1]),
}
LOSSES = [LayerCentric(), DataCentric(), Multilayer(), Trigeorgis()]


class Model:
    """X, all factors and weights, dense."""

    def __init__(self, case, loss, seed=0, signed=True):
        m, n, ranks = CASES[case]
        rng = np.random.default_rng(seed)
        draw = rng.standard_normal if signed else rng.random
        widths = [n, *ranks]
        self.X = draw((m, n))
        self.W = [draw((m, r)) for r in ranks]
        self.H = [draw((r, widths[k])) for k, r in enumerate(ranks)]
        self.w = np.concatenate([[1.0], rng.uniform(0.3, 4.0, len(ranks) - 1)])
        if isinstance(loss, Trigeorgis):  # has no weights
            self.w = loss.weights(self.w, self.w)
        self.depth = len(ranks)

    def state(self):
        H1 = self.H[0]
        answer = squared_answer(
            self.X @ H1.T, H1 @ H1.T, float(np.linalg.norm(self.X) ** 2), self.depth, 0.0
        )
        return State(list(self.W), [np.empty((len(H1), 0)), *self.H[1:]], answer)

    def replaced(self, kind, layer, M):
        """(Ws, Hs) with one factor changed."""
        W, H = list(self.W), list(self.H)
        (W if kind == "W" else H)[layer] = M
        return W, H

    def factor(self, kind, layer):
        return (self.W if kind == "W" else self.H)[layer]


# --- brute force: the losses written out, nothing of the library ---------------------------------


def layer_residuals(X, W, H):
    above = [X, *W]
    return [above[k] - W[k] @ H[k] for k in range(len(W))]


def data_residuals(X, W, H):
    out, codes = [], np.eye(X.shape[1])
    for Wk, Hk in zip(W, H):
        codes = Hk @ codes
        out.append(X - Wk @ codes)
    return out


def layer_norms2(X, W, H):
    return np.array([np.linalg.norm(R) ** 2 for R in layer_residuals(X, W, H)])


def data_norms2(X, W, H):
    return np.array([np.linalg.norm(R) ** 2 for R in data_residuals(X, W, H)])


def dense_loss(loss, model, kind, layer, W, H):
    """The function that the block's update is meant to decrease."""
    X, w = model.X, model.w
    if isinstance(loss, LayerCentric):
        return 0.5 * np.sum(w * layer_norms2(X, W, H))
    if isinstance(loss, Multilayer):
        return 0.5 * w[layer] * layer_norms2(X, W, H)[layer]
    if isinstance(loss, Trigeorgis):
        return trigeorgis_table_1(X, kind, layer, W, H)
    return 0.5 * np.sum(w * data_norms2(X, W, H))


def trigeorgis_table_1(X, kind, layer, W, H):
    """Each factor's own loss (Table 1 of the paper)."""
    D = np.eye(X.shape[1])
    for Hk in H[:layer]:
        D = Hk @ D
    if kind == "W":
        return 0.5 * np.linalg.norm(X - W[layer] @ H[layer] @ D) ** 2
    last = layer == len(W) - 1
    A = W[layer] if last else W[layer + 1] @ H[layer + 1]
    return 0.5 * np.linalg.norm(X - A @ H[layer] @ D) ** 2


def block(loss, model, kind, layer):
    """The library's quadratic; H_1's comes as (A, G) and meets X only here."""
    s, blocks = model.state(), loss.model(model.depth, model.w)
    if (kind, layer) != H(0):
        return blocks.block(s, Factor(kind, layer))
    coding = Coding(blocks.bases(s), Nonnegative())
    return Quadratic.of(A=coding.A, C=coding.G.T @ model.X)


BLOCKS = [
    pytest.param(loss, case, kind, layer, id=f"{loss.name}-{case}-{kind}{layer + 1}")
    for loss in LOSSES
    for case, (_, _, ranks) in CASES.items()
    for layer in range(len(ranks))
    for kind in "HW"
]


@pytest.mark.parametrize(("loss", "case", "kind", "layer"), BLOCKS)
def test_change_of_the_loss_is_the_change_of_the_block(loss, case, kind, layer):
    model = Model(case, loss)
    M = model.factor(kind, layer)
    q = block(loss, model, kind, layer)
    for seed, size in enumerate((1.0, 10.0, 1e-3)):
        D = size * np.random.default_rng(seed).standard_normal(M.shape)
        before = dense_loss(loss, model, kind, layer, model.W, model.H)
        after = dense_loss(loss, model, kind, layer, *model.replaced(kind, layer, M + D))
        scale = max(abs(before), abs(after))
        assert q.change(M, D) == pytest.approx(after - before, rel=1e-9, abs=1e-12 * scale)


@pytest.mark.parametrize(("loss", "case", "kind", "layer"), BLOCKS)
def test_lipschitz_constant_of_a_block_is_exact(loss, case, kind, layer):
    model = Model(case, loss, seed=1)
    q = block(loss, model, kind, layer)
    M = model.factor(kind, layer)
    basis = np.eye(M.size).reshape(M.size, *M.shape)
    hessian = np.array([q.hessian(E).ravel() for E in basis])
    assert q.lipschitz() == pytest.approx(np.linalg.eigvalsh(hessian)[-1], rel=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_value_from_squared_errors(loss, case):
    model = Model(case, loss, seed=2)
    layer, data = (f(model.X, model.W, model.H) for f in (layer_norms2, data_norms2))
    if isinstance(loss, LayerCentric):
        expected = 0.5 * model.w @ layer
    elif isinstance(loss, Multilayer):  # the weights select the layer being fitted
        model.w = np.eye(model.depth)[-1]
        expected = 0.5 * layer[-1]
    elif isinstance(loss, Trigeorgis):
        expected = 0.5 * data[-1]
    else:
        expected = 0.5 * model.w @ data
    panels = DensePanels(model.X)
    panels.codes.set(model.H[0])
    terms = loss.terms(model.depth, model.w)
    values = measure(panels, model.state(), terms).terms
    value = sum(t.weight * v for t, v in zip(terms, values))
    assert value == pytest.approx(expected, rel=1e-12)


# --- weights -------------------------------------------------------------------------------------


def test_layer_centric_weights_are_relative_to_the_starting_errors():
    errors, sizes = np.array([6.0, 2.0, 0.5]), np.array([10.0, 10.0, 10.0])
    np.testing.assert_allclose(LayerCentric(10).weights(errors, sizes), [1, 30, 120])
    np.testing.assert_allclose(LayerCentric([10, 2]).weights(errors, sizes), [1, 30, 24])
    np.testing.assert_allclose(LayerCentric([10, 2], False).weights(errors, sizes), [1, 10, 2])


def test_weights_of_the_other_losses():
    errors, sizes = np.array([6.0, 2.0, 0.5]), np.ones(3)
    np.testing.assert_array_equal(DataCentric([3, 0]).weights(errors, sizes), [1, 3, 0])
    np.testing.assert_array_equal(DataCentric(0.5).weights(errors, sizes), [1, 0.5, 0.5])
    np.testing.assert_array_equal(Multilayer().weights(errors, sizes), [1, 1, 1])
    np.testing.assert_array_equal(Trigeorgis().weights(errors, sizes), [1, 1, 1])
    np.testing.assert_array_equal(DataCentric(7.0).weights(errors[:1], sizes[:1]), [1])


@pytest.mark.parametrize("errors", [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
def test_a_perfect_start_gives_finite_positive_weights(errors):
    w = LayerCentric().weights(np.array(errors), np.array([4.0, 2.0]))
    assert np.isfinite(w).all()
    assert (w > 0).all()


@pytest.mark.parametrize("loss", [LayerCentric([1, 2, 3]), DataCentric([1, 2, 3])])
def test_a_wrong_number_of_weights_is_named(loss):
    with pytest.raises(ValueError, match="3 values for 3 layers"):
        loss.weights(np.ones(3), np.ones(3))


@pytest.mark.parametrize("bad", [-1, np.nan, np.inf, [1, -2]])
@pytest.mark.parametrize("loss", [LayerCentric, DataCentric])
def test_a_bad_weight_is_refused(loss, bad):
    with pytest.raises(ValueError, match=r"lam|mu"):
        loss(bad).weights(np.ones(3), np.ones(3))


# --- regularized blocks, through the sweep -------------------------------------------------------


class Spy(Solver):
    """Keeps the quadratics it is given and moves nothing."""

    name = "spy"

    def __init__(self):
        self.seen = []

    def solve(self, q, constraint, M, max_iter, tol):
        self.seen.append(q)
        return M


class Smooth(Regularizer):
    """1/2 ||D M||^2 with D the first difference, of Regularizer's docstring."""

    def value(self, M):
        return 0.5 * np.sum(np.diff(M, axis=0) ** 2)

    def majorize(self, M):
        D = np.diff(np.eye(len(M)), axis=0)
        return Quadratic.of(A=D.T @ D)


def penalty_written_out(regularizer, M, delta):
    if isinstance(regularizer, MinVolume):
        return 0.5 * np.log(np.linalg.det(M.T @ M + delta * np.eye(M.shape[1])))
    if isinstance(regularizer, Ridge):
        return 0.5 * np.linalg.norm(M) ** 2
    if isinstance(regularizer, L1):
        return np.abs(M).sum()
    return 0.5 * sum(np.linalg.norm(a - b) ** 2 for a, b in zip(M[1:], M[:-1]))


REGULARIZED = [
    pytest.param(loss, on_W, on_H, kind, layer, id=f"{loss.name}-{name}-{kind}{layer + 1}")
    for loss in LOSSES
    for name, on_W, on_H in [
        ("min-volume, ridge", MinVolume(0.3), Ridge(0.2)),
        ("min-volume of the paper", MinVolume(0.3, "paper"), Ridge(0.2)),
        ("min-volume with a weight of its own", MinVolume(0.3, "absolute", 0.02), None),
        ("l1", L1(0.3, relative=False), L1(0.1)),
        ("smooth", Smooth(0.5), None),
    ]
    for layer in range(3)
    for kind in "HW"
]


def measured(regularizer, M, R):
    """The weight and delta of a penalty on M, of a layer with the residual R, written out."""
    if not regularizer.relative:
        return regularizer.weight, getattr(regularizer, "delta", None)
    error = 0.5 * np.linalg.norm(R) ** 2
    if not isinstance(regularizer, MinVolume):
        return regularizer.weight * error / penalty_written_out(regularizer, M, None), None
    if regularizer.scale == "paper":
        logdet = np.log(np.linalg.det(M.T @ M + 0.1 * np.eye(M.shape[1])))
        return regularizer.weight * error / abs(logdet), 0.1
    squares = np.linalg.svd(R, compute_uv=False) ** 2
    dimension = squares.sum() ** 2 / np.sum(squares**2)
    delta = 0.01 * np.mean(np.linalg.norm(M, axis=0) ** 2)
    return regularizer.weight * np.linalg.norm(R) ** 2 / dimension, delta


@pytest.mark.parametrize(("loss", "on_W", "on_H", "kind", "layer"), REGULARIZED)
def test_regularized_block_lies_above_and_touches(loss, on_W, on_H, kind, layer):
    model = Model("depth 3, n < m", loss, seed=3, signed=False)
    for W in model.W:
        W /= W.sum(axis=0)
    spy = Spy()
    set_W = "simplex" if isinstance(on_W, MinVolume) else "nonnegative"
    problem = build_problem(
        [5, 4, 2], loss, constraint_W=set_W, regularizer_W=on_W, regularizer_H=on_H, solver=spy
    )
    panels = DensePanels(model.X, 4)
    panels.codes.set(model.H[0])
    s = model.state()
    s.data = s.data._replace(penalty=0.0 if on_H is None else on_H.value(model.H[0]))
    calibration = joint(panels, s, problem, loss, [1.0] * 4, [])
    sweep = Sweep(panels, s, problem, loss, calibration, range(3), 10, 0.01)
    model.w = calibration.weights

    residuals = layer_residuals if loss.errors == "layer" else data_residuals
    R = residuals(model.X, model.W, model.H)[layer]
    regularizer = on_W if kind == "W" else on_H
    strength, delta = 0.0, None
    if regularizer is not None:
        weight, delta = measured(regularizer, model.factor(kind, layer), R)
        strength = calibration.weights[layer] * weight

    def objective(Z):
        W, H = model.replaced(kind, layer, Z)
        total = dense_loss(loss, model, kind, layer, W, H)
        return total + (strength * penalty_written_out(regularizer, Z, delta) if strength else 0.0)

    sweep.update(Factor(kind, layer))
    M = model.factor(kind, layer)
    # H_1 comes panel by panel: 4 columns, then the other 2
    pieces = [slice(0, 4), slice(4, 6)] if (kind, layer) == ("H", 0) else [slice(None)]
    assert len(spy.seen) == len(pieces)

    def change(D):
        return sum(q.change(M[:, c], D[:, c]) for q, c in zip(spy.seen, pieces))

    rng = np.random.default_rng(4)
    start = objective(M)
    scale = abs(start)
    for _ in range(20):
        Z = rng.random(M.shape) * 10 ** rng.uniform(-2, 1)
        if set_W == "simplex" and kind == "W":
            Z /= Z.sum(axis=0)
        actual = objective(Z) - start
        assert change(Z - M) >= actual - 1e-10 * (abs(actual) + scale)
        if not isinstance(regularizer, MinVolume):  # these are their own majorizers
            assert change(Z - M) == pytest.approx(actual, rel=1e-8, abs=1e-10 * scale)
        h = 1e-5
        E = Z - M
        slope = (objective(M + h * E) - objective(M - h * E)) / (2 * h)
        assert (change(h * E) - change(-h * E)) / (2 * h) == pytest.approx(
            slope, rel=1e-4, abs=1e-6 * scale
        )
