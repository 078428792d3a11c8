"""A cluster of one's own, threads, devices, and blocks that are read again."""

from __future__ import annotations

import os

import numpy as np
import pytest

from deepmf import factorize
from deepmf.foreign import as_foreign
from deepmf.panels import share
from deepmf.threads import thread_count

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RAGGED = (12, (100, 1, 250, 349))
QUICK = {"max_iter": 5, "tol": 0, "random_state": 0}


def test_without_a_client_a_cluster_is_started_and_ended(X):
    D = da.from_array(X, chunks=RAGGED)
    before = os.environ.copy(), thread_count()
    data = as_foreign(D)
    f = factorize(D, [4, 2], **QUICK)
    g = factorize(X, [4, 2], **QUICK)
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=1e-10)
    assert isinstance(f.H[0], da.Array)
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()
    assert (os.environ.copy(), thread_count()) == before
    assert data.checked("X").max() == X.max()  # starts one and keeps its facts
    data.panels(None).close()
    assert data.norm() == pytest.approx(np.linalg.norm(X))


def test_a_worker_uses_its_own_threads(X):
    from threadpoolctl import threadpool_info

    for threads in (1, 2):
        s = share.Share("x", {0: X}, {}, share.Kind(threads, alone=True))
        with s._threads():
            assert thread_count() == threads
            assert {lib["num_threads"] for lib in threadpool_info()} == {threads}


def test_a_worker_with_a_gpu_works_there(X, monkeypatch, new_cluster):
    """A worker that declares one is asked to send its blocks to it; here the device is a list."""
    sent = []
    monkeypatch.setattr(share, "on_device", lambda block, device: sent.append(device) or block)
    settings = {"n_workers": 1, "processes": False, "resources": {"GPU": 1}}
    with new_cluster(**settings) as client, client.as_current():
        factorize(da.from_array(X, chunks=RAGGED), [4], **QUICK)
    assert sent == ["cuda"] * 4


