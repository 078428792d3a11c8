"""A distance of one's own, Kullback and Leibler's, through every block of every model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import kl_div

from deepmf import DataCentric, LayerCentric, Quadratic, Ridge, factorize
from deepmf.core.datafit import Datafit
from deepmf.core.terms import DataTerm
from deepmf.data.panels import DensePanels

TINY = 1e-12
X = np.random.default_rng(0).poisson(20 * np.random.default_rng(1).random((12, 60))) + 1.0


@dataclass(frozen=True)
class LogBarrier:
    """q(M) - <K, log M> with a quadratic q and K >= 0."""

    q: Quadratic
    K: Any

    __array_ufunc__ = None

    def __add__(self, other):
        if isinstance(other, LogBarrier):
            return LogBarrier(self.q + other.q, self.K + other.K)
        return replace(self, q=self.q + other)

    __radd__ = __add__

    def __rmul__(self, weight):
        return LogBarrier(weight * self.q, weight * self.K)

    def through(self, L, R, M):
        """Jensen's inequality at the current M."""
        B = M if L is None else L @ M
        B = B if R is None else B @ R
        pulled = Quadratic.of(0.0, C=self.K / np.maximum(B, TINY)).through(L, R).C
        return LogBarrier(self.q.through(L, R), M * pulled)

    def value(self, M):
        return self.q.value(M) - np.sum(self.K * np.log(np.maximum(M, TINY)))

    def descend(self, constraint, M, max_iter, tol):
        """The minimum of ``l/2 m^2 + b m - k log m`` for each entry, again and again."""
        size = self.q.lipschitz()
        for _ in range(max_iter if size else 1):
            b = self.q.gradient(M) - size * M
            root = np.sqrt(b * b + 4 * size * self.K)
            falling = 2 * self.K / np.maximum(np.abs(b) + root, TINY)
            M = np.where(b > 0, falling, (root - b) / (2 * size) if size else falling)
            M = np.maximum(M, TINY)
        return M


class KullbackLeibler(Datafit):
    def value(self, T, B, H):
        return float(np.sum(kl_div(dense(T), np.maximum(B @ H, TINY))))

    def codes(self, T, B, H):
        linear = np.broadcast_to(-B.sum(axis=0)[:, None], H.shape)
        return LogBarrier(Quadratic(C=linear), H * (B.T @ (dense(T) / np.maximum(B @ H, TINY))))

    def basis(self, T, B, H):
        linear = np.broadcast_to(-H.sum(axis=1), B.shape)
        return LogBarrier(Quadratic(C=linear), B * ((dense(T) / np.maximum(B @ H, TINY)) @ H.T))


def dense(T):
    return T.toarray() if sparse.issparse(T) else T


class Layers(LayerCentric):
    name = "kl-layer-centric"

    def terms(self, depth, w):
        return with_datafit(super().terms(depth, w))


class Data(DataCentric):
    name = "kl-data-centric"

    def terms(self, depth, w):
        return with_datafit(super().terms(depth, w))


def with_datafit(terms):
    return [replace(t, fit=KullbackLeibler()) if t.of_data else t for t in terms]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("penalties", [{}, {"regularizer_H": Ridge(0.1, relative=False)},
                                       {"regularizer_W": Ridge(0.1, relative=False)}],
                         ids=["none", "on H", "on W"])  # fmt: skip
@pytest.mark.parametrize("extrapolate", [True, False])
@pytest.mark.parametrize("model", [Layers(), Data()], ids=["layer", "data"])
@pytest.mark.parametrize("ranks", [[4], [6, 3], [6, 4, 2]], ids=str)
def test_every_sweep_decreases_the_divergence(ranks, model, extrapolate, penalties):
    fitted = factorize(
        X, ranks, model=model, constraint_W="nonnegative", init="random", random_state=0, tol=0,
        max_iter=25, extrapolate=extrapolate, **penalties,
    )  # fmt: skip
    objective = fitted.history.objective
    assert np.all(np.diff(objective) <= 1e-12 * objective[0])
    assert objective[-1] < 0.995 * objective[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_layer_fits_as_scikit_learns_multiplicative_updates():
    from sklearn.decomposition import NMF

    W, H = np.random.default_rng(2).random((12, 4)), np.random.default_rng(3).random((4, 60))
    ours = factorize(
        X, [4], model=Data(), constraint_W="nonnegative", init=(W, H), tol=0, max_iter=30,
        extrapolate=False,
    )  # fmt: skip
    theirs = NMF(4, solver="mu", beta_loss="kullback-leibler", init="custom", tol=0, max_iter=500)
    theirs.fit_transform(X, W=W.copy(), H=H.copy())
    best = theirs.reconstruction_err_**2 / 2
    assert best * 0.98 < ours.history.objective[-1] < 1.1 * best


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_data_and_panels_give_the_same_codes():
    settings = {"model": Data(), "constraint_W": "nonnegative", "init": "random", "tol": 0,
                "random_state": 0, "max_iter": 10}  # fmt: skip
    whole = factorize(X, [4, 2], **settings)
    for other in (sparse.csc_array(X), X):
        again = factorize(other, [4, 2], panel_size=7, **settings)
        np.testing.assert_allclose(again.H[0], whole.H[0], rtol=1e-8)


def test_other_kinds_of_data_refuse_it():
    weights = np.ones_like(X)
    weights[3, 4] = 0
    with pytest.raises(ValueError, match="has no weights of entries"):
        factorize(X, [3], model=Data(), weights=weights, constraint_W="nonnegative", init="random")


def test_surrogates_of_panels_lie_above_and_touch():
    rng = np.random.default_rng(4)
    B, H, D = rng.random((12, 3)) + 0.1, rng.random((3, 60)) + 0.1, KullbackLeibler()
    panels = DensePanels(X)
    panels.codes.set(H)
    now = panels.values([DataTerm(1.0, B, D)])[0]
    assert now == pytest.approx(D.value(X, B, H))
    for surrogate, M, value in (
        (D.codes(X, B, H), H, lambda M: D.value(X, B, M)),
        (D.basis(X, B, H), B, lambda M: D.value(X, M, H)),
    ):
        for _ in range(20):
            Z = M * rng.uniform(0.2, 5, M.shape)
            change = surrogate.value(Z) - surrogate.value(M)
            assert value(Z) - value(M) <= change + 1e-9 * now
