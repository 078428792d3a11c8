"""Divergences of Dask arrays: answers and fits are those of arrays in memory."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from deepmf import CappedSimplex, Nonnegative, Simplex, factorize
from deepmf.core.datafit import SQUARED, Datafit
from deepmf.core.divergence import BetaDivergence
from deepmf.core.terms import DataTerm
from deepmf.data.dask import worker
from deepmf.data.dask.recompute import RecomputedPanels
from deepmf.data.matrix import as_numpy
from deepmf.data.panels import Coding, DensePanels, as_panels
from deepmf.solvers import FastProjectedGradient

da = pytest.importorskip("dask.array")

RAGGED = (12, (50, 1, 70, 79))
QUICK = {"max_iter": 6, "tol": 0, "random_state": 0, "init": "random"}
BETAS = [0, 0.5, 1, 1.5]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    W, H = rng.gamma(0.5, 1, (12, 4)), rng.gamma(0.5, 1, (4, 200))
    return rng.poisson(4 * W @ H) + 1.0


def drawn(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).gamma(0.7, 1.0, shape) + 1e-3


def same_answer(ours, theirs, B, rtol=1e-12):
    assert ours.exact == theirs.exact
    assert ours.penalty == pytest.approx(theirs.penalty, rel=rtol)
    np.testing.assert_allclose(ours.gram, theirs.gram, rtol=rtol)
    for a, b in zip(ours.terms, theirs.terms, strict=True):
        for factor in (2, 0.3):
            Z = factor * B * np.random.default_rng(3).uniform(0.5, 2, B.shape)
            assert a.change(B, Z - B) == pytest.approx(b.change(B, Z - B), rel=rtol)


@pytest.mark.parametrize("beta", BETAS)
def test_answers_values_and_sizes(client, counts, beta):
    """Of one term and of several, squared errors among them."""
    D, (B, C), H = BetaDivergence(beta), (drawn(12, 3), drawn(12, 3, seed=1)), drawn(3, 200)
    terms = (DataTerm(1.0, B, D), DataTerm(0.3, C, SQUARED), DataTerm(0.0, C, D))
    with as_panels(da.from_array(counts, chunks=RAGGED)) as p:
        q = DensePanels(counts)
        for own in (terms[:1], terms):
            coding = Coding(own, Nonnegative())
            for panels in (p, q):
                panels.begin(coding, positive=True)
            np.testing.assert_allclose(as_numpy(p.codes.H), q.codes.H, rtol=1e-9)
            for panels in (p, q):
                panels.codes.set(H)
            a, b = (panels.update(coding, FastProjectedGradient(), 5, 0.01) for panels in (p, q))
            same_answer(a, b, B)
            np.testing.assert_allclose(as_numpy(p.codes.H), q.codes.H, rtol=1e-12)
            np.testing.assert_allclose(p.values(own), q.values(own), rtol=1e-12)
        before = as_numpy(p.codes.H)
        assert p.size(D) == pytest.approx(q.size(D), rel=1e-12)
        np.testing.assert_array_equal(as_numpy(p.codes.H), before)


def test_sizes_without_codes(client, counts):
    D = BetaDivergence(1)
    with as_panels(da.from_array(counts, chunks=RAGGED)) as p:
        assert p.size(D) == pytest.approx(D.size(counts), rel=1e-12)


@pytest.mark.parametrize("beta_loss", ["kullback-leibler", "itakura-saito", 1.5])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model": "data-centric"},
        {"hierarchy": "codes", "model": "data-centric", "panel_size": 17},
        {"regularizer_H": "l1"},
        {"constraint_H": ["simplex", None], "extrapolate": False},
    ],
    ids=str,
)
def test_fits(client, counts, beta_loss, settings):
    f, g = (
        factorize(X, [4, 2], beta_loss=beta_loss, **QUICK, **settings)
        for X in (da.from_array(counts, chunks=RAGGED), counts)
    )
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=1e-8)
    np.testing.assert_allclose(np.asarray(f.H[0]), g.H[0], rtol=0, atol=1e-6 * g.H[0].max())
    assert f.explained(1) == pytest.approx(g.explained(1), rel=1e-9)


@pytest.mark.parametrize("model", ["layer-centric", "data-centric"])
def test_fits_with_several_distances(client, counts, model):
    settings = {"beta_loss": ["kullback-leibler", "frobenius"], "model": model, **QUICK}
    f, g = (factorize(X, [4, 2], **settings) for X in (da.from_array(counts, RAGGED), counts))
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=1e-8)


def test_new_samples(client, counts):
    D, settings = da.from_array(counts, RAGGED), {"beta_loss": "kullback-leibler", **QUICK}
    f, g = (factorize(X, [4], **settings) for X in (D, counts))
    np.testing.assert_allclose(f.encode(D).compute(), g.encode(counts), rtol=1e-2, atol=1e-2)
    assert f.deviance(D) == pytest.approx(g.deviance(counts), rel=1e-6)


class Own(Datafit):
    """A user's own distance, half the squared error under another name."""

    def value(self, T, B, H):
        return SQUARED.value(T, B, H)

    def codes(self, T, B, H):
        return SQUARED.codes(T, B, H)

    def basis(self, T, B, H):
        return SQUARED.basis(T, B, H)


def test_a_distance_of_ones_own(client, counts):
    B, H = drawn(12, 3), drawn(3, 200)
    coding = Coding((DataTerm(1.0, B, Own()),), Nonnegative())
    with as_panels(da.from_array(counts, RAGGED)) as p:
        q = DensePanels(counts)
        for panels in (p, q):
            panels.codes.set(H)
        a, b = (panels.update(coding, FastProjectedGradient(), 5, 0.01) for panels in (p, q))
        same_answer(a, b, B)
        np.testing.assert_allclose(p.values(coding.terms), q.values(coding.terms))


# --- blocks that are computed again, and workers that are lost -----------------------------------


@pytest.mark.parametrize("beta", BETAS)
def test_panels_that_are_made_again(counts, beta):
    D, B, H = BetaDivergence(beta), drawn(12, 3), drawn(3, 200)
    p, q = RecomputedPanels(lambda: DensePanels(counts)), DensePanels(counts)
    coding = Coding((DataTerm(1.0, B, D),), Nonnegative())
    assert p.size(D) == q.size(D)
    for panels in (p, q):
        panels.codes.set(H)
    a, b = (panels.update(coding, FastProjectedGradient(), 5, 0.01) for panels in (p, q))
    same_answer(a, b, B)
    np.testing.assert_array_equal(p.codes.H, q.codes.H)
    assert p.values(coding.terms) == q.values(coding.terms)


@pytest.mark.parametrize("beta", [0, 1])
@pytest.mark.parametrize("constraint", [Nonnegative(), Simplex(), CappedSimplex()], ids=repr)
def test_codes_built_anew_are_nearly_optimal(counts, constraint, beta):
    """Codes have no zeros at first, which these steps would keep."""
    X = counts[:, :20] / counts[:, :20].sum(axis=0)
    terms = (DataTerm(1.0, drawn(12, 4) / drawn(12, 4).sum(axis=0), BetaDivergence(beta)),)
    coding = Coding(terms, constraint)
    s = worker.ColumnStore("x", {0: X}, {}, worker.WorkerOptions(1, False), coding)
    panels = DensePanels(X)
    panels.codes.set(s.codes()[0])
    found = panels.values(terms)[0]
    for seed in range(3):
        panels.codes.set(constraint.project(drawn(4, 20, seed=seed)))
        panels.codes.set(np.maximum(panels.codes.H, 1e-6))
        panels.update(coding, FastProjectedGradient(), 2000, 0.0)
        assert found <= panels.values(terms)[0] * (1 + 1e-4)


def test_a_fit_goes_on_without_a_worker(new_cluster, counts):
    def callback(progress):
        if progress.sweep == 3:
            pids = client.run(os.getpid)
            os.kill(pids[max(pids)], signal.SIGKILL)

    settings = {"beta_loss": "kullback-leibler", **QUICK, "max_iter": 8}
    with (
        new_cluster(n_workers=2) as client,
        client.as_current(),
        pytest.warns(UserWarning, match="lost"),
    ):
        f = factorize(da.from_array(counts, (12, 50)), [4], callbacks=callback, **settings)
    undisturbed = factorize(counts, [4], **settings)
    before, after = f.history.objective, undisturbed.history.objective
    np.testing.assert_allclose(before[:4], after[:4], rtol=1e-8)
    assert np.all(np.diff(before) <= 1e-4 * before[0])
    assert before[-1] <= after[-1] * (1 + 1e-2)
