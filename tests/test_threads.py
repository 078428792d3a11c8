from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from scipy import sparse

from deepmf import factorize
from deepmf._utils.threads import in_threads, limit_threads, thread_count


def test_results_come_in_the_order_of_the_tasks():
    with limit_threads(3):
        assert list(in_threads(lambda k: k * k, range(20))) == [k * k for k in range(20)]


def test_threads_work_side_by_side():
    meeting = threading.Barrier(2, timeout=20)
    with limit_threads(2):
        assert sorted(in_threads(lambda _: meeting.wait(), [0, 1])) == [0, 1]


def test_one_thread_is_this_one():
    with limit_threads(1):
        assert set(in_threads(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


def test_how_many(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert thread_count() == 5
    with limit_threads(2):
        assert thread_count() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert 1 <= thread_count() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("kind", [np.ascontiguousarray, np.asfortranarray, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_number_of_threads_changes_no_bit(kind, dtype):
    X = kind(np.random.default_rng(0).random((20, 3000)).astype(dtype))
    fits = []
    for count in (1, 2, 3):
        with limit_threads(count):
            f = factorize(X, [5, 2], init="random", random_state=0, max_iter=5, tol=0)
        fits.append(f)
    for f in fits[1:]:
        for a, b in zip(fits[0].W + fits[0].H, f.W + f.H):
            np.testing.assert_array_equal(a, b)
