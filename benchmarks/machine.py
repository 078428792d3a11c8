"""Description of the machine and library versions of a result."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import scipy.linalg  # noqa: F401  its BLAS shows up below
from threadpoolctl import threadpool_info

LIBRARIES = (
    "deepmf", "numpy", "scipy", "numba", "scikit-learn", "nn-fac", "tensorly", "torchnmf", "torch"
)  # fmt: skip


def describe() -> dict[str, str]:
    """Description of the machine by name, for the head of the report."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "CPU": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": str(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        ),
        "memory": _memory(),
        "system": platform.platform(),
        "Python": platform.python_version(),
        "BLAS": _blas(),
        "libraries": ", ".join(f"{name} {_version(name)}" for name in LIBRARIES),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
        "load average at start": ", ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def _field(path: str, name: str) -> str:
    file = Path(path)
    lines = file.read_text().splitlines() if file.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")


def _memory() -> str:
    found = _field("/proc/meminfo", "MemTotal")
    return f"{int(found.split()[0]) / 2**20:.0f} GiB" if found else "unknown"


def _blas() -> str:
    np.ones((2, 2)) @ np.ones((2, 2))
    found = {
        f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', '?')}, "
        f"{lib['num_threads']} threads)"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    }
    return "; ".join(sorted(found)) or "unknown"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
