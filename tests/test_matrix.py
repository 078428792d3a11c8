"""Every kind of X behind one interface: types, statistics, masks, and how often X is read."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepmf import DeepMF, factorize, scan
from deepmf.data import on_disk
from deepmf.data.matrix import Matrix, Stats
from deepmf.data.on_disk import OnDisk
from deepmf.data.validation import as_matrix

X = np.random.default_rng(0).random((8, 300))
X[:, 7] = 0
SHORT = {"max_iter": 3, "tol": 0, "random_state": 0}


def tensor(A):
    return pytest.importorskip("torch").from_numpy(np.ascontiguousarray(A))


def dask(A):
    return pytest.importorskip("dask.array").from_array(A, chunks=(-1, 90))


KINDS = {
    "array": np.array,
    "fortran": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "on disk": OnDisk,
    "tensor": tensor,
}
kinds = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


# --- types ---------------------------------------------------------------------------------------

INTEGERS = ["?", "u1", "i2", "u2", "i4", "i8"]


@pytest.mark.parametrize("dtype", [*INTEGERS, "f2", "f4", ">f4", "f8"])
@pytest.mark.parametrize("large", [False, True])
def test_one_rule_for_types_wherever_x_is(tmp_path, monkeypatch, dtype, large):
    """float32 stays float32, all else becomes float64, on disk too and whatever the size."""
    monkeypatch.setattr(on_disk, "_LARGE", 0 if large else 1 << 28)
    A = (9 * X).astype(dtype)
    np.save(tmp_path / "x.npy", A)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    expected = np.float32 if dtype in ("f4", ">f4") else np.float64
    assert isinstance(as_matrix(mapped), OnDisk) == large
    for given in (A, mapped, OnDisk(A)):
        f = factorize(given, [2], **SHORT)
        assert f.W[0].dtype == f.H[0].dtype == f.encode(given).dtype == expected


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "f4", "f8"])
def test_the_rule_holds_for_other_libraries(dtype):
    A = (9 * X).astype(dtype)
    expected = np.float32 if dtype == "f4" else np.float64
    assert as_matrix(dask(A)).dtype == expected
    if dtype[0] == "f":
        assert as_matrix(tensor(A)).dtype == expected


# --- statistics ----------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [False, True], ids=["columns", "rows"])
def test_statistics(make, dtype, rows):
    A = (X - 0.5 * (X > 0.9)).astype(dtype)
    A[3, 5] = -2
    given = as_matrix(make(A.T if rows else A), samples="rows" if rows else "columns")
    low, high, total, norm2, norms2 = given.stats
    assert (given.shape, given.dtype, low, high) == (A.shape, dtype, A.min(), A.max())
    wide = A.astype(float)
    np.testing.assert_allclose(norms2, np.sum(wide**2, axis=0), rtol=1e-12)
    assert (total, norm2) == pytest.approx((wide.sum(), np.sum(wide**2)), rel=1e-12)
    found = given.find(lambda values: values < -1)
    assert found == (1, *((5, 3) if rows else (3, 5)), -2)
    assert given.find(lambda values: values > 3) is None
    np.testing.assert_array_equal(given.numpy(), A)


@pytest.mark.parametrize("A", [np.zeros((3, 4)), np.eye(3, 70), -np.eye(70, 3)], ids=repr)
def test_statistics_of_sparse_matrices_count_zeros(A):
    for kind in (sparse.csr_array, sparse.csc_array):
        low, high, total, norm2, norms2 = as_matrix(kind(A)).stats
        assert (low, high, total, norm2) == (A.min(), A.max(), A.sum(), np.sum(A**2))
        np.testing.assert_array_equal(norms2, np.sum(A**2, axis=0))


def test_the_transpose_names_places_of_the_users_matrix():
    A = X.copy()
    A[6, 9] = A[2, 11] = -1
    assert as_matrix(A.T, samples="rows").find(lambda v: v < 0)[:3] == (2, 9, 6)
    with pytest.raises(ValueError, match=r"first -1 at row 9, column 6"):
        DeepMF([2], **SHORT).fit(A.T)
    A[6, 9] = np.nan
    with pytest.raises(ValueError, match=r"first nan at row 9, column 6"):
        DeepMF([2], allow_negative=True, **SHORT).fit(A.T)


def test_samples_without_entries_are_rows_of_the_estimators_matrix():
    seen = np.ones(X.shape[::-1], dtype=bool)
    seen[4] = False
    with pytest.raises(ValueError, match="1 rows of X have no observed entry, the first row 4"):
        DeepMF([2], **SHORT).fit(X.T, weights=seen)
    with pytest.raises(ValueError, match=r"1 columns of X .* the first column 4"):
        factorize(X, [2], weights=seen.T, **SHORT)


# --- how often X is read -------------------------------------------------------------------------


class Source:
    """A matrix that counts how often its columns are read."""

    def __init__(self, A):
        self.A, self.shape, self.dtype, self.read = A, A.shape, A.dtype, 0

    def __getitem__(self, key):
        block = self.A[key]
        self.read += block.shape[1]
        return block


@pytest.mark.parametrize("weights", [None, "observed", np.ones(X.shape)], ids=["", "nan", "ones"])
def test_a_fit_reads_x_once_before_its_start(weights):
    source, passes = Source(X), []

    def start(panels, rank, rng):
        passes.append(source.read / X.shape[1])
        return X[:, 20 : 20 + rank]

    factorize(OnDisk(source), [2], weights=weights, init=start, **SHORT)
    assert passes == [1]


@pytest.mark.parametrize("fit", [lambda A, s: factorize(A, [2], **s),
                                 lambda A, s: DeepMF([2], **s).fit(A.T)])  # fmt: skip
def test_statistics_are_gathered_once(fit, monkeypatch):
    seen, of = [], Stats.of
    monkeypatch.setattr(Stats, "of", lambda block: seen.append(block.shape) or of(block))
    fit(X, SHORT)
    assert [shape for shape in seen if shape != (8, 2)] == [X.shape]  # W is checked too


def test_a_matrix_is_not_checked_again():
    source = Source(X)
    A = as_matrix(OnDisk(source))
    assert source.read == X.shape[1]
    assert as_matrix(A) is A
    assert source.read == X.shape[1]


class Untouchable:
    """Data that must not be looked at."""

    def __getattr__(self, name):
        raise AssertionError(f"X was asked for its {name}")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"ranks": 0}, "ranks"),
        ({"model": "deep"}, "Unknown model"),
        ({"constraint_W": "positive"}, "Unknown constraint"),
        ({"tol": -1}, "tol"),
        ({"max_iter": 1.5}, "max_iter"),
        ({"init": "best"}, "Unknown init"),
        ({"random_state": "lucky"}, "not a seed"),
        ({"checkpoint": {"interval": 1}}, "checkpoint must have a path"),
    ],
    ids=str,
)
def test_settings_are_checked_before_x_is_touched(bad, said):
    settings = {"ranks": [2]} | bad
    with pytest.raises(ValueError, match=said):
        factorize(Untouchable(), **settings)
    with pytest.raises(ValueError, match=said):
        DeepMF(**settings).fit(Untouchable())
    with pytest.raises(ValueError, match="panel_size"):
        factorize(Untouchable(), 2, panel_size=0)


# --- masks ---------------------------------------------------------------------------------------

HIDDEN = np.random.default_rng(1).random(X.shape) < 0.2
HIDDEN[:, 7] = False
MASKED = np.ma.array(np.where(HIDDEN, 99.0, X), mask=HIDDEN)
HOLED = np.where(HIDDEN, np.nan, X)


def assert_same(f, g):
    for a, b in zip(f.W + f.H, g.W + g.H, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_masked_entries_are_missing():
    expected = factorize(HOLED, [3, 2], weights="observed", **SHORT)
    assert_same(factorize(MASKED, [3, 2], **SHORT), expected)
    assert_same(factorize(MASKED, [3, 2], weights="observed", **SHORT), expected)
    model = DeepMF([3, 2], **SHORT).fit(MASKED.T)
    assert_same(model.factorization_, expected)
    assert model.score(MASKED.T) == pytest.approx(model.score(HOLED.T, weights="observed"))
    np.testing.assert_array_equal(
        model.transform(MASKED.T), model.transform(HOLED.T, weights="observed")
    )
    np.testing.assert_array_equal(
        expected.encode(MASKED), expected.encode(HOLED, weights="observed")
    )
    assert expected.squared_error(MASKED) == expected.squared_error(HOLED, weights="observed")


def test_masked_integers_are_missing():
    A = (99 * X).astype(np.uint8)
    masked = np.ma.array(A, mask=HIDDEN)
    expected = factorize(np.where(HIDDEN, np.nan, A), [3], weights="observed", **SHORT)
    assert_same(factorize(masked, [3], **SHORT), expected)
    assert_same(DeepMF([3], **SHORT).fit(masked.T).factorization_, expected)


def test_masked_entries_have_no_weight():
    V = np.random.default_rng(2).random(X.shape)
    expected = factorize(X, [3], weights=np.where(HIDDEN, 0, V), **SHORT)
    assert_same(factorize(MASKED, [3], weights=V, **SHORT), expected)
    assert_same(DeepMF([3], **SHORT).fit(MASKED.T, weights=V.T).factorization_, expected)
    some = V > 0.1
    expected = factorize(X, [3], weights=some & ~HIDDEN, **SHORT)
    assert_same(factorize(MASKED, [3], weights=some, **SHORT), expected)
    nan = MASKED.copy()
    nan.data[1, 1] = np.nan
    nan.mask[1, 1] = False
    hidden = HIDDEN.copy()
    hidden[1, 1] = True
    expected = factorize(X, [3], weights=~hidden, **SHORT)
    assert_same(factorize(nan, [3], weights="observed", **SHORT), expected)
    with pytest.raises(ValueError, match="NaN or infinite, the first nan at row 1, column 1"):
        factorize(nan, [3], **SHORT)


def test_a_mask_that_hides_nothing_is_none():
    assert_same(factorize(np.ma.array(X), [3], **SHORT), factorize(X, [3], **SHORT))
    np.testing.assert_array_equal(as_matrix(np.ma.array(X, mask=False)).numpy(), X)


def test_a_scan_takes_masked_entries_for_missing():
    settings = {"splits": 2, "max_iter": 5}
    data = X[:, :40]
    masked = np.ma.array(data, mask=HIDDEN[:, :40])
    a, b = (scan(Z, [[1], [2]], **settings) for Z in (masked, HOLED[:, :40]))
    np.testing.assert_array_equal(a.table()[1], b.table()[1])


MASKED_FACTOR = np.ma.array(np.ones((8, 3)), mask=np.eye(8, 3, dtype=bool))


@pytest.mark.parametrize(
    "use",
    [
        lambda: DeepMF([3], **SHORT).fit(X.T).inverse_transform(MASKED_FACTOR),
        lambda: factorize(X, [3], weights=MASKED, **SHORT),
        lambda: factorize(X, [3], **{**SHORT, "init": ([MASKED_FACTOR], [np.ones((3, 300))])}),
    ],
    ids=["codes", "weights", "init"],
)
def test_masked_factors_and_weights_are_refused(use):
    with pytest.raises(ValueError, match=r"has masked entries; fill them first, .*\.filled\(0\)"):
        use()


# --- a kind of one's own -------------------------------------------------------------------------


class Product(Matrix):
    """X = U V with what every kind must have."""

    def __init__(self, U, V):
        self.U, self.V, self.reads = U, V, 0
        self.shape, self.dtype = (len(U), V.shape[1]), V.dtype

    def blocks(self):
        self.reads += 1
        yield 0, self.U @ self.V

    def panels(self, width):
        return as_matrix(self.U @ self.V).panels(width)


def test_a_kind_of_ones_own_is_read_once():
    rng = np.random.default_rng(0)
    data = Product(rng.random((6, 2)), rng.random((2, 40)))
    f = factorize(data, [2], **SHORT)
    assert data.reads == 1
    assert_same(f, factorize(data.U @ data.V, [2], **SHORT))
    with pytest.raises(TypeError, match="Product has no transpose, which DeepMF needs"):
        DeepMF([2]).fit(data)
