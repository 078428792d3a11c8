from __future__ import annotations

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from deepmf.kernels.padding import aligned, padded, up_to  # noqa: E402
from deepmf.kernels.simd import (  # noqa: E402
    lanes,
    load,
    maximum,
    minimum,
    splat,
    sqrt,
    store,
    total,
    where_at_most,
)
from deepmf.kernels.tiles import add_inner, add_outer, plus_times  # noqa: E402

DTYPES = [np.float64, np.float32]


@numba.njit
def outer(G, X, top, left, width, ahead, C):
    add_outer(G, X, top, left, width, ahead, C)


@numba.njit
def inner(X, top, height, left, width, ahead, G, out):
    add_inner(X, top, height, left, width, ahead, G, out)


@numba.njit
def gradient(C, at, A, M, left, out):
    plus_times(C, at, A, M, left, out)


def surrounded(M, rows=3):
    """M as the beginning of a larger array of NaN: whatever reads beyond it will show."""
    room = np.full((len(M) + rows, M.shape[1]), np.nan, M.dtype)
    room[: len(M)] = M
    return room[: len(M)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ahead", [0, 32])
@pytest.mark.parametrize("r", [2, 4, 6, 8, 10, 16, 18])
def test_outer_products_of_every_width(r, ahead, dtype):
    rng = np.random.default_rng(0)
    for rows in (1, 5):
        X, G = rng.random((rows + 2, 41)).astype(dtype), rng.random((rows, r)).astype(dtype)
        for width in range(1, 42):
            given = surrounded(np.ascontiguousarray(X[:, :width]))
            C = np.ones((r, 64), dtype)
            outer(G, given, 2, 0, width, ahead, C)
            np.testing.assert_allclose(C[:, :width], 1 + G.T @ X[2:, :width], rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ahead", [0, 32])
@pytest.mark.parametrize("r", [2, 4, 6, 8, 10, 16, 18])
def test_inner_products_of_every_width(r, ahead, dtype):
    """In float64 whatever X's type, so that float32 loses nothing further."""
    rng = np.random.default_rng(0)
    for height in (1, 4, 5):
        for width in range(1, 42):
            X, G = rng.random((height + 1, width)).astype(dtype), rng.random((r, width))
            out = np.ones((up_to(2, height), up_to(8, r)))
            inner(surrounded(X), 1, height, 0, width, ahead, padded(G, float, 1, 16), out)
            expected = 1 + X[1:].astype(float) @ G.T
            np.testing.assert_allclose(out[:height, :r], expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("r", [2, 6, 8, 10, 12, 34])
def test_a_matrix_times_two_vectors_of_columns(r, dtype):
    rng = np.random.default_rng(0)
    width = 128 // np.dtype(dtype).itemsize
    A = rng.random((r, r)).astype(dtype)
    A, M, C = A + A.T, rng.random((r, 40)).astype(dtype), rng.random((r, 40)).astype(dtype)
    out = np.empty((r, width), dtype)
    gradient(C, 5, A, M, 3, out)
    np.testing.assert_allclose(out, C[:, 5 : 5 + width] + A @ M[:, 3 : 3 + width], rtol=1e-5)


@numba.njit
def arithmetic(a, b, out):
    for j in range(0, a.shape[1], lanes(a)):
        x, y = load(a, 0, j), load(b, 0, j)
        store((x + y) * x - y / splat(a, 2), out, 0, j)
        store(sqrt(maximum(x, splat(a, 0))), out, 1, j)
        store(minimum(x, y), out, 2, j)
        store(where_at_most(x, y, x + x, splat(a, -1)), out, 3, j)
        out[4, j] = total(x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_registers_do_numpys_arithmetic(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 1, 64)).astype(dtype)
    out = np.zeros((5, 64), dtype)
    arithmetic(a, b, out)
    width = 64 // np.dtype(dtype).itemsize
    expected = [(a + b) * a - b / 2, np.sqrt(np.maximum(a, 0)), np.minimum(a, b)]
    expected.append(np.where(a <= b, 2 * a, -1))
    np.testing.assert_allclose(out[:4], np.vstack(expected), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out[4, ::width], a.reshape(-1, width).sum(axis=1), rtol=1e-4)


def test_what_is_not_a_number_is_never_below():
    a, b = np.full((1, 16), np.nan), np.ones((1, 16))
    out = np.zeros((5, 16))
    arithmetic(a, b, out)
    np.testing.assert_array_equal(out[3], -1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 6, 16, 33])
def test_aligned_zeros_begin_at_a_cache_line(columns, dtype):
    for _ in range(5):
        M = aligned(3, columns, dtype)
        assert M.ctypes.data % 64 == 0
        assert M.flags.c_contiguous
        assert M.shape == (3, columns)
        assert not M.any()
