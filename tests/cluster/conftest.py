from __future__ import annotations

import logging
from contextlib import contextmanager

import numpy as np
import pytest

try:
    import distributed
except ImportError:  # an extra: all but its absence needs it
    collect_ignore_glob = ["test_*.py"]


@contextmanager
def cluster(**settings):
    """A client of a cluster on this machine, ended afterwards."""
    settings = {"threads_per_worker": 1, "silence_logs": logging.CRITICAL, **settings}
    with (
        distributed.LocalCluster(dashboard_address=":0", **settings) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def two_processes():
    with cluster(n_workers=2) as client:
        client.run(warm_up)
        yield client


@pytest.fixture(scope="session")
def seven_threads():
    with cluster(n_workers=7, processes=False) as client:
        yield client


@pytest.fixture
def client(two_processes):
    """Two workers, each a process with one thread."""
    with two_processes.as_current():
        yield two_processes


@pytest.fixture
def many(seven_threads):
    """Seven workers within this process."""
    with seven_threads.as_current():
        yield seven_threads


@pytest.fixture(scope="session")
def new_cluster():
    return cluster


def warm_up():
    import deepmf.kernels.fused  # noqa: F401


@pytest.fixture(scope="session")
def X():
    """12 features of 700 samples, of rank six and some noise."""
    rng = np.random.default_rng(0)
    return rng.random((12, 6)) @ rng.random((6, 700)) + 0.1 * rng.random((12, 700))
