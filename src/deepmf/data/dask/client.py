"""The Dask client in use, or one of a cluster within this process; what its workers are like."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def connect() -> tuple[Any, Any]:
    """The client in use and no cluster, or a new one of a cluster within this process."""
    try:
        import distributed
    except ImportError:
        raise ImportError(
            "X is a Dask array, and fits of those run on dask.distributed, which is not installed. "
            "Install it with pip install 'deepmf[cluster]', or pass X.compute() if it fits in "
            "memory."
        ) from None
    try:
        client = distributed.get_client()
    except ValueError:
        cluster = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
        return distributed.Client(cluster, set_as_default=False), cluster
    if client.asynchronous:
        raise TypeError(
            "The Dask client in use is asynchronous, and a fit waits for its results; make one "
            "with Client(address) for it."
        )
    return client, None


def disconnect(client: Any, cluster: Any) -> None:
    """End a cluster that was started here."""
    if cluster is not None:
        client.close()
        cluster.close()


def memory_used(client: Any) -> dict[str, int]:
    """Facts about each worker; workers without deepmf, or another version of it, are refused."""

    def version() -> str:  # sent as it is, to workers that may not have deepmf
        return str(import_module("deepmf._utils.version").__version__)

    def memory() -> int:
        import_module("deepmf.kernels.fused")  # with all that a fit will load
        return int(import_module("psutil").Process().memory_info().rss)

    found = client.run(version, on_error="return")
    other = {a: v for a, v in found.items() if v != version() and not isinstance(v, OSError)}
    if other:
        address, there = min(other.items())
        what = f"cannot be imported ({there})" if isinstance(there, Exception) else f"is {there}"
        raise RuntimeError(
            f"On {len(other)} of the cluster's {len(found)} workers (first {address}) deepmf "
            f"{what}, but here it is {version()}. Install the same version on all of them."
        )
    used = client.run(memory, on_error="return")
    return {a: m for a, m in used.items() if isinstance(m, int)}
