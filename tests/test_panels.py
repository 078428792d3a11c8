"""Panels of every kind against plain NumPy; results do not depend on kind or grouping."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest
from scipy import sparse

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
from deepmf._utils.threads import limit_threads
from deepmf.data.panels import Coding, DensePanels, SparsePanels, as_panels, svd
from deepmf.fitting.registry import STARTS

ROWS, COLS, RANK = 6, 23, 3
WIDTHS = [None, 23, 100, 7, 1]
widths = pytest.mark.parametrize("width", WIDTHS)
KINDS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csc": sparse.csc_array,
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "coo": sparse.coo_array,
}
kinds = pytest.mark.parametrize("kind", KINDS)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def matrix(dtype=np.float64, seed=0):
    """About a third of it is zero, and so is a whole column."""
    X = np.maximum(np.random.default_rng(seed).random((ROWS, COLS)) - 0.3, 0)
    X[:, 11] = 0
    return X.astype(dtype)


def panels(X, kind="C", width=None):
    return as_panels(KINDS[kind](X), width)


def basis(seed=1):
    return np.random.default_rng(seed).random((ROWS, RANK))


def tolerance(dtype):
    return {"rtol": 1e-12 if dtype == np.float64 else 1e-5}


@widths
@kinds
@dtypes
def test_facts(width, kind, dtype):
    X = matrix(dtype)
    p = panels(X, kind, width)
    assert p.shape == X.shape
    assert p.dtype == dtype
    assert p.count == -(-COLS // (width or COLS))
    np.testing.assert_allclose(p.norm2, np.sum(X.astype(float) ** 2), rtol=1e-12)
    np.testing.assert_allclose(p.column_norms2(), np.sum(X.astype(float) ** 2, axis=0), rtol=1e-12)


@widths
@kinds
@dtypes
def test_dot_and_columns(width, kind, dtype):
    X = matrix(dtype)
    p = panels(X, kind, width)
    G = basis()
    np.testing.assert_allclose(p.dot(G), G.T @ X, **tolerance(dtype))
    assert p.dot(G).dtype == np.float64
    for index in ([4], [5, 0, 5], np.array([22, 3]), []):
        np.testing.assert_array_equal(p.columns(index), X.astype(float)[:, list(index)])
        assert p.columns(index).dtype == np.float64


@widths
@kinds
@dtypes
def test_residuals(width, kind, dtype):
    X = matrix(dtype)
    p = panels(X, kind, width)
    H = np.random.default_rng(2).random((RANK, COLS))
    p.codes.set(H)
    bases = [basis(3), basis(4)]
    expected = [np.linalg.norm(X - B @ H) ** 2 for B in bases]
    np.testing.assert_allclose(p.residuals2(bases), expected, **tolerance(dtype))
    assert len(p.residuals2([])) == 0


@kinds
def test_codes_are_kept_apart_from_the_callers(kind):
    p = panels(matrix(), kind)
    H = np.ones((RANK, COLS))
    p.codes.set(H)
    H[:] = 7
    np.testing.assert_array_equal(p.codes.H, 1)


@widths
@kinds
@dtypes
@pytest.mark.parametrize("constraint", [Unconstrained(), Nonnegative(), Simplex(), CappedSimplex()])
def test_begin_is_the_projected_least_squares_solution(width, kind, dtype, constraint):
    X = matrix(dtype)
    W = basis()
    p = panels(X, kind, width)
    p.begin(Coding.of(W, constraint))
    expected = constraint.project(np.linalg.lstsq(W, X.astype(float), rcond=None)[0])
    atol = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(p.codes.H, expected, atol=atol)
    assert p.codes.H.dtype == dtype


@kinds
def test_begin_with_a_rank_deficient_basis(kind):
    W = np.c_[basis(), basis()[:, :1], np.zeros(ROWS)]
    p = panels(matrix(), kind, 5)
    p.begin(Coding.of(W, Unconstrained()))
    assert np.isfinite(p.codes.H).all()
    np.testing.assert_allclose(p.codes.H, np.linalg.pinv(W) @ matrix(), atol=1e-8)


@widths
@kinds
def test_begin_can_be_made_positive(width, kind):
    W = basis()
    p = panels(matrix(), kind, width)
    p.begin(Coding.of(W, Nonnegative()), positive=True)
    plain = np.linalg.lstsq(W, matrix(), rcond=None)[0]
    assert plain.min() < 0
    assert p.codes.H.min() > 0
    large = plain > np.abs(plain).mean()
    np.testing.assert_allclose(p.codes.H[large], plain[large], rtol=1e-9)


@kinds
@pytest.mark.parametrize("width", [None, 100])
def test_begin_projects_a_whole_set_at_once(width, kind):
    W = basis()
    constraint = GroupedSparse(0.5)
    p = panels(matrix(), kind, width)
    p.begin(Coding.of(W, constraint))
    expected = constraint.project(np.linalg.lstsq(W, matrix(), rcond=None)[0])
    np.testing.assert_allclose(p.codes.H, expected, atol=1e-9)


@widths
@kinds
@dtypes
@pytest.mark.parametrize("penalty", [None, Ridge(), L1()], ids=repr)
def test_update(width, kind, dtype, penalty):
    """One pass improves the codes and sends back products of the new ones."""
    X = matrix(dtype)
    W = basis()
    p = panels(X, kind, width)
    p.codes.set(np.ones((RANK, COLS)))
    coding = Coding.of(W, Nonnegative(), penalty, 0.3)
    products = p.update(coding, FastProjectedGradient(), 20, 1e-3)
    H = p.codes.H.astype(float)

    def objective(Z):
        extra = 0.0 if penalty is None else 0.3 * penalty.value(Z)
        return 0.5 * np.linalg.norm(X - W @ Z) ** 2 + extra

    assert objective(H) < objective(np.ones((RANK, COLS)))
    assert H.min() >= 0
    assert p.codes.H.dtype == dtype
    np.testing.assert_allclose(products.terms[0].C, X.astype(float) @ H.T, **tolerance(dtype))
    np.testing.assert_allclose(products.terms[0].terms[0][1], H @ H.T, **tolerance(dtype))
    expected = 0.0 if penalty is None else penalty.value(H)
    assert products.penalty == pytest.approx(expected, rel=1e-6)
    assert products.terms[0].C.dtype == products.terms[0].terms[0][1].dtype == np.float64


@dtypes
def test_update_does_not_depend_on_the_panels(dtype):
    W = basis()
    results = []
    for width, kind in product(WIDTHS, KINDS):
        p = panels(matrix(dtype), kind, width)
        p.codes.set(np.ones((RANK, COLS)))
        p.update(Coding.of(W, Nonnegative(), L1(), 0.2), FastProjectedGradient(), 30, 1e-2)
        results.append(p.codes.H.copy())
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
def test_leading(width, kind, dtype, lanczos, members, monkeypatch):
    if lanczos:
        monkeypatch.setattr(svd, "_LARGEST_GRAM", 0)
    X = matrix(dtype)
    U, s = panels(X, kind, width).leading(3, members)
    chosen = X.astype(float) if members is None else X.astype(float)[:, members]
    Ux, sx, _ = np.linalg.svd(chosen)
    rtol = 1e-8 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(s, sx[:3], rtol=rtol)
    assert U.shape == (ROWS, 3)
    np.testing.assert_allclose(np.abs(np.sum(U * Ux[:, :3], axis=0)), 1, rtol=rtol)


@kinds
def test_leading_by_lanczos_is_accurate(kind, monkeypatch):
    """Many rows and a spectrum that falls slowly."""
    monkeypatch.setattr(svd, "_LARGEST_GRAM", 0)
    X = np.random.default_rng(3).standard_normal((150, 200))
    U, s = panels(X, kind, 64).leading(4)
    Ux, sx, _ = np.linalg.svd(X)
    np.testing.assert_allclose(s, sx[:4], rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(U * Ux[:, :4], axis=0)), 1, rtol=1e-8)


@kinds
@pytest.mark.parametrize("lanczos", [False, True], ids=["gram", "lanczos"])
def test_leading_of_degenerate_data(kind, lanczos, monkeypatch):
    if lanczos:
        monkeypatch.setattr(svd, "_LARGEST_GRAM", 0)
    rank_one = np.outer(np.arange(1.0, 7), np.arange(1.0, 9))
    _, s = panels(rank_one, kind).leading(2)
    assert s[0] == pytest.approx(np.linalg.norm(rank_one))
    assert s[1] == pytest.approx(0, abs=1e-6 * s[0])
    # columns that sum to zero are orthogonal to a constant first guess
    centered = matrix() - matrix().mean(axis=0)
    _, s = panels(centered, kind).leading(2)
    np.testing.assert_allclose(s, np.linalg.svd(centered)[1][:2], rtol=1e-7)
    # exactly so
    _, s = panels(np.eye(6, 5) - np.eye(6, 5, -1), kind).leading(2)
    np.testing.assert_allclose(s, np.linalg.svd(np.eye(6, 5) - np.eye(6, 5, -1))[1][:2], rtol=1e-7)
    # a single column
    _, s = panels(matrix(), kind).leading(1, np.arange(COLS) == 4)
    assert s[0] == pytest.approx(np.linalg.norm(matrix()[:, 4]))


@kinds
def test_leading_takes_as_many_as_there_are_rows(kind, monkeypatch):
    monkeypatch.setattr(svd, "_LARGEST_GRAM", 0)
    _, s = panels(matrix(), kind).leading(ROWS)
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


def agree(first, other, atol):
    for a, b in zip([*first.W, *first.H], [*other.W, *other.H]):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol * np.abs(a).max())
    np.testing.assert_allclose(
        first.history.objective, other.history.objective, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_factorization_does_not_depend_on_the_panels(name):
    rng = np.random.default_rng(0)
    X = rng.random((ROWS, 4)) @ rng.dirichlet(np.ones(4) * 0.3, COLS).T + 0.01 * rng.random(
        (ROWS, COLS)
    )
    X[rng.random((ROWS, COLS)) < 0.3] = 0
    kept = X.copy()
    X.flags.writeable = False
    first, *others = [
        factorize(Z, [4, 2], max_iter=8, tol=0, random_state=0, panel_size=size, **SETTINGS[name])
        for Z in (X, np.asfortranarray(X), sparse.csc_array(X), sparse.csr_matrix(X))
        for size in (None, -(-COLS // 7), 1)
    ]
    np.testing.assert_array_equal(X, kept)
    for other in others:
        agree(first, other, 1e-9)


@pytest.mark.filterwarnings("ignore:X looks like raw counts")
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("lanczos", [False, True], ids=["gram", "lanczos"])
def test_sparse_fits_are_dense_fits_from_every_start(start, lanczos, monkeypatch):
    if lanczos:
        monkeypatch.setattr(svd, "_LARGEST_GRAM", 0)
    X = counts()
    init = ["random", start] if start == "merged" else start
    settings = {"init": init, "max_iter": 5, "tol": 0, "random_state": 0}
    dense = factorize(X.toarray(), [4, 2], **settings)
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.lil_array):
        f = factorize(kind(X), [4, 2], **settings)
        agree(dense, f, 1e-6 if lanczos or start == "mv-dual" else 1e-9)  # which iterate
        new = kind(counts(5)[:, :7])
        codes = dense.encode(new.toarray())
        np.testing.assert_allclose(f.encode(new), codes, atol=1e-5 * codes.max())
        error = np.linalg.norm(new - f.basis(2) @ f.encode(new, 2)) ** 2
        assert f.squared_error(new, 2) == pytest.approx(error, rel=1e-9)


# --- what sparse data may look like --------------------------------------------------------------


def counts(seed=0):
    """Words in documents: two topics and noise."""
    rng = np.random.default_rng(seed)
    topics = rng.gamma(0.2, size=(30, 2)) @ rng.gamma(0.5, size=(2, 50)) * 3
    return sparse.csc_array(rng.poisson(topics + 0.05))


@pytest.mark.filterwarnings("ignore:X looks like raw counts")
def test_counts_become_floats_and_short_floats_stay():
    X = counts()
    assert X.dtype.kind == "i"
    assert factorize(X, [2], max_iter=1, tol=0).W[0].dtype == np.float64
    assert factorize(X.astype("f"), [2], max_iter=1, tol=0).W[0].dtype == np.float32
    assert factorize(X > 0, [2], max_iter=1, tol=0).W[0].dtype == np.float64


@pytest.mark.filterwarnings("ignore:X looks like raw counts")
def test_entries_listed_twice_out_of_order_or_as_zeros():
    """They count as what they sum to, and the caller's matrix stays as it was."""
    tidy = counts().astype(float)
    entries = tidy.tocoo()
    rows, cols = np.r_[entries.row, entries.row, 0, 1], np.r_[entries.col, entries.col, 0, 49]
    values = np.r_[3 * entries.data, -2 * entries.data, 0, 0]
    order = np.random.default_rng(0).permutation(len(values))
    order = order[np.argsort(rows[order], kind="stable")]  # by row, and at random within it
    starts = np.r_[0, np.cumsum(np.bincount(rows, minlength=30))]
    raw = sparse.csr_array((values[order], cols[order], starts), tidy.shape)
    coo = sparse.coo_array((values, (rows, cols)), tidy.shape)
    assert not raw.has_canonical_format
    kept = raw.data.copy()
    expected = factorize(tidy, [2], max_iter=3, tol=0)
    for untidy in (coo, raw):
        agree(expected, factorize(untidy, [2], max_iter=3, tol=0), 1e-9)
    np.testing.assert_array_equal(raw.data, kept)


def test_the_residual_of_an_exact_fit_is_exact():
    """Traces would leave 1e-16 of ||X||^2 or less than nothing."""
    rng = np.random.default_rng(0)
    W, H = np.maximum(rng.random((30, 3)) - 0.5, 0), np.maximum(rng.random((3, 40)) - 0.5, 0)
    for dtype in (np.float64, np.float32):
        p = SparsePanels(sparse.csc_array((W @ H).astype(dtype)), 7)
        p.codes.set(H * (1 + 1e-9))
        expected = np.linalg.norm(p.X.toarray() - W @ p.codes.H.astype(float)) ** 2
        np.testing.assert_allclose(p.residuals2([W, 2 * W])[0], expected, rtol=1e-6)


def spoilt(X):
    X = X.copy()
    X.indices[5] = 10**8
    return X


BAD = {
    "nan": (lambda X: X * np.nan, "NaN"),
    "inf": (lambda X: X * np.inf, "NaN or infinite"),
    "negative": (lambda X: -X, r"negative entries \(first .* at row 0, column .*X.maximum"),
    "complex": (lambda X: X * 1j, "complex"),
    "zeros": (lambda X: X * 0, "all zeros"),
    "nothing": (lambda X: sparse.csr_array(X.shape), "all zeros"),
    "huge": (lambda X: X * 1e200, "Divide X"),
    "empty": (lambda X: sparse.csc_array((0, 5)), "empty"),
    "an index outside": (spoilt, "not a sound sparse matrix: indices must be < 30"),
    "vector": (lambda X: sparse.coo_array(np.arange(3.0)), "2-D"),
}


@pytest.mark.parametrize(("spoil", "said"), BAD.values(), ids=BAD)
def test_bad_sparse_data(spoil, said):
    with pytest.raises((ValueError, TypeError), match=said):
        factorize(spoil(counts().astype(float)), [2])


def test_the_place_of_a_bad_entry():
    X = counts().astype(float).toarray()
    X[[7, 4], [3, 9]] = np.nan
    for kind in KINDS.values():
        with pytest.raises(ValueError, match=r"2 entries .* row 4, column 9"):
            factorize(kind(X), [2])


@pytest.mark.parametrize("start", [name for name in reversed(STARTS) if name != "merged"])
def test_memory_goes_with_the_nonzeros(start):
    """Dense, these data would need 8 GB; factors and codes take 2 MB."""
    rng = np.random.default_rng(0)
    where = rng.integers(0, 20_000, 100_000), rng.integers(0, 50_000, 100_000)
    X = sparse.coo_array((rng.random(100_000), where), shape=(20_000, 50_000)).tocsc()
    tracemalloc.start()
    try:
        with limit_threads(2):  # each sends back products of its own
            rank = 2 if start == "hierarchical" else 3
            factorize(X, rank, init=start, max_iter=2, tol=0, random_state=0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 15e6


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
    X = np.asfortranarray(matrix(dtype))
    f = factorize(X, [3], max_iter=1, tol=0)
    assert seen[0] is X
    assert f.W[0].dtype == f.H[0].dtype == dtype
