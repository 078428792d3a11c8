"""Peak memory of a fit, as counted in /proc. Each case runs in a separate process."""

from __future__ import annotations

import gc
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from deepmf import factorize

from .data import scene
from .measure import Result, Row, Size, case, megabytes, progress, timed
from .sweeps import DEEP

_STATUS = Path("/proc/self/status")


def resident(name: str) -> int:
    """Value of a line of /proc/self/status in bytes: VmRSS, VmHWM (its peak) or RssAnon."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"{_STATUS} has no {name}")


def reset_peak() -> None:
    """Reset VmHWM to the current resident size."""
    Path("/proc/self/clear_refs").write_text("5")


@case("memory", limit=120)
def beyond_data(size: Size) -> Result:
    """Peak memory in addition to X and to the state before the fit: default start, 3 sweeps.

    A small fit and a matrix product come first: they load the code and let BLAS allocate its
    buffers, which do not depend on the fit.
    """
    X = scene(size.pick(94249, 20_000))
    factorize(np.ascontiguousarray(X[:, :2000]), list(DEEP), max_iter=1, tol=0)
    np.ones((1000, 1000)) @ np.ones((1000, 1000))
    gc.collect()
    before = resident("VmRSS")
    reset_peak()
    f = factorize(X, list(DEEP), max_iter=3, tol=0)
    peak = resident("VmHWM") - before
    codes = f.H[0].nbytes
    allowed = 2 * codes + 0.1 * X.nbytes
    row = Row(
        "peak memory beyond X",
        megabytes(peak),
        f"{megabytes(allowed)} allowed",
        f"{peak / allowed:.3f}",
        goal="<= 2 |H1| + 10 % of X",
        met=peak <= allowed,
        note=f"X {megabytes(X.nbytes)}, H1 {megabytes(codes)}",
        values={"peak": peak, "allowed": allowed, "X": X.nbytes, "H1": codes},
    )
    return Result([row])


@case("memory-mapped file", limit=420)
def mapped(size: Size) -> Result:
    """Peak private memory of two sweeps over a file of 8 GB.

    This is RssAnon, including interpreter and libraries. Cached pages of the file are not private;
    the note reports them.
    """
    columns = size.pick(10_000_000, 200_000)
    measure = f"memory-mapped 200 x {columns} float32 ({200 * columns * 4 / 1e9:.2g} GB), 2 sweeps"
    needed, free = 200 * columns * 4 * 1.5, shutil.disk_usage(tempfile.gettempdir()).free
    if free < needed:
        reason = f"not available: {free / 1e9:.0f} GB free on disk, {needed / 1e9:.0f} GB needed"
        return Result([Row(measure, reason, goal="< 1 GB")])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        made = timed(lambda: _write(path, columns))
        progress(f"file written in {made:.0f} s")
        X = np.load(path, mmap_mode="r")
        with sampled("RssAnon") as peak:
            took = timed(
                lambda: factorize(X, list(DEEP), init="random", random_state=0, max_iter=2, tol=0)
            )
        everything = resident("VmHWM")
    row = Row(
        measure,
        megabytes(peak[0]),
        goal="< 1 GB",
        met=peak[0] < 1e9,
        note=f"fit in {took:.0f} s, random start; with cached pages of the file "
        f"{megabytes(everything)}",
        values={"peak": peak[0], "with file pages": everything, "seconds": took},
        headline="own memory while fitting an 8 GB memory-mapped file",
    )
    return Result([row])


def _write(path: Path, columns: int, step: int = 100_000) -> None:
    """Write a scene of 200 bands: one block of columns, repeated with varying brightness."""
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(200, columns))
    block = scene(min(step, columns), m=200).astype(np.float32)
    for number, begin in enumerate(range(0, columns, step)):
        width = min(step, columns - begin)
        out[:, begin : begin + width] = block[:, :width] * np.float32(1 + 0.01 * (number % 7))
    out.flush()
    del out


@contextmanager
def sampled(name: str, every: float = 0.01) -> Iterator[list[int]]:
    """Sample a value every ``every`` seconds; yield a list that holds the largest one."""
    peak, stop = [resident(name)], threading.Event()

    def watch() -> None:
        while not stop.wait(every):
            peak[0] = max(peak[0], resident(name))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        stop.set()
        watcher.join()
