"""Errors on samples that no fit has seen, and ranks of sparse data, which are never made dense."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

from deepmf import factorize, scan
from deepmf.data.on_disk import OnDisk
from deepmf.selection.halves import PARTS, Halves, completion_errors, halves
from deepmf.selection.scan import _fit, _Task

pytestmark = pytest.mark.filterwarnings("ignore:X looks like raw counts")


def counts(rank, shape=(120, 240), mean=0.18, seed=1):
    """Poisson counts of sparse topics; about one entry in ten is not zero."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.3, size=(shape[0], rank)) @ rng.gamma(0.3, size=(rank, shape[1]))
    return sparse.csc_array(rng.poisson(mean * X / X.mean()).astype(float))


def rows_in_parts(m):
    return np.random.default_rng(1).permutation(m) % PARTS


# --- the measure ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Layer")  # fits of which nothing else is asked
@pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer"])
@pytest.mark.parametrize("constraint", ["nonnegative", "simplex", "box"])
def test_errors_are_those_of_the_dense_formula(model, constraint):
    """Dense data, whose hidden rows have weight 0, are coded in another way altogether."""
    X = counts(3, (40, 60)).toarray()
    old, new = X[:, :45], X[:, 45:]
    f = factorize(
        old, [4, 2], model=model, constraint_H=constraint, init="random", random_state=0, tol=1e-3
    )
    parts = rows_in_parts(len(X))
    missed = np.zeros(2)
    for part in range(PARTS):
        hidden = parts == part
        H = f.encode(new, weights=np.broadcast_to(~hidden[:, None], new.shape))
        for layer, B in enumerate((f.W[0], f.W[1] @ f.H[1])):
            missed[layer] += np.sum(np.square(new - B @ H)[hidden])
    got = completion_errors(f, sparse.csc_array(new), parts)
    np.testing.assert_allclose(got, np.sqrt(missed) / np.linalg.norm(new), rtol=1e-5)


def test_codes_are_the_best_ones_of_the_rows_that_are_known():
    X = counts(3, (40, 60)).toarray()
    f = factorize(X[:, :45], [4], tol=1e-3)
    parts = rows_in_parts(len(X))
    missed = 0.0
    for part in range(PARTS):
        hidden = parts == part
        for x in X[:, 45:].T:
            code = nnls(f.W[0][~hidden], x[~hidden])[0]
            missed += np.sum(np.square(x - f.W[0] @ code)[hidden])
    got = completion_errors(f, sparse.csc_array(X[:, 45:]), parts)
    np.testing.assert_allclose(got, np.sqrt(missed) / np.linalg.norm(X[:, 45:]), rtol=1e-5)


@pytest.mark.parametrize("hierarchy", ["components", "codes"])
def test_dense_and_missing_entries_are_judged_alike(hierarchy):
    """Where nothing of a sample is known or told, it does not count."""
    X = counts(3, (40, 60)).toarray() + 0.01
    f = factorize(X[:, :45], [4, 2], hierarchy=hierarchy, init="nndsvd", tol=1e-3)
    parts, new = rows_in_parts(len(X)), X[:, 45:]
    dense = completion_errors(f, new, parts)
    np.testing.assert_allclose(completion_errors(f, sparse.csc_array(new), parts), dense, rtol=1e-6)
    np.testing.assert_allclose(completion_errors(f, new, parts, "observed"), dense, rtol=1e-3)
    holed = np.column_stack([new, np.where(parts == 0, 1.0, np.nan)])
    np.testing.assert_allclose(completion_errors(f, holed, parts, "observed"), dense, rtol=1e-3)


def test_the_other_half_is_not_seen():
    """Changing it changes nothing but the error."""
    X = counts(3)
    task = _Task(Halves(X), (3, 2), 1, 0, {"max_iter": 20, "tol": 0})
    moved, other = X.toarray(), np.random.default_rng([0, 0]).permutation(240) % 2 == 0
    moved[:, other] = moved[::-1, other]
    one, two = _fit(task), _fit(task._replace(data=Halves(sparse.csc_array(moved))))
    np.testing.assert_array_equal(one.bases[0], two.bases[0])
    assert (one.errors != two.errors).all()


def test_samples_without_entries_are_left_out():
    X = counts(3)
    X.data[: X.indptr[50]] = 0  # written down, but no entries
    kept = halves(X).X
    np.testing.assert_array_equal(kept.toarray(), X.toarray()[:, X.toarray().any(axis=0)])
    half = Halves(kept).half(0, 3)
    assert half.seen.format == half.other.format == "csc"
    assert np.ptp(np.bincount(half.parts)) <= 1


# --- scans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [3, 5])
def test_the_true_rank_of_counts_is_found(rank):
    X = counts(rank, (150, 300))
    s = scan(X, range(rank - 2, rank + 3), tol=1e-4)
    assert (s.choice.ranks, s.choice.sure) == ((rank,), True)
    assert "the error on hidden features" in s.choice.sentence
    assert s.to_dict()["samples"] == s.samples == np.count_nonzero(X.sum(axis=0))


def test_counts_by_chance_give_no_rank():
    X = sparse.csc_array(np.random.default_rng(0).poisson(0.1, (120, 240)).astype(float))
    s = scan(X, range(1, 6), tol=1e-3)
    assert not s.choice.sure
    assert s.choice.sentence.startswith("Not sure: no rank tested lowers the error on hidden")


def test_layers_constraints_and_kinds_of_numbers():
    X = counts(3, (60, 100)).astype(np.float32)
    few = {"splits": 2, "max_iter": 10, "tol": 0}
    s = scan(sparse.csr_matrix(X), [2, [3, 2]], constraint_H="simplex", model="data-centric", **few)
    assert s.candidates[1].errors.shape == (4, 2)
    assert all(0 < c.errors.min() <= c.errors.max() < np.inf for c in s.candidates)
    same = scan(X.tocoo(), [2, [3, 2]], constraint_H="simplex", model="data-centric", **few)
    np.testing.assert_array_equal(s.candidates[1].errors, same.candidates[1].errors)
    other = scan(X, [2, [3, 2]], model="data-centric", random_state=1, **few)
    assert (other.candidates[1].errors != same.candidates[1].errors).all()


def test_processes_change_nothing():
    few = {"splits": 2, "max_iter": 5, "tol": 0}
    one, two = (scan(counts(3, (60, 100)), [2, [3, 2]], jobs=jobs, **few) for jobs in (1, 2))
    for a, b in zip(one.candidates, two.candidates):
        np.testing.assert_allclose(a.errors, b.errors, rtol=1e-8)
        np.testing.assert_allclose(a.agreements, b.agreements, rtol=1e-8)


def test_nothing_is_made_dense():
    few = {"splits": 2, "max_iter": 3, "tol": 0}
    scan(counts(3, (60, 100)), [2, [3, 2]], **few)  # what is compiled or imported is so before
    X = sparse.random_array((10_000, 10_000), density=5e-4, rng=0, format="csc")
    tracemalloc.start()
    try:
        scan(X, [2, [3, 2]], **few)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * np.prod(X.shape) / (4 * PARTS), "not even what is judged at a time"


def test_a_fit_that_diverged_has_no_finite_error():
    X = counts(3, (40, 60))
    f = factorize(X, [3], max_iter=2, tol=0)
    f.W[0][0] = np.nan
    assert np.isinf(completion_errors(f, X, rows_in_parts(40))).all()


# --- other kinds of data, and bad input ----------------------------------------------------------


def test_data_on_disk_are_brought_into_memory():
    X = counts(3, (30, 60)).toarray()
    kept = X[:, X.any(axis=0)]
    np.testing.assert_array_equal(halves(OnDisk(X)).X, kept)


def test_bad_data_get_a_sentence():
    X = counts(3, (60, 100))
    with pytest.raises(ValueError, match=r"NaN or infinite.*Remove or fill them first\.$"):
        scan(X * np.nan, [1, 2])
    with pytest.raises(ValueError, match="only 3 samples that are not all zeros, too few"):
        scan(sparse.csc_array(np.ones((60, 3))), [1, 2])
    with pytest.raises(ValueError, match="only one feature"):
        scan(sparse.csc_array(X.sum(axis=0)[None]), [1, 2])
    with pytest.raises(ValueError, match="does not use a device, got 'cuda'; leave out device"):
        scan(X, [1, 2], device="cuda")
    bad = X.tolil()
    bad[5, 97] = -1
    with pytest.raises(ValueError, match="at row 5, column 97"):
        scan(bad, [1, 2])
