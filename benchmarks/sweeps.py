"""Time of a sweep compared with a scikit-learn iteration, other sweeps and the floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.decomposition import NMF

from deepmf import factorize
from deepmf._utils.threads import thread_count

from .data import MATERIALS, Array, scene, scene_source
from .floor import Floor, gemm_rate, read_rate
from .measure import Result, Row, Size, case, interleaved, quiet, ratio_row, seconds, timed

INNER = 10
DEEP = (6, 4, 2)


def warm_start(X: Any, ranks: Sequence[int], sweeps: int = 2) -> tuple[list[Array], list[Array]]:
    """Factors after a few layer-centric sweeps from a random start, for timing."""
    f = factorize(X, list(ranks), init="random", random_state=0, max_iter=sweeps, tol=0)
    return f.W, f.H


def sweep_timer(
    X: Any, ranks: Sequence[int], sweeps: int = 5, start: Any = None, **settings: Any
) -> Callable[[], float]:
    """Task that returns the median time of several sweeps from a fixed start.

    By default each sweep does all 10 inner iterations (``inner_tol=0``), so that the work does not
    depend on the progress of the fit.
    """
    init = start or warm_start(X, ranks)
    settings = {"inner_iter": INNER, "inner_tol": 0.0, **settings}

    def task() -> float:
        f = factorize(X, list(ranks), init=init, max_iter=sweeps, tol=0, **settings)
        return float(np.median(np.diff(f.history.time)))

    return task


def iteration_timer(Xt: Array, W: Array, H: Array, count: int = 8) -> Callable[[], float]:
    """Task that returns the time of one iteration of scikit-learn's coordinate descent.

    Xt is n x m, rows are samples. A run of two iterations is subtracted to remove the setup time.
    """

    def run(iterations: int) -> float:
        model = NMF(W.shape[1], init="custom", solver="cd", tol=0, max_iter=iterations)
        codes, basis = np.array(H.T, order="C"), np.array(W.T, order="C")
        with quiet():
            return timed(lambda: model.fit_transform(Xt, W=codes, H=basis))

    return lambda: (run(2 + count) - run(2)) / count


@case("sweeps", limit=300)
def sweeps(size: Size) -> Result:
    """Measure all ratios of sweep times, each task once per round."""
    X = scene(size.pick(94249, 6000))
    by_column, X32 = np.asfortranarray(X), X.astype(np.float32)
    threads = thread_count()
    deep, flat = warm_start(X, DEEP), warm_start(X, DEEP[:1])
    deep32 = tuple([M.astype(np.float32) for M in part] for part in deep)
    W, H = flat[0][0], flat[1][0]
    t = interleaved(
        {
            "LC": sweep_timer(X, DEEP, start=deep),
            "sklearn": iteration_timer(by_column.T, W, H),  # rows in C order
            "LC default": sweep_timer(X, DEEP, start=deep, inner_tol=0.01),
            "sklearn by column": iteration_timer(X.T, W, H),
            "flat": sweep_timer(X, DEEP[:1], start=flat),
            "DC": sweep_timer(X, DEEP, start=deep, model="data-centric"),
            "by column": sweep_timer(by_column, DEEP, start=deep),
            "float32": sweep_timer(X32, DEEP, start=deep32),
            "read": lambda: read_rate(X, threads),
            "gemm": lambda: gemm_rate(threads),
        },
        rounds=size.pick(7, 2),
    )
    iteration = min(t["sklearn"], t["sklearn by column"])  # the faster memory order
    floor = Floor.of(X.shape, MATERIALS, INNER, t["read"], t["gemm"])
    where = f"X {X.shape[0]} x {X.shape[1]}, {scene_source()}, {INNER} inner iterations"
    return Result(
        [
            ratio_row(
                "LC sweep, r = (6, 4, 2), over scikit-learn NMF(6) cd iteration",
                t["LC"],
                iteration,
                0.2,
                note=where,
                headline="one deep sweep (6, 4, 2) over one scikit-learn NMF(6) iteration",
            ),
            ratio_row(
                "the same with the default early end of inner iterations",
                t["LC default"],
                iteration,
            ),
            ratio_row(
                "deep (6, 4, 2) sweep over single-layer (6) sweep",
                t["LC"],
                t["flat"],
                1.1,
                headline="three layers over one layer",
            ),
            ratio_row("DC sweep over LC sweep", t["DC"], t["LC"], 1.1),
            _floor_row(t, floor, threads),
            ratio_row("float32 sweep over float64 sweep", t["float32"], t["LC"], 0.6),
            ratio_row("LC sweep, X in Fortran order over C order", t["by column"], t["LC"]),
        ]
    )


def _floor_row(t: dict[str, float], floor: Floor, threads: int) -> Row:
    return ratio_row(
        "LC sweep over the floor of this machine",
        t["LC"],
        floor.seconds,
        2,
        note=f"{threads} threads; {seconds(floor.reading)} to read at {t['read'] / 1e9:.1f} GB/s, "
        f"{seconds(floor.arithmetic)} to compute at {t['gemm'] / 1e9:.0f} Gflop/s",
        headline="one sweep over the least time that memory and arithmetic allow",
    )
