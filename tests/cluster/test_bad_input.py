"""Bad input gets a sentence, and nothing hangs."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from deepmf import DeepMF, GroupedSparse, __version__, factorize
from deepmf.data.dask import pool

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


def lazy(A, chunks=None):
    return da.from_array(A, chunks=chunks or (A.shape[0], 100))


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda X: lazy(X.astype(complex)), TypeError, "X is complex .complex128.; pass its real"),
        (lambda X: lazy(X.astype(object)), TypeError, "must hold real numbers, got .* object"),
        (lambda X: lazy(X.astype("U8")), TypeError, "must hold real numbers"),
        (lambda X: da.ones(7, chunks=3), ValueError, r"matrix \(2-D\), got .*shape \(7,\)"),
        (lambda X: da.ones((2, 3, 4), chunks=2), ValueError, r"2-D.*\(2, 3, 4\)"),
        (lambda X: lazy(X)[:, lazy(X)[0] > 1], ValueError, r"unknown chunk.*compute_chunk_sizes"),
        (lambda X: lazy(X)[:, :0], ValueError, r"X is empty: its shape is \(12, 0\)"),
        (lambda X: lazy(0 * X), ValueError, "X is all zeros"),
        (lambda X: lazy(1e200 * X), ValueError, "largest entry is .*Divide X by"),
    ],
)
def test_what_cannot_be_a_matrix(client, X, make, kind, message):
    with pytest.raises(kind, match=message):
        factorize(make(X), [4])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_that_are_not_finite(client, X, bad):
    A = X.copy()
    A[5, 430], A[7, 20], A[5, 650] = bad, bad, bad
    with pytest.raises(ValueError, match=r"X has 3 entries that are NaN.*row 5, column 430\."):
        factorize(lazy(A), [4])
    with pytest.raises(ValueError, match=r"X has 3 entries that are NaN.*row 20, column 7\."):
        DeepMF([4]).fit(lazy(A.T, (100, 12)))


def test_negative_entries(client, X):
    A = X.copy()
    A[5, 430], A[7, 20] = -1, -2
    message = r"2 negative entries \(first -1 at row 5, column 430; smallest -2\)"
    with pytest.raises(ValueError, match=message):
        factorize(lazy(A), [4])
    with pytest.raises(ValueError, match=r"2 negative entries \(first -2 at row 20, column 7"):
        DeepMF([4]).fit(lazy(A.T, (100, 12)))
    assert factorize(lazy(A), [4], allow_negative=True, max_iter=2, tol=0).n_iter == 2


def test_new_data_are_checked_as_they_are_computed(client, X):
    model = DeepMF([4], max_iter=2, tol=0).fit(lazy(X.T, (100, 12)))
    A = X.T.copy()
    A[430, 5] = -1
    codes = model.transform(lazy(A, (100, 12)))
    with pytest.raises(ValueError, match="1 negative entry"):
        codes.compute()
    A[430, 5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.factorization_.encode(lazy(A.T)).compute()
    with pytest.raises(ValueError, match="5 features, but DeepMF is expecting 12"):
        model.transform(da.ones((7, 5)))
    with pytest.raises(ValueError, match="X has 5 rows, but the factorization was fitted to 12"):
        model.factorization_.encode(da.ones((5, 7)))


def test_a_set_that_ties_all_columns(client, X):
    settings = {"constraint_H": [GroupedSparse(0.5), None]}
    with pytest.raises(ValueError, match=r"GroupedSparse.*ties all.*Dask.*X\.compute\(\)"):
        factorize(lazy(X), [4, 2], **settings)
    f = factorize(X, [4, 2], max_iter=2, tol=0, **settings)
    with pytest.raises(ValueError, match="ties all its columns"):
        f.encode(lazy(X))


def test_settings_are_refused_before_anything_is_loaded(X):
    def touched(block):
        raise AssertionError("loaded")

    D = lazy(X).map_blocks(touched, dtype=float, meta=np.empty((0, 0)))
    for settings in ({"model": "nonsense"}, {"max_iter": -1}, {"constraint_W": "nonsense"}):
        with pytest.raises(ValueError, match=r"nonsense|max_iter"):
            factorize(D, [4], **settings)


def test_errors_of_the_data_themselves_come_through(client, X):
    D = lazy(X).map_blocks(_broken, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ZeroDivisionError, match="a broken file"):
        factorize(D, [4])


def _broken(block):
    raise ZeroDivisionError("a broken file")


def test_no_workers(new_cluster, X, monkeypatch):
    monkeypatch.setattr(pool, "_WAIT", 0.5)
    with (
        new_cluster(n_workers=0, processes=False) as client,
        client.as_current(),
        pytest.raises(RuntimeError, match=r"has no workers, and none came within 0 s"),
    ):
        factorize(lazy(X), [4])


def test_workers_of_another_version(client, X, monkeypatch):
    monkeypatch.setattr("deepmf._utils.version.__version__", "0.0.9")
    theirs = re.escape(__version__)
    with pytest.raises(
        RuntimeError, match=rf"2 of .* 2 workers .*deepmf is {theirs}, but here it is 0\.0\.9"
    ):
        factorize(lazy(X), [4])


def test_an_asynchronous_client(client, X):
    async def fit():
        address = client.scheduler.address
        async with distributed.Client(address, asynchronous=True, set_as_default=False) as other:
            with other.as_current():
                factorize(lazy(X), [4])

    with pytest.raises(TypeError, match="client in use is asynchronous"):
        asyncio.run(fit())


def test_codes_too_large_for_this_process(client, monkeypatch):
    from distributed import system

    from deepmf.data.matrix import as_numpy

    monkeypatch.setattr(system, "MEMORY_LIMIT", 1000)
    with pytest.raises(MemoryError, match=r"to_zarr\(path\), and the rest with f\.save"):
        as_numpy(da.ones((4, 1000)))


def test_without_distributed():
    code = """
        import sys
        import numpy as np, dask.array as da
        sys.modules["distributed"] = None
        from deepmf import factorize
        try:
            factorize(da.ones((4, 9)), [2])
        except ImportError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert "pip install 'deepmf[cluster]'" in done.stdout, done.stderr


def test_dask_is_not_imported_for_others():
    code = """
        import sys
        import numpy as np
        from deepmf import DeepMF
        model = DeepMF([2], max_iter=1, tol=0).fit(np.ones((9, 4)) + np.eye(9, 4))
        model.transform(np.ones((9, 4)))
        print({"dask", "distributed"} & set(sys.modules))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_counts_that_a_recipe_cannot_scale_are_said(client):
    X = np.random.default_rng(0).poisson(0.7, (30, 12)).astype(float)
    with pytest.warns(UserWarning, match=r"X .Array. looks like raw counts, .* scale='none'"):
        factorize(da.from_array(X, chunks=(-1, 5)), 2, recipe="cells", max_iter=1, tol=0)
