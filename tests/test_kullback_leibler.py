"""The compiled passes for the Kullback-Leibler divergence, against NumPy and SciPy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, sparse

numba = pytest.importorskip("numba")

from deepmf.kernels import kullback_leibler as kernels  # noqa: E402
from deepmf.kernels.padding import TILE, VECTOR, padded, up_to  # noqa: E402
from deepmf.kernels.simd import (  # noqa: E402
    lanes,
    load,
    log,
    store,
    totals,
    transpose_rows,
)


@dataclass
class Problem:
    """X with T bases, and everything else that a pass takes."""

    X: np.ndarray
    B: np.ndarray
    H: np.ndarray
    w: np.ndarray
    A: np.ndarray
    V: np.ndarray
    index: type = np.int32

    @property
    def dtype(self):
        return self.X.dtype

    @property
    def s(self):
        return self.B.sum(axis=1)

    def sparse(self, newton=True, steps=1, tol=0.0, bounds=None):
        """H, K and hsum after a pass over a sparse X, split where ``bounds`` say."""
        T, m, r = self.B.shape
        X = sparse.csc_array(self.X)
        parts = X.data, X.indices.astype(self.index), X.indptr.astype(self.index)
        B = np.stack([padded(B, np.float64, 1, TILE) for B in self.B])
        H, K, hsum = self.H.copy(), np.zeros((T, m, up_to(TILE, r))), np.zeros(r)
        bounds = [0, X.shape[1]] if bounds is None else bounds
        for first, last in pairwise(bounds):
            more = self.w, B, self.s, self.A, self.V, H, first, last
            kernels.update_sparse(*parts, *more, newton, steps, tol, K, hsum)
        assert not K[:, :, r:].any()
        return H, K[:, :, :r], hsum

    def dense(self, newton=True, steps=1, tol=0.0, bounds=None, order="C"):
        """The same over an array."""
        _, m, r = self.B.shape
        X = np.array(self.X, order=order)
        B = np.stack([padded(B.T, np.float64, TILE, VECTOR) for B in self.B])
        H, K, hsum = self.H.copy(), np.zeros(B.shape), np.zeros(r)
        bounds = [0, X.shape[1]] if bounds is None else bounds
        for first, last in pairwise(bounds):
            more = self.w, B, self.s, self.A, self.V, H, first, last
            kernels.update_dense(X, *more, newton, steps, tol, K, hsum)
        return H, K[:, :r, :m].transpose(0, 2, 1), hsum

    def value(self, H, j=None):
        """Objective of each column, or of column j with codes H."""
        if j is None:
            return np.array([self.value(H[:, j], j) for j in range(H.shape[1])])
        h, x = H.astype(float), self.X[:, j].astype(float)
        v = self.V[:, min(j, self.V.shape[1] - 1)]
        with np.errstate(divide="ignore"):
            terms = [s @ h - x[x > 0] @ np.log((B @ h)[x > 0]) for B, s in zip(self.B, self.s)]
        return self.w @ terms + h @ self.A @ h / 2 - v @ h

    def slope(self, h, j):
        x, v = self.X[:, j], self.V[:, min(j, self.V.shape[1] - 1)]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [s - B.T @ np.where(x > 0, x / (B @ h), 0) for B, s in zip(self.B, self.s)]
        return self.w @ np.array(terms) + self.A @ h - v

    def scale(self, H):
        """Sizes of the terms that cancel in a column's objective."""
        sizes = [self.w @ np.abs(self.s @ h) + abs(h @ self.A @ h) + 1 for h in H.T.astype(float)]
        return np.abs(self.value(H)) + np.array(sizes)


def problem(m=37, n=23, r=5, T=1, penalty=False, shift=None, dtype=np.float64, density=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.poisson(3, (m, n)) * (rng.random((m, n)) < density)).astype(dtype)
    X[:, 3 % n], X[2 % m] = 0, 0
    B = rng.random((T, m, r)) * (rng.random((T, m, r)) < 0.8) + 1e-3
    H = (3 * rng.random((r, n)) * (rng.random((r, n)) < 0.8) + 1e-6).astype(dtype)
    L = rng.standard_normal((r, 2))
    A = 30 * L @ L.T if penalty else np.zeros((r, r))
    columns = {None: 0, "one": 1, "own": n}[shift]
    V = rng.standard_normal((r, columns)) if columns else np.zeros((r, 1))
    return Problem(X, B, H, rng.random(T) + 0.5 if T > 1 else np.ones(T), A, V)


def expected_sums(p, H):
    """K and hsum of given codes."""
    H = H.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        K = [np.where(p.X > 0, p.X.astype(float) / (B @ H), 0) @ H.T for B in p.B]
    return np.array(K), H.sum(axis=1)


WAYS = pytest.mark.parametrize("newton", [True, False])
SHAPES = [
    {}, {"T": 3}, {"penalty": True}, {"penalty": True, "shift": "own"}, {"shift": "one"},
    {"T": 3, "penalty": True, "shift": "one"},
]  # fmt: skip


@WAYS
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_columns_objective_increases(kind, newton, dtype):
    p = problem(**kind, dtype=dtype, seed=1)
    if kind == {"shift": "one"}:
        p.V = 0.5 * p.s.min() * p.V / np.abs(p.V).max()
    for _ in range(15):
        before = p.value(p.H)
        H, *_ = p.sparse(newton)
        slack = (1e-13 if dtype == np.float64 else 1e-6) * p.scale(p.H)
        assert (p.value(H) <= before + slack).all()
        assert (H >= 0).all()
        p.H = H


@WAYS
@pytest.mark.parametrize("kind", SHAPES)
def test_far_from_the_optimum_too(kind, newton):
    """Newton's steps alone would overshoot where entries hardly depend on each other."""
    for seed in range(5):
        p = problem(**kind, seed=seed, r=9, density=0.3)
        p.B = 1e-3 * p.B + np.eye(9)[np.arange(p.X.shape[0]) % 9]
        p.H = np.exp(3 * np.random.default_rng(seed).standard_normal(p.H.shape))
        p.V = p.V if "penalty" in kind else p.V / 10
        for _ in range(4):
            before, p.H = p.value(p.H), p.sparse(newton)[0]
            assert (p.value(p.H) <= before + 1e-13 * p.scale(p.H)).all()


@WAYS
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("pass_", ["sparse", "dense"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_the_new_codes(dtype, pass_, kind, newton):
    p = problem(**kind, dtype=dtype)
    H, K, hsum = getattr(p, pass_)(newton, steps=2)
    expected = expected_sums(p, H)
    np.testing.assert_allclose(K, expected[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(hsum, expected[1], rtol=1e-13)
    assert not np.array_equal(H, p.H)


def test_without_steps_codes_stay():
    p = problem()
    for H, K, hsum in (p.sparse(steps=0), p.dense(steps=0)):
        np.testing.assert_array_equal(H, p.H)
        np.testing.assert_allclose(K, expected_sums(p, H)[0], rtol=1e-12)
        np.testing.assert_allclose(hsum, H.sum(axis=1))


@pytest.mark.parametrize("kind", SHAPES[:-2] + SHAPES[-1:])
def test_many_steps_reach_scipys_optimum(kind):
    p = problem(n=7, density=0.8, **kind)
    H, *_ = p.sparse(steps=300)
    for j in range(p.X.shape[1]):
        bounds = [(1e-9, None)] * len(H)
        found = optimize.minimize(
            p.value, np.maximum(H[:, j], 0.3), (j,), "L-BFGS-B", p.slope, bounds=bounds,
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
        )  # fmt: skip
        assert p.value(H[:, j], j) <= found.fun + 1e-8 * (1 + abs(found.fun))
        slope = p.slope(H[:, j], j)
        assert (slope > -1e-6).all()
        assert np.abs(slope * H[:, j]).max() < 1e-6


@WAYS
def test_multiplicative_steps_are_those_of_the_literature(newton):
    """After the best multiple, h <- h N / s."""
    p = problem()
    H = p.H * np.where(p.X.any(axis=0), p.X.sum(axis=0) / (p.s[0] @ p.H), 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        N = p.B[0].T @ np.where(p.X > 0, p.X / (p.B[0] @ H), 0)
    expected = H * N / p.s[0][:, None]
    assert np.allclose(p.sparse(newton)[0], expected, rtol=1e-12) == (not newton)


@WAYS
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_is_sparse_to_rounding(kind, newton, order, dtype):
    p = problem(**kind, dtype=dtype)
    if kind == {"shift": "one"}:
        p.V /= 10
    tol = 1e-9 if dtype == np.float64 else 1e-4
    for ours, theirs in zip(p.dense(newton, order=order), p.sparse(newton)):
        np.testing.assert_allclose(ours, theirs, rtol=tol, atol=tol)


@WAYS
def test_codes_do_not_depend_on_the_split(newton):
    p = problem(n=41, T=2, penalty=True)
    for run in (p.sparse, p.dense):
        whole, K, hsum = run(newton, 3)
        for bounds in ([0, 1, 2, 19, 41], [0, 16, 17, 41], [*range(42)]):
            H, K2, hsum2 = run(newton, 3, bounds=bounds)
            np.testing.assert_array_equal(H, whole)
            np.testing.assert_allclose(K2, K, rtol=1e-12)
            np.testing.assert_allclose(hsum2, hsum, rtol=1e-12)


@pytest.mark.parametrize("r", [1, 2, 3, 4, 7, 8, 9, 16, 17, 33, 100])
def test_every_rank(r):
    p = problem(r=r, n=9)
    before = p.value(p.H)
    H, K, _ = p.sparse(steps=2)
    assert (p.value(H) <= before + 1e-12 * p.scale(p.H)).all()
    np.testing.assert_allclose(K, expected_sums(p, H)[0], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(p.dense(steps=2)[0], H, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("m", [1, 7, 8, 15, 16, 17, 33])
def test_every_length_of_columns(m, index):
    p = problem(m=m, n=5, r=2, density=2)
    p.index, p.X = index, p.X + 1
    H, K, _ = p.sparse()
    np.testing.assert_allclose(K, expected_sums(p, H)[0], rtol=1e-12)
    np.testing.assert_allclose(p.dense()[0], H, rtol=1e-9)


@WAYS
def test_steps_end_at_the_tolerance(newton):
    """A tolerance of 1 leaves one step, and a small one ends where nothing is gained."""
    p = problem()
    once, loose = p.sparse(newton)[0], p.sparse(newton, 50, 1.0)[0]
    full, close = p.sparse(newton, 200)[0], p.sparse(newton, 200, 1e-4)[0]
    assert np.abs(loose - once).max() <= np.abs(loose - full).max()
    np.testing.assert_allclose(p.value(close), p.value(full), rtol=1e-5)
    assert not np.array_equal(close, full)


@WAYS
def test_empty_columns_have_no_codes(newton):
    p = problem()
    p.X[:] = 0
    for run in (p.sparse, p.dense):
        H, K, hsum = run(newton)
        assert not H.any()
        assert not K.any()
        assert not hsum.any()


@WAYS
def test_empty_columns_follow_the_penalty(newton):
    """min s'h + 1/2 a h'h - v'h has h = max(v - s, 0) / a."""
    p = problem(r=3)
    p.X[:], p.A, p.V = 0, 2 * np.eye(3), p.s.T + np.array([[1.0], [-1.0], [4.0]])
    H, *_ = p.sparse(newton)
    np.testing.assert_allclose(H, np.repeat([[0.5], [0], [2]], H.shape[1], axis=1), atol=1e-12)


def test_entries_take_earlier_ones_into_account():
    """Without entries of X, a step minimizes a quadratic over one entry of h after the other."""
    p = problem(r=7, n=1, penalty=True, shift="own")
    p.X[:], p.A, linear = 0, p.A + 10 * np.eye(7), p.s[0] - 50 * np.abs(p.V[:, 0])
    p.V, h = 50 * np.abs(p.V), p.H[:, 0]
    square, slope = h @ p.A @ h, linear @ h
    assert slope < 0  # so that the best multiple of h is not zero
    h = h * -slope / square
    for k in range(7):
        h[k] = max(h[k] - (linear + p.A @ h)[k] / p.A[k, k], 0)
    np.testing.assert_allclose(p.sparse()[0][:, 0], h, rtol=1e-10)


@WAYS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("of_X", [1e-12, 1, 1e12])
@pytest.mark.parametrize("of_B", [1e-12, 1, 1e12])
def test_scales_of_any_size(of_X, of_B, newton, dtype):
    """Steps from codes of a wrong size are those from codes of the right one."""
    p, q = problem(dtype=np.float64), problem(dtype=dtype)
    q.X, q.B = (p.X * of_X).astype(dtype), p.B * of_B
    expected, (H, K, hsum) = p.sparse(newton, 3), q.sparse(newton, 3)
    tol = 1e-9 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(H * (of_B / of_X), expected[0], rtol=tol, atol=tol)
    assert np.isfinite(K).all()
    assert np.isfinite(hsum).all()


@WAYS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_zeros_are_no_obstacle(newton, dtype):
    """Codes of zero, rows of zeros in B, and entries of X that nothing reaches."""
    p = problem(dtype=dtype)
    p.X += 1
    p.B[0, :20] *= np.random.default_rng(0).random((20, 5)) < 0.3
    p.B[0, 4], p.B[0, :, 2] = 0, 0
    p.H[:, ::2] = 0
    p.H[:3] = 0
    for run in (p.sparse, p.dense):
        H, K, hsum = run(newton, 4)
        assert all(np.isfinite(part).all() for part in (H, K, hsum))
        reached = p.B[0].any(axis=1)
        assert ((p.B[0] @ H)[reached] > 0).all()


def test_components_of_no_use_to_a_column_have_no_codes():
    p = problem()
    p.B[0, p.X[:, 0] > 0, 1] = 0
    H, *_ = p.sparse()
    assert H[1, 0] == 0
    assert H[1].any()


def test_newtons_steps_leave_zero():
    p = problem(density=0.9)
    p.X += 0.5
    p.H[1:3] = 0
    assert not p.sparse(newton=False, steps=5)[0][1:3].any()
    H, *_ = p.sparse(steps=20)
    assert (H[1:3] > 0).any()
    p.H[:] = 1
    np.testing.assert_allclose(p.value(H), p.value(p.sparse(steps=50)[0]), rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_value_is_right_to_rounding(dtype, order):
    p = problem(m=50, n=61, dtype=dtype, seed=4)
    X, B = sparse.csc_array(p.X), padded(p.B[0], np.float64, 1, TILE)
    P = np.maximum(p.B[0].astype(np.longdouble) @ p.H, 1e-100)
    exact = float((p.X * np.log(P)).sum())
    scale = float((p.X * np.abs(np.log(P))).sum())
    parts = X.data, X.indices, X.indptr
    got = sum(kernels.value_sparse(*parts, B, p.H, *ends) for ends in ((0, 7), (7, 61)))
    assert got == pytest.approx(exact, abs=2e-15 * scale)
    Bt = padded(p.B[0].T, np.float64, TILE, VECTOR)
    got = kernels.value_dense(np.array(p.X, order=order), Bt, p.H, 0, 61)
    assert got == pytest.approx(exact, abs=2e-15 * scale)


@numba.njit
def logarithms(a, out):
    for j in range(0, a.shape[1], lanes(a)):
        store(log(load(a, 0, j)), out, 0, j)


def test_logarithms_are_right_to_the_last_digits():
    rng = np.random.default_rng(0)
    a = np.concatenate(
        [
            np.exp(rng.uniform(-700, 700, 4000)),
            1 + rng.uniform(-0.5, 0.5, 4000),
            1 + rng.uniform(-1, 1, 1000) * 1e-9,
            2.0 ** np.arange(-500, 500),
            np.full(8, np.sqrt(0.5)),
        ]
    )[None]
    out = np.empty_like(a)
    logarithms(a, out)
    np.testing.assert_allclose(out, np.log(a), rtol=3e-16, atol=0)


@numba.njit
def eight_totals(a, out):
    store(
        totals(
            load(a, 0, 0), load(a, 1, 0), load(a, 2, 0), load(a, 3, 0), load(a, 4, 0),
            load(a, 5, 0), load(a, 6, 0), load(a, 7, 0),
        ), out, 0, 0,
    )  # fmt: skip


def test_totals_stand_in_the_order_of_their_vectors():
    a, out = np.random.default_rng(0).random((8, 8)), np.zeros((1, 8))
    eight_totals(a, out)
    np.testing.assert_allclose(out[0], a.sum(axis=1), rtol=1e-14)


@numba.njit
def turned(B, rows, p, last, k, G, top, left):
    transpose_rows(B, rows, p, last, k, G, top, left)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_are_gathered_as_columns(index):
    rng = np.random.default_rng(0)
    B, rows = rng.random((30, 24)), rng.integers(0, 30, 19).astype(index)
    G = np.zeros((17, 40))
    turned(B, rows, 3, 18, 16, G, 9, 2)
    np.testing.assert_array_equal(G[9:17, 2:10], B[rows[3:11], 16:24].T)
    turned(B, rows, 15, 18, 8, G, 0, 30)
    np.testing.assert_array_equal(G[:8, 30:34], B[rows[15:19], 8:16].T)
    np.testing.assert_array_equal(G[:8, 34:38], np.repeat(B[rows[18], 8:16], 4).reshape(8, 4))
    assert G[9:, 10:].sum() == 0
