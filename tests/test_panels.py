"""Dense panels against plain NumPy, and results that do not depend on how columns are grouped."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf import (
    L1,
    CappedSimplex,
    FastProjectedGradient,
    GroupedSparse,
    MinVolume,
    Nonnegative,
    Ridge,
    Simplex,
    Unconstrained,
    factorize,
)
from deepmf.panels import Coding, DensePanels, dense

ROWS, COLS, RANK = 6, 23, 3
WIDTHS = [None, 23, 100, 7, 1]
widths = pytest.mark.parametrize("width", WIDTHS)
kinds = pytest.mark.parametrize("order", ["C", "F"])
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def matrix(order="C", dtype=np.float64, seed=0):
    return np.array(np.random.default_rng(seed).random((ROWS, COLS)), dtype=dtype, order=order)


def basis(seed=1):
    return np.random.default_rng(seed).random((ROWS, RANK))


def tolerance(dtype):
    return {"rtol": 1e-12 if dtype == np.float64 else 1e-5}


@widths
@kinds
@dtypes
def test_facts(width, order, dtype):
    X = matrix(order, dtype)
    p = DensePanels(X, width)
    assert p.shape == X.shape
    assert p.dtype == dtype
    assert p.X is X
    assert p.count == -(-COLS // (width or COLS))
    np.testing.assert_allclose(p.norm2, np.sum(X.astype(float) ** 2), rtol=1e-12)
    np.testing.assert_allclose(p.column_norms2(), np.sum(X.astype(float) ** 2, axis=0), rtol=1e-12)


@widths
@kinds
@dtypes
def test_dot_and_columns(width, order, dtype):
    X = matrix(order, dtype)
    p = DensePanels(X, width)
    G = basis()
    np.testing.assert_allclose(p.dot(G), G.T @ X, **tolerance(dtype))
    assert p.dot(G).dtype == np.float64
    for index in ([4], [5, 0, 5], np.array([22, 3]), []):
        np.testing.assert_array_equal(p.columns(index), X.astype(float)[:, list(index)])
        assert p.columns(index).dtype == np.float64


@widths
@kinds
@dtypes
def test_residuals(width, order, dtype):
    X = matrix(order, dtype)
    p = DensePanels(X, width)
    H = np.random.default_rng(2).random((RANK, COLS))
    p.set_codes(H)
    bases = [basis(3), basis(4)]
    expected = [np.linalg.norm(X - B @ H) ** 2 for B in bases]
    np.testing.assert_allclose(p.residuals2(bases), expected, **tolerance(dtype))
    assert len(p.residuals2([])) == 0


def test_codes_are_kept_apart_from_the_callers():
    p = DensePanels(matrix())
    H = np.ones((RANK, COLS))
    p.set_codes(H)
    H[:] = 7
    np.testing.assert_array_equal(p.get_codes(), 1)


@widths
@dtypes
@pytest.mark.parametrize("constraint", [Unconstrained(), Nonnegative(), Simplex(), CappedSimplex()])
def test_begin_is_the_projected_least_squares_solution(width, dtype, constraint):
    X = matrix(dtype=dtype)
    W = basis()
    p = DensePanels(X, width)
    p.begin(Coding(W.T @ W, W, constraint))
    expected = constraint.project(np.linalg.lstsq(W, X.astype(float))[0])
    atol = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(p.get_codes(), expected, atol=atol)
    assert p.get_codes().dtype == dtype


def test_begin_with_a_rank_deficient_basis():
    W = np.c_[basis(), basis()[:, :1], np.zeros(ROWS)]
    p = DensePanels(matrix(), 5)
    p.begin(Coding(W.T @ W, W, Unconstrained()))
    assert np.isfinite(p.get_codes()).all()
    np.testing.assert_allclose(p.get_codes(), np.linalg.pinv(W) @ matrix(), atol=1e-8)


@widths
def test_begin_can_be_made_positive(width):
    W = basis()
    p = DensePanels(matrix(), width)
    p.begin(Coding(W.T @ W, W, Nonnegative()), positive=True)
    plain = np.linalg.lstsq(W, matrix())[0]
    assert plain.min() < 0
    assert p.get_codes().min() > 0
    large = plain > np.abs(plain).mean()
    np.testing.assert_allclose(p.get_codes()[large], plain[large], rtol=1e-9)


@pytest.mark.parametrize("width", [None, 100])
def test_begin_projects_a_whole_set_at_once(width):
    W = basis()
    constraint = GroupedSparse(0.5)
    p = DensePanels(matrix(), width)
    p.begin(Coding(W.T @ W, W, constraint))
    expected = constraint.project(np.linalg.lstsq(W, matrix())[0])
    np.testing.assert_allclose(p.get_codes(), expected, atol=1e-9)


@widths
@kinds
@dtypes
@pytest.mark.parametrize("penalty", [None, Ridge(), L1()], ids=repr)
def test_update(width, order, dtype, penalty):
    """One pass improves the codes and sends back products of the new ones."""
    X = matrix(order, dtype)
    W = basis()
    p = DensePanels(X, width)
    p.set_codes(np.ones((RANK, COLS)))
    coding = Coding(W.T @ W, W, Nonnegative(), penalty, 0.3)
    products = p.update(coding, FastProjectedGradient(), 20, 1e-3)
    H = p.get_codes().astype(float)

    def objective(Z):
        extra = 0.0 if penalty is None else 0.3 * penalty.value(Z)
        return 0.5 * np.linalg.norm(X - W @ Z) ** 2 + extra

    assert objective(H) < objective(np.ones((RANK, COLS)))
    assert H.min() >= 0
    assert p.get_codes().dtype == dtype
    np.testing.assert_allclose(products.XHt, X.astype(float) @ H.T, **tolerance(dtype))
    np.testing.assert_allclose(products.HHt, H @ H.T, **tolerance(dtype))
    expected = 0.0 if penalty is None else penalty.value(H)
    assert products.penalty == pytest.approx(expected, rel=1e-6)
    assert products.XHt.dtype == products.HHt.dtype == np.float64


@dtypes
def test_update_does_not_depend_on_the_panels(dtype):
    W = basis()
    results = []
    for width in WIDTHS:
        p = DensePanels(matrix(dtype=dtype), width)
        p.set_codes(np.ones((RANK, COLS)))
        p.update(Coding(W.T @ W, W, Nonnegative(), L1(), 0.2), FastProjectedGradient(), 30, 1e-2)
        results.append(p.get_codes().copy())
    for H in results[1:]:
        atol = 1e-12 if dtype == np.float64 else 1e-4
        np.testing.assert_allclose(H, results[0], atol=atol)


# --- singular vectors ----------------------------------------------------------------------------

MEMBERS = np.arange(COLS) % 3 != 0


@widths
@kinds
@dtypes
@pytest.mark.parametrize("lanczos", [False, True], ids=["gram", "lanczos"])
@pytest.mark.parametrize("members", [None, MEMBERS], ids=["all", "some"])
def test_leading(width, order, dtype, lanczos, members, monkeypatch):
    if lanczos:
        monkeypatch.setattr(dense, "_LARGEST_GRAM", 0)
    X = matrix(order, dtype)
    U, s = DensePanels(X, width).leading(3, members)
    chosen = X.astype(float) if members is None else X.astype(float)[:, members]
    Ux, sx, _ = np.linalg.svd(chosen)
    rtol = 1e-8 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(s, sx[:3], rtol=rtol)
    assert U.shape == (ROWS, 3)
    np.testing.assert_allclose(np.abs(np.sum(U * Ux[:, :3], axis=0)), 1, rtol=rtol)


def test_leading_by_lanczos_is_accurate(monkeypatch):
    """Many rows and a spectrum that falls slowly."""
    monkeypatch.setattr(dense, "_LARGEST_GRAM", 0)
    X = np.random.default_rng(3).standard_normal((150, 200))
    U, s = DensePanels(X, 64).leading(4)
    Ux, sx, _ = np.linalg.svd(X)
    np.testing.assert_allclose(s, sx[:4], rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(U * Ux[:, :4], axis=0)), 1, rtol=1e-8)


@pytest.mark.parametrize("lanczos", [False, True], ids=["gram", "lanczos"])
def test_leading_of_degenerate_data(lanczos, monkeypatch):
    if lanczos:
        monkeypatch.setattr(dense, "_LARGEST_GRAM", 0)
    rank_one = np.outer(np.arange(1.0, 7), np.arange(1.0, 9))
    _, s = DensePanels(rank_one).leading(2)
    assert s[0] == pytest.approx(np.linalg.norm(rank_one))
    assert s[1] == pytest.approx(0, abs=1e-6 * s[0])
    # columns that sum to zero are orthogonal to a constant first guess
    centred = matrix() - matrix().mean(axis=0)
    _, s = DensePanels(centred).leading(2)
    np.testing.assert_allclose(s, np.linalg.svd(centred)[1][:2], rtol=1e-7)
    # a single column
    _, s = DensePanels(matrix()).leading(1, np.arange(COLS) == 4)
    assert s[0] == pytest.approx(np.linalg.norm(matrix()[:, 4]))


def test_leading_takes_as_many_as_there_are_rows(monkeypatch):
    monkeypatch.setattr(dense, "_LARGEST_GRAM", 0)
    _, s = DensePanels(matrix()).leading(ROWS)
    np.testing.assert_allclose(s, np.linalg.svd(matrix())[1], rtol=1e-7)


# --- through the front door ----------------------------------------------------------------------

SETTINGS = {
    "plain": {},
    "data-centric": {"model": "data-centric"},
    "multilayer": {"model": "multilayer"},
    "trigeorgis": {"model": "trigeorgis"},
    "min-volume": {"regularizer_W": MinVolume(0.1), "init": "snpa"},
    "sparse codes": {"regularizer_H": L1(0.1)},
    "sparse basis": {"constraint_W": GroupedSparse(0.3)},
    "simplex codes": {"constraint_H": "simplex", "init": "hierarchical"},
    "hals": {"solver": "hals"},
    "mu": {"solver": "mu"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_factorization_does_not_depend_on_the_panels(name):
    rng = np.random.default_rng(0)
    X = rng.random((ROWS, 4)) @ rng.dirichlet(np.ones(4) * 0.3, COLS).T + 0.01 * rng.random(
        (ROWS, COLS)
    )
    kept = X.copy()
    X.flags.writeable = False
    results = [
        factorize(Z, [4, 2], max_iter=8, tol=0, random_state=0, panel_size=size, **SETTINGS[name])
        for Z in (X, np.asfortranarray(X))
        for size in (None, -(-COLS // 7), 1)
    ]
    np.testing.assert_array_equal(X, kept)
    first = results[0]
    for other in results[1:]:
        for a, b in zip([*first.W, *first.H], [*other.W, *other.H]):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * np.abs(a).max())
        np.testing.assert_allclose(
            first.history.objective, other.history.objective, rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("size", [-3, 0, 2.5, True])
def test_a_bad_panel_size_is_refused(size):
    with pytest.raises(ValueError, match="panel_size"):
        factorize(matrix(), [3], panel_size=size, max_iter=1, tol=0)


def test_a_set_that_ties_columns_needs_one_panel():
    settings = {"constraint_H": [GroupedSparse(0.3), None], "max_iter": 2, "tol": 0}
    with pytest.raises(ValueError, match=r"ties all its columns together.*panel_size=23"):
        factorize(matrix(), [3, 2], panel_size=5, **settings)
    f = factorize(matrix(), [3, 2], panel_size=23, **settings)
    assert GroupedSparse(0.3).violation(f.H[0]) <= 1e-8


@dtypes
def test_data_are_never_copied(dtype, monkeypatch):
    seen = []
    original = DensePanels.__init__

    def spy(self, X, *args, **kwargs):
        seen.append(X)
        original(self, X, *args, **kwargs)

    monkeypatch.setattr(DensePanels, "__init__", spy)
    X = matrix("F", dtype)
    f = factorize(X, [3], max_iter=1, tol=0)
    assert seen[0] is X
    assert f.W[0].dtype == f.H[0].dtype == dtype
