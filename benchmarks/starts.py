"""Time before the first sweep: starts, and compilation in a first call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numpy as np

from deepmf.data.panels import DensePanels
from deepmf.init import hierarchical, nndsvd, snpa

from .data import faces, scene
from .measure import Result, Row, Size, case, progress, seconds, timed


def _median(work: Callable[[], object], times: int) -> float:
    return float(np.median([timed(work) for _ in range(times)]))


def _row(measure: str, t: float, limit: float | None, note: str = "") -> Row:
    return Row(
        measure,
        seconds(t),
        goal="" if limit is None else f"<= {limit:g} s",
        met=None if limit is None else t <= limit,
        note=note,
        values={"deepmf": t},
    )


@case("starts", limit=180)
def starts(size: Size) -> Result:
    """Time to compute the components of one layer, without codes."""
    X, source = faces()
    rank = size.pick(100, 15)
    small, large = DensePanels(X), DensePanels(scene(size.pick(94249, 5000)))
    shape = f"{large.shape[0]} x {large.shape[1]}"
    times = size.pick(3, 1)
    return Result(
        [
            _row(f"SNPA, faces, r = {rank}", _median(lambda: snpa(small, rank), times), 2, source),
            _row(
                f"hierarchical clustering, {shape}, r = 6",
                _median(lambda: hierarchical(large, 6), times),
                3,
            ),
            _row(f"SNPA, {shape}, r = 6", _median(lambda: snpa(large, 6), times), None),
            _row(f"NNDSVD, {shape}, r = 6", _median(lambda: nndsvd(large, 6), times), None),
        ]
    )


_FIRST_CALL = """
import json, time
began = time.perf_counter()
import numpy as np, deepmf
imported = time.perf_counter()
X = np.random.default_rng(0).random((30, 200))
deepmf.factorize(X, [4, 2], init="random", random_state=0, max_iter=2, tol=0)
first = time.perf_counter()
deepmf.factorize(X, [4, 2], init="random", random_state=0, max_iter=2, tol=0)
print(json.dumps([imported - began, first - imported, time.perf_counter() - first]))
"""


@case("first call", limit=180)
def first_call(size: Size) -> Result:
    """Time of import and of two fits in a new process, with an empty and with a warm cache."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for cache in ("an empty cache", "a warm cache"):
            done = subprocess.run(
                [sys.executable, "-c", _FIRST_CALL],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            imported, first, second = json.loads(done.stdout)
            note = f"import {seconds(imported)}; second call {seconds(second)}"
            rows.append(
                _row(f"first fit in a fresh process, {cache} of compiled code", first, None, note)
            )
            progress(f"{cache}: {seconds(first)}")
    return Result(rows)
