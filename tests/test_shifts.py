"""Penalties on H_1 that are shifts, among them one that ties its columns: a graph of neighbors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import solve_sylvester
from scipy.optimize import nnls

from deepmf import L1, Quadratic, Regularizer, Ridge, Unconstrained, factorize
from deepmf.checks import check_regularizer
from deepmf.data.on_disk import OnDisk
from deepmf.data.panels import Coding
from deepmf.data.panels.columns import ColumnPanels
from deepmf.data.validation import as_matrix
from deepmf.solvers import FastProjectedGradient

RNG = np.random.default_rng(0)
X = RNG.random((8, 3)) @ RNG.dirichlet([0.5] * 3, 70).T + 0.05 * RNG.random((8, 70))
SHORT = {"max_iter": 30, "tol": 0, "init": "nndsvd"}


class Path(Regularizer):
    """1/2 tr(H L H') for the graph whose edges join each sample to the next."""

    shifts = True

    def value(self, H):
        return 0.5 * np.sum(np.diff(H, axis=1) ** 2)

    def majorize(self, H):
        D = np.diff(H, axis=1)
        HL = np.pad(D, ((0, 0), (1, 0))) - np.pad(D, ((0, 0), (0, 1)))
        return Quadratic.of(A=4.0, C=4 * H - HL)


def tensor(A):
    return pytest.importorskip("torch").from_numpy(A)


KINDS = {
    "dense": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "sparse": sparse.csc_array,
    "on disk": OnDisk,
}
kinds = pytest.mark.parametrize("kind", KINDS)


def test_the_majorizer_touches_and_lies_above():
    check_regularizer(Path())


@kinds
def test_the_codes_solve_the_coupled_problem(kind):
    """B'B H + g H L = B'X, column by column tied to its neighbors."""
    B, g = RNG.random((8, 3)), 0.7
    L = np.diag([1.0, *[2.0] * 68, 1.0]) - np.eye(70, k=1) - np.eye(70, k=-1)
    expected = solve_sylvester(B.T @ B, g * L, B.T @ X)
    panels = as_matrix(KINDS[kind](X)).panels(17)
    coding = Coding.of(B, Unconstrained(), Path(), g)
    panels.begin(coding)
    for _ in range(300):
        answer = panels.update(coding, FastProjectedGradient(), 30, 0)
    np.testing.assert_allclose(panels.codes.H, expected, atol=1e-6)
    assert answer.penalty == pytest.approx(Path().value(expected))


@kinds
@pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer"])
@pytest.mark.parametrize("weights", [None, "some"])
def test_fits_decrease_whatever_the_panels(kind, model, weights):
    if weights is not None:
        if kind == "sparse":
            pytest.skip("sparse data have no weights")
        weights = np.where(np.arange(X.size).reshape(X.shape) % 11 == 0, 0.0, 1.0)
    settings = {**SHORT, "model": model, "weights": weights, "constraint_W": "simplex"}
    settings["regularizer_H"] = [Path(10), None]
    f, g = (factorize(KINDS[kind](X), [3, 2], **settings, panel_size=w) for w in (13, 70))
    assert (np.diff(f.history.objective) <= 1e-12 * f.history.objective[0]).all()
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=1e-6)
    free = factorize(KINDS[kind](X), [3, 2], **{**settings, "regularizer_H": None})
    roughness = [Path().value(h.H[0]) / np.sum(h.H[0] ** 2) for h in (f, free)]
    assert roughness[0] < 0.9 * roughness[1]


def test_new_samples_are_coded_without_it():
    f = factorize(X, [3], regularizer_H=Path(10), **SHORT)
    expected = np.array([nnls(f.W[0], x)[0] for x in X[:, :5].T]).T
    np.testing.assert_allclose(f.encode(X[:, :5]), expected, atol=1e-6 * expected.max())


@pytest.mark.parametrize("penalty", [L1(0.1), Ridge(0.1), Path(10)], ids=repr)
@kinds
def test_shifts_stay_in_the_compiled_pass(kind, penalty, monkeypatch):
    def refused(*arguments):
        raise AssertionError("the pass over X is not compiled")

    monkeypatch.setattr(ColumnPanels, "_general", refused)
    factorize(KINDS[kind](X), [3, 2], regularizer_H=[penalty, None], **SHORT)


class Bent(Path):
    def majorize(self, H):
        return Quadratic.of(A=4 * np.eye(len(H)), C=super().majorize(H).C)


def test_refusals():
    with pytest.raises(ValueError, match=r"Path\(.*ties the columns .*TensorPanels\) are"):
        factorize(tensor(X), [3], regularizer_H=Path(), **SHORT)
    with pytest.raises(ValueError, match="apart from each other"):
        factorize(X, [3, 2], regularizer_H=Path(), hierarchy="codes", **SHORT)
    with pytest.raises(ValueError, match=r"Bent\(.* Quadratic.of\(A=tau, C=C\), tau"):
        factorize(X, [3], regularizer_H=Bent(), panel_size=13, **SHORT)
