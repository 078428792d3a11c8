"""Divergences of PyTorch tensors: updates, answers and fits are those of arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from deepmf import L1, Box, CappedSimplex, Nonnegative, Simplex, factorize
from deepmf.constraints.stacked import stacked
from deepmf.core.datafit import SQUARED, Datafit
from deepmf.core.divergence import BetaDivergence
from deepmf.core.terms import DataTerm
from deepmf.data.on_disk import OnDisk
from deepmf.data.panels import Coding, DensePanels, as_panels
from deepmf.data.panels.counts import CountProducts
from deepmf.losses import DataCentric
from deepmf.regularizers import Regularizer
from deepmf.solvers import FastProjectedGradient

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from deepmf.data.gpu import divergences  # noqa: E402

M, N, RANK = 12, 40, 3
BETAS = [0, 0.5, 1, 1.5]
QUICK = {"max_iter": 8, "tol": 0, "random_state": 0, "init": "random"}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def same_steps(monkeypatch):
    """Arrays take the steps of `Majorized`, as tensors do, and not those of the compiled pass."""
    monkeypatch.setattr(CountProducts, "can", staticmethod(lambda coding: False))


def drawn(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).gamma(0.7, 1.0, shape) + 1e-3


def counts(more=1.0):
    rng = np.random.default_rng(0)
    return rng.poisson(4 * rng.gamma(0.5, 1, (M, 4)) @ rng.gamma(0.5, 1, (4, N))) + more


def both(X, width=None):
    return as_panels(torch.from_numpy(X), width), DensePanels(X, width)


SETS = [
    Nonnegative(), Simplex(), CappedSimplex(), Box(0.01, 0.5),
    stacked([Nonnegative(), Simplex()], [1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("beta", [0, 1, 1.5])
@pytest.mark.parametrize("penalty", [None, L1()], ids=repr)
@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_updates_and_answers(constraint, penalty, beta):
    """Of one term and of several, squared errors and a coupling of codes among them."""
    D, B = BetaDivergence(beta), drawn(M, RANK)
    several = (DataTerm(1.0, B, D), DataTerm(0.3, drawn(M, RANK, seed=1), SQUARED),
               DataTerm(0.0, B, D))  # fmt: skip
    L = drawn(RANK, 2, seed=2)
    for terms, coupling in (((several[0],), None), ((several[0],), L @ L.T), (several, None)):
        coding = Coding(terms, constraint, penalty, 0.3, coupling=coupling)
        p, q = both(counts(), 7)
        for panels in (p, q):
            panels.begin(coding, positive=True)
        np.testing.assert_allclose(p.codes.H, q.codes.H, rtol=1e-9)
        for panels in (p, q):
            panels.codes.set(constraint.project(np.maximum(drawn(RANK, N, seed=3), 0.05)))
        a, b = (panels.update(coding, FastProjectedGradient(), 5, 0.1) for panels in (p, q))
        np.testing.assert_allclose(p.codes.H, q.codes.H, rtol=1e-8, atol=1e-12)
        assert a.exact == b.exact
        assert a.penalty == pytest.approx(b.penalty, rel=1e-9)
        np.testing.assert_allclose(a.gram, b.gram, rtol=1e-9)
        Z = B * np.random.default_rng(3).uniform(0.5, 2, B.shape)
        for ours, theirs in zip(a.terms, b.terms, strict=True):
            assert ours.change(B, Z - B) == pytest.approx(theirs.change(B, Z - B), rel=1e-8)
        np.testing.assert_allclose(p.values(terms), q.values(terms), rtol=1e-9)


@pytest.mark.parametrize("beta", BETAS)
def test_values_and_sizes(beta):
    X, D = counts() / 3, BetaDivergence(beta)
    p, q = both(X, 9)
    assert p.size(D) == pytest.approx(D.size(X), rel=1e-12)
    for panels in (p, q):
        panels.codes.set(drawn(RANK, N))
    terms = [DataTerm(1.0, drawn(M, RANK), D), DataTerm(1.0, drawn(M, RANK), SQUARED)]
    np.testing.assert_allclose(p.values(terms), q.values(terms), rtol=1e-12)


def test_steps_from_ahead_can_be_taken_back():
    coding = Coding((DataTerm(1.0, drawn(M, RANK), BetaDivergence(1)),), Nonnegative())
    seen = []
    for p in both(counts(), 7):
        p.codes.set(drawn(RANK, N))
        codes = []
        for momentum in (0.0, 0.7, None, 0.9, "undo", 0.4):
            if momentum == "undo":
                p.codes.undo()
            else:
                p.update(replace(coding, ahead=momentum), FastProjectedGradient(), 2, 0.0)
            codes.append(np.asarray(p.codes.H).copy())
        seen.append(codes)
    np.testing.assert_allclose(*seen, rtol=1e-10)


@pytest.mark.parametrize("beta_loss", ["kullback-leibler", "itakura-saito", 1.5])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model": "data-centric", "panel_size": 7},
        {"hierarchy": "codes", "model": "multilayer"},
        {"regularizer_H": "ridge"},
        {"constraint_H": ["simplex", None]},
    ],
    ids=str,
)
def test_fits(beta_loss, settings):
    X = counts()
    f, g = (
        factorize(A, [4, 2], beta_loss=beta_loss, **QUICK, **settings)
        for A in (torch.from_numpy(X), X)
    )
    assert isinstance(f.H[0], torch.Tensor)
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=1e-8)
    np.testing.assert_allclose(f.H[0], g.H[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["float32", "sent", "on disk"])
def test_other_tensors(kind, tmp_path):
    X, settings = counts(0.0), {"beta_loss": ["kullback-leibler", "frobenius"], **QUICK}
    settings["extrapolate"] = False  # whose decisions would magnify rounding
    g = factorize(X, [4, 2], **settings)
    if kind == "on disk":
        np.save(tmp_path / "X.npy", X)
        X = OnDisk(np.load(tmp_path / "X.npy", mmap_mode="r"))
    X = X.astype(np.float32) if kind == "float32" else X
    f = factorize(X, [4, 2], device="cpu", **settings)
    tolerance = 1e-5 if kind == "float32" else 1e-8
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=tolerance)
    assert f.H[0].dtype == (np.float32 if kind == "float32" else np.float64)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-11, 1.0, 1e10])
@pytest.mark.parametrize("beta_loss", ["kullback-leibler", 1.5])
def test_zeros_and_scales(beta_loss, scale, dtype):
    X = counts(0.0)
    X[3], X[:, 5] = 0, 0
    settings = {"beta_loss": beta_loss, "max_iter": 20, "random_state": 0}
    f = factorize(torch.from_numpy((scale * X).astype(dtype)), [4, 2], **settings)
    assert all(np.isfinite(np.asarray(M)).all() for M in (*f.W, *f.H))
    plain = factorize(X, [4, 2], **settings)
    assert f.explained(1) == pytest.approx(plain.explained(1), abs=1e-3)


def test_few_columns_at_a_time(monkeypatch):
    settings = {"beta_loss": "kullback-leibler", **QUICK}
    expected = factorize(torch.from_numpy(counts()), [4], **settings)
    monkeypatch.setattr(divergences, "_ENTRIES", 5 * M)
    f = factorize(torch.from_numpy(counts()), [4], **settings)
    np.testing.assert_allclose(f.history.objective, expected.history.objective, rtol=1e-12)


def test_new_samples():
    X, settings = counts(), {"beta_loss": "kullback-leibler", **QUICK}
    T = torch.from_numpy(X)
    f, g = (factorize(A, [4], **settings) for A in (T, X))
    np.testing.assert_allclose(f.encode(T), g.encode(X), rtol=1e-5, atol=1e-6)
    assert f.deviance(T) == pytest.approx(g.deviance(X), rel=1e-8)


# --- what is refused -----------------------------------------------------------------------------


class Own(Datafit):
    """A user's own distance."""


class OwnData(DataCentric):
    def terms(self, depth, w):
        return [replace(t, fit=Own()) for t in super().terms(depth, w)]


def test_a_distance_of_ones_own():
    p = as_panels(torch.from_numpy(counts()))
    for ask in (
        lambda: p.size(Own()),
        lambda: p.update(Coding((DataTerm(1.0, drawn(M, 2), Own()),), Nonnegative()), None, 1, 1),
    ):
        with pytest.raises(ValueError, match=r"Own\(\) cannot be fitted to tensors.*NumPy array"):
            ask()


class Odd(Regularizer):
    """A penalty whose majorizer is no quadratic."""

    separable = True

    def value(self, H):
        return 0.0

    def majorize(self, H):
        return BetaDivergence(1).target(np.ones(H.shape))


def test_a_majorizer_that_is_no_quadratic():
    p = as_panels(torch.from_numpy(counts()))
    coding = Coding((DataTerm(1.0, drawn(M, 2), BetaDivergence(1)),), Nonnegative(), Odd(), 1.0)
    p.codes.set(drawn(2, N))
    with pytest.raises(ValueError, match=r"Odd.* has no quadratic majorizer"):
        p.update(coding, FastProjectedGradient(), 1, 1.0)
