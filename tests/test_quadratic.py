"""The quadratic of one block against explicit Kronecker matrices."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf import Quadratic
from deepmf.core.quadratic import largest_eigenvalue

ROWS, COLS = 4, 3


def psd(size, seed, rank=None):
    F = np.random.default_rng(seed).standard_normal((size, rank or size + 1))
    return F @ F.T


def matrix(size, side):
    return side * np.eye(size) if np.ndim(side) == 0 else side


def explicit(q, rows=ROWS, cols=COLS):
    """(Q, c) with f(M) = 1/2 vec(M)' Q vec(M) - c' vec(M), columns stacked."""
    Q = np.zeros((rows * cols, rows * cols))
    for A, B in q.terms:
        Q += np.kron(matrix(cols, B).T, matrix(rows, A))
    C = np.broadcast_to(q.C, (rows, cols))
    return Q, C.ravel(order="F")


def same(q, p, rows=ROWS, cols=COLS):
    for a, b in zip(explicit(q, rows, cols), explicit(p, rows, cols)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


SIDES = {
    "identity": (1.0, 1.0),
    "scaled identity": (0.5, 3.0),
    "left": (psd(ROWS, 0), 1.0),
    "left, scaled": (psd(ROWS, 1), 2.0),
    "right": (1.0, psd(COLS, 2)),
    "right, scaled": (3.0, psd(COLS, 3)),
    "both": (psd(ROWS, 4), psd(COLS, 5)),
    "deficient": (psd(ROWS, 6, 2), psd(COLS, 7, 1)),
}
C = np.random.default_rng(8).standard_normal((ROWS, COLS))
TERMS = pytest.mark.parametrize("terms", SIDES.values(), ids=SIDES.keys())


def vec(M):
    return M.ravel(order="F")


@TERMS
@pytest.mark.parametrize("linear", [C, -1.0, C[:, :1], C[:1]], ids=["full", "number", "col", "row"])
def test_gradient_hessian_and_change(terms, linear):
    q = Quadratic.of(*terms, linear)
    Q, c = explicit(q)
    rng = np.random.default_rng(0)
    M, D = rng.standard_normal((2, ROWS, COLS))
    np.testing.assert_allclose(vec(q.hessian(M)), Q @ vec(M), atol=1e-12)
    np.testing.assert_allclose(vec(q.gradient(M)), Q @ vec(M) - c, atol=1e-12)

    def f(Z):
        return 0.5 * vec(Z) @ Q @ vec(Z) - c @ vec(Z)

    assert q.change(M, D) == pytest.approx(f(M + D) - f(M), rel=1e-10)


def test_change_is_free_of_cancellation():
    """A step of 1e-9 changes f by about 1e-18 of its value, which two values cannot show."""
    q = Quadratic.of(A=psd(ROWS, 0), B=psd(COLS, 1), C=np.zeros((ROWS, COLS)))
    M = np.linalg.inv(psd(ROWS, 0)) @ C
    best = Quadratic(q.terms, q.hessian(M))  # minimized at M
    D = 1e-9 * np.random.default_rng(0).standard_normal(M.shape)
    exact = 0.5 * 1e-18 * np.sum((D / 1e-9) * q.hessian(D / 1e-9))
    assert best.change(M, D) == pytest.approx(exact, rel=1e-3)


@TERMS
def test_lipschitz_of_one_term_is_exact(terms):
    q = Quadratic.of(*terms, C)
    Q, _ = explicit(q)
    assert q.lipschitz() == pytest.approx(np.linalg.eigvalsh(Q)[-1], rel=1e-12)


def test_lipschitz_of_several_terms_is_a_bound():
    q = Quadratic(tuple(SIDES.values()), C)
    top = np.linalg.eigvalsh(explicit(q)[0])[-1]
    assert top <= q.lipschitz() <= 2 * top


def test_largest_eigenvalue_is_never_negative():
    assert largest_eigenvalue(-1e-20 * np.eye(3)) == 0
    assert largest_eigenvalue(2.5) == 2.5


@TERMS
@pytest.mark.parametrize("other", SIDES.values(), ids=SIDES.keys())
def test_sum(terms, other):
    q, p = Quadratic.of(*terms, C), Quadratic.of(*other, 2 * C)
    total = q + p
    Q = [a + b for a, b in zip(explicit(q), explicit(p))]
    for a, b in zip(explicit(total), Q):
        np.testing.assert_allclose(a, b, atol=1e-12)
    same(total, p + q)


def test_sums_merge_where_a_side_is_the_identity():
    left, right = Quadratic.of(A=psd(ROWS, 0)), Quadratic.of(B=psd(COLS, 1))
    assert len((left + left).terms) == 1
    assert len((right + right).terms) == 1
    assert len((left + Quadratic.of()).terms) == 1
    assert len((Quadratic.of() + right).terms) == 1
    assert len((left + right).terms) == 2
    assert len((left + right + left + right).terms) == 2
    # merged terms keep the Lipschitz constant exact
    for q in (left + left, left + Quadratic.of(), right + 0.5 * Quadratic.of()):
        top = np.linalg.eigvalsh(explicit(q)[0])[-1]
        assert q.lipschitz() == pytest.approx(top, rel=1e-12)


def test_sum_with_a_linear_function():
    q = Quadratic.of(A=psd(ROWS, 0), C=C) + Quadratic(C=-1.0)
    np.testing.assert_allclose(q.C, C - 1)
    same(Quadratic(C=-1.0) + Quadratic.of(A=psd(ROWS, 0), C=C), q)
    assert (Quadratic(C=-1.0) + Quadratic(C=-2.0)).C == -3.0


@TERMS
@pytest.mark.parametrize("weight", [0.0, 2.5, 3, np.float64(2.5), np.float32(2.5), np.int64(2)])
def test_scalar_multiple(terms, weight):
    q = Quadratic.of(*terms, C)
    scaled = weight * q
    assert isinstance(scaled, Quadratic)
    for a, b in zip(explicit(scaled), explicit(q)):
        np.testing.assert_allclose(a, weight * b, atol=1e-12)
    # and it still takes part in everything else
    same(scaled + q, (weight + 1.0) * q)
    assert scaled.lipschitz() == pytest.approx(float(weight) * q.lipschitz(), rel=1e-6)
    assert scaled.column_separable == q.column_separable
    M = np.ones((ROWS, COLS))
    np.testing.assert_allclose(scaled.T.gradient(M.T), scaled.gradient(M).T, atol=1e-12)


def test_multiple_of_a_linear_function():
    for weight in (0.5, np.float64(0.5)):
        q = weight * Quadratic(C=-1.0)
        assert q.C == -0.5
        assert q.T.C == -0.5


@TERMS
@pytest.mark.parametrize("linear", [C, -1.0, C[:, :1], C[:1]], ids=["full", "number", "col", "row"])
def test_transpose(terms, linear):
    q = Quadratic.of(*terms, linear)
    M, D = np.random.default_rng(0).standard_normal((2, ROWS, COLS))
    np.testing.assert_allclose(q.T.gradient(M.T), q.gradient(M).T, atol=1e-12)
    assert q.T.change(M.T, D.T) == pytest.approx(q.change(M, D))
    assert q.T.lipschitz() == pytest.approx(q.lipschitz())
    same(q.T.T, q)


def test_column_separability():
    separable = [name for name, terms in SIDES.items() if Quadratic.of(*terms, C).column_separable]
    assert separable == ["identity", "scaled identity", "left", "left, scaled"]
    for name, (A, B) in SIDES.items():
        q = Quadratic.of(A, B, C)
        E = np.zeros((ROWS, COLS))
        E[:, 0] = 1
        mixes = np.abs(q.hessian(E)[:, 1:]).max() > 1e-12
        assert mixes == (not q.column_separable), name


def test_columns_add_up():
    q = Quadratic.of(A=psd(ROWS, 0), B=2.0, C=C)
    M, D = np.random.default_rng(0).standard_normal((2, ROWS, COLS))
    pieces = (Quadratic(q.terms, C[:, [j]]).change(M[:, [j]], D[:, [j]]) for j in range(COLS))
    assert sum(pieces) == pytest.approx(q.change(M, D))


def arrays(q):
    """All parts of q that are matrices."""
    return [part for part in [q.C, *(side for term in q.terms for side in term)] if np.ndim(part)]


@TERMS
def test_astype(terms):
    q = Quadratic.of(*terms, C).astype(np.dtype(np.float32))
    M = np.ones((ROWS, COLS), dtype=np.float32)
    assert q.gradient(M).dtype == np.float32
    assert all(part.dtype == np.float32 for part in arrays(q))
    np.testing.assert_allclose(q.gradient(M), Quadratic.of(*terms, C).gradient(M), atol=1e-4)
    back = q.astype(np.dtype(np.float64))
    assert back.gradient(M.astype(float)).dtype == np.float64


def test_astype_of_a_sum():
    """Merging makes float64 identities; a float32 problem must stay one."""
    q = Quadratic.of(A=psd(ROWS, 0).astype(np.float32)) + 0.3 * Quadratic.of()
    assert all(part.dtype == np.float32 for part in arrays(q.astype(np.dtype(np.float32))))


def test_nothing_is_changed_in_place():
    A, B, L = psd(ROWS, 0), psd(COLS, 1), C.copy()
    q = Quadratic.of(A, B, L)
    M = np.ones((ROWS, COLS))
    kept = [x.copy() for x in (A, B, L, M)]
    q + q, 2.0 * q, q.T, q.gradient(M), q.change(M, M), q.lipschitz(), q.astype(np.dtype("f4"))
    for now, before in zip((A, B, L, M), kept):
        np.testing.assert_array_equal(now, before)
    with pytest.raises(AttributeError):
        q.C = 0.0
