"""Comparison with other NMF libraries: time to the same objective from the same start.

The problem is single-layer NMF, min ||X - W H||^2 over W, H >= 0. Every library gets one start,
strictly positive (multiplicative updates cannot leave zero), X in the memory order it works in,
and all cores. The target is the error that scikit-learn's coordinate descent reaches in a fixed
number of iterations. One function computes all errors, from the factors that a library returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF, MiniBatchNMF

import deepmf
from deepmf import GroupedSparse, factorize

from .data import Array, documents, faces, scene
from .measure import Result, Row, Size, Table, case, progress, quiet, ratio_row, seconds, timed


class Start(NamedTuple):
    """Start of X ~ W H; rows of X are features."""

    X: Any
    W: Array
    H: Array


_ROUNDING = 1 + 1e-10
"""Relative tolerance of errors, which different formulas compute with different rounding."""

Fit = Callable[[int], tuple[Array, Array]]
"""Run a number of iterations from the start; return W and H."""


@dataclass(frozen=True)
class Outcome:
    """Result of a race: time, iterations and error, and whether the target was reached."""

    seconds: float
    iterations: int
    error: float
    reached: bool


def positive_start(X: Any, rank: int) -> Start:
    """Random start of deepmf with zeros among the codes made positive."""
    f = factorize(X, rank, init="random", random_state=0, max_iter=0)
    return Start(X, f.W[0], np.maximum(f.H[0], 1e-2 * f.H[0].mean()))


def relative_error(X: Any, W: Array, H: Array) -> float:
    """||X - W H||^2 / ||X||^2, from residuals, or for sparse X from traces."""
    if sparse.issparse(X):
        norm2 = float(X.power(2).sum())
        left = norm2 - 2 * np.sum((X @ H.T) * W) + np.sum((W.T @ W) * (H @ H.T))
        return float(left) / norm2
    parts = [slice(k, k + 4096) for k in range(0, X.shape[1], 4096)]
    left = sum(float(np.sum((X[:, part] - W @ H[:, part]) ** 2)) for part in parts)
    return left / float(np.sum(X**2))


# --- the libraries -----------------------------------------------------------------------------


def sklearn_cd(start: Start) -> Fit:
    """scikit-learn, coordinate descent."""
    return _sklearn(start, lambda k: NMF(start.W.shape[1], init="custom", tol=0, max_iter=k))


def sklearn_mu(start: Start) -> Fit:
    """scikit-learn, multiplicative updates."""
    rank = start.W.shape[1]
    return _sklearn(start, lambda k: NMF(rank, init="custom", solver="mu", tol=0, max_iter=k))


def sklearn_minibatch(start: Start) -> Fit:
    """scikit-learn, MiniBatchNMF with its default batches of 1024, never stopped early."""
    rank = start.W.shape[1]
    return _sklearn(
        start,
        lambda k: MiniBatchNMF(rank, init="custom", tol=0, max_no_improvement=None, max_iter=k),
    )


def _sklearn(start: Start, model: Callable[[int], Any]) -> Fit:
    Xt = start.X.T.tocsr() if sparse.issparse(start.X) else np.ascontiguousarray(start.X.T)

    def fit(iterations: int) -> tuple[Array, Array]:
        nmf = model(iterations)
        with quiet():  # factors are changed in place
            codes = nmf.fit_transform(Xt, W=start.H.T.copy("C"), H=start.W.T.copy("C"))
        return nmf.components_.T, codes.T

    return fit


def nn_fac_hals(start: Start) -> Fit:
    """nn_fac, HALS with up to 100 inner passes (its default)."""
    return _nn_fac(start, "hals")


def nn_fac_accelerated(start: Start) -> Fit:
    """nn_fac, accelerated HALS (inner passes by its timing rule)."""
    return _nn_fac(start, "hals_acc")


def _nn_fac(start: Start, rule: str) -> Fit:
    from nn_fac.nmf import nmf

    X, W, H = start
    return lambda iterations: nmf(
        X, W.shape[1], init="custom", U_0=W, V_0=H, n_iter_max=iterations, tol=0, update_rule=rule
    )


def tensorly_hals(start: Start) -> Fit:
    """tensorly, nonnegative CP by HALS on a tensor with two modes, which is NMF."""
    from tensorly.cp_tensor import CPTensor
    from tensorly.decomposition import non_negative_parafac_hals

    X, W, H = start
    rank = W.shape[1]

    def fit(iterations: int) -> tuple[Array, Array]:
        init = CPTensor((np.ones(rank), [W.copy(), H.T.copy()]))
        weights, (left, right) = non_negative_parafac_hals(
            X, rank, n_iter_max=iterations, init=init, tol=0
        )
        return left * weights, right.T

    return fit


def torchnmf_mu(start: Start) -> Fit:
    """torchnmf on the CPU in float64: multiplicative updates, Frobenius loss.

    With one thread or all, whichever is faster here.
    """
    import torch
    from torchnmf.nmf import NMF as TorchNMF

    torch.set_default_dtype(torch.float64)  # its parameters take the default type
    V, W, H = (torch.from_numpy(M.copy("C")) for M in (start.X.T, start.W, start.H.T))

    def fit(iterations: int) -> tuple[Array, Array]:
        model = TorchNMF(W=W, H=H)
        model.fit(V, beta=2, tol=-math.inf, max_iter=iterations)
        return model.W.detach().numpy(), model.H.detach().numpy().T

    def pace(threads: int) -> float:
        torch.set_num_threads(threads)
        fit(1)
        return timed(lambda: fit(5))

    torch.set_num_threads(min({1, torch.get_num_threads()}, key=pace))
    return fit


# --- the race ----------------------------------------------------------------------------------


def run(fit: Fit, X: Any, iterations: int) -> Outcome:
    """Run a number of iterations in one call and time it."""
    found: list[tuple[Array, Array]] = []
    t = timed(lambda: found.append(fit(iterations)))
    return Outcome(t, iterations, relative_error(X, *found[0]), False)


def race(fit: Fit, X: Any, target: float, limit: float) -> Outcome:
    """Find the smallest number of iterations that reaches the target, one call per number.

    The number doubles until one reaches the target or the next call would take longer than
    ``limit`` seconds; then it is bisected to 4 %. The time is that of a single call.
    """
    low, tried = 0, run(fit, X, 1)
    while tried.error > target * _ROUNDING:
        if not math.isfinite(tried.error) or 2 * tried.seconds > limit:
            return tried
        low, tried = tried.iterations, run(fit, X, 2 * tried.iterations)
    while tried.iterations - low > max(1, 0.04 * tried.iterations):
        middle = (low + tried.iterations) // 2
        again = run(fit, X, middle)
        low, tried = (low, again) if again.error <= target * _ROUNDING else (middle, tried)
    return Outcome(tried.seconds, tried.iterations, tried.error, True)


def deepmf_race(start: Start, target: float, limit: float, **settings: Any) -> Outcome:
    """Call factorize once, stopping at the first sweep that reaches the target."""
    X, W, H = start
    found = []

    def work() -> None:
        f = factorize(
            X,
            W.shape[1],
            init=(W, H),
            tol=0,
            max_iter=100_000,
            max_time=limit,
            callbacks=lambda now: now.data_errors[0] <= target * _ROUNDING,
            **settings,
        )
        found.append(f)

    t = timed(work)
    f = found[0]
    error = relative_error(X, f.W[0], f.H[0])
    return Outcome(t, len(f.history) - 1, error, error <= target * _ROUNDING**2)


def deepmf_median(
    start: Start, target: float, limit: float, times: int, **settings: Any
) -> Outcome:
    """Run with the median time among several."""
    runs = [deepmf_race(start, target, limit, **settings) for _ in range(times)]
    return sorted(runs, key=lambda outcome: outcome.seconds)[times // 2]


def _outcome_row(measure: str, ours: Outcome, theirs: Outcome, limit: float, **more: Any) -> Row:
    """Row with the ratio of the times to one objective, if deepmf reached it."""
    if not ours.reached:
        return Row(
            measure,
            f"not reached in {seconds(ours.seconds)}",
            seconds(theirs.seconds),
            goal=f"<= {limit:g}",
            met=False,
            note=f"relative squared error {ours.error:.6g}, target {theirs.error:.6g}",
        )
    note = (
        f"{ours.iterations} sweeps, {theirs.iterations} iterations; "
        f"relative squared error {theirs.error:.4g}"
    )
    return ratio_row(measure, ours.seconds, theirs.seconds, limit, note=note, **more)


@case("time to an objective", limit=300)
def objective(size: Size) -> Result:
    """Time to the error of 200 scikit-learn iterations, full size, single layer."""
    start = positive_start(scene(size.pick(94249, 5000)), 6)
    fit, iterations = sklearn_cd(start), size.pick(200, 30)
    deepmf_race(start, 0, limit=0)  # one sweep: loads compiled code
    theirs = run(fit, start.X, iterations)
    progress(f"scikit-learn: {iterations} iterations in {seconds(theirs.seconds)}")
    ours = deepmf_median(start, theirs.error, max(4 * theirs.seconds, 1), times=3)
    row = _outcome_row(
        f"time to scikit-learn cd's objective after {iterations} iterations, r = 6",
        ours,
        theirs,
        0.15,
        headline="time to the objective of 200 scikit-learn iterations",
    )
    return Result([row])


@case("sparse", limit=240)
def sparse_objective(size: Size) -> Result:
    """Time to the error of 30 scikit-learn iterations: 20k x 50k counts, 0.5 % nonzeros, r = 30."""
    X = documents(*size.pick((20_000, 50_000), (1000, 2000)), density=0.005)
    start = positive_start(X, 30)
    fit, iterations = sklearn_cd(start), size.pick(30, 10)
    deepmf_race(start, 0, limit=0)
    theirs = run(fit, X, iterations)
    progress(f"scikit-learn: {iterations} iterations in {seconds(theirs.seconds)}")
    ours = deepmf_median(start, theirs.error, max(4 * theirs.seconds, 1), times=3)
    row = _outcome_row(
        f"sparse {X.shape[0]} x {X.shape[1]}, {X.nnz} nonzeros, r = 30: time to scikit-learn cd's "
        f"objective after {iterations} iterations",
        ours,
        theirs,
        0.5,
        headline="the same for sparse data, r = 30, 30 iterations",
    )
    return Result([row])


@case("faces", limit=240)
def cbcl(size: Size) -> Result:
    """Compare 500 deep sweeps with grouped sparsity and 500 iterations of scikit-learn NMF(100).

    Both are measured for 50 and 100 and extrapolated at the speed of the second 50:
    t(500) = t(100) + 8 (t(100) - t(50)), starts included.
    """
    X, source = faces()
    samples = np.ascontiguousarray(X.T)
    half = size.pick(50, 3)
    carried = 500 / half - 2
    sets = [GroupedSparse(s) for s in (0.70, 0.80, 0.85)]

    def ours() -> float:
        settings = {"init": "snpa", "constraint_W": sets, "tol": 0}
        f = factorize(X, [100, 49, 25], max_iter=2 * half, **settings)
        t = f.history.time
        return t[-1] + carried * (t[-1] - t[half])

    def theirs() -> float:
        def fit(k: int) -> float:
            model = NMF(100, init="nndsvda", tol=0, max_iter=k)
            with quiet():
                return timed(lambda: model.fit(samples))

        double = fit(2 * half)
        return double + carried * (double - fit(half))

    rounds = [(ours(), theirs()) for _ in range(size.pick(2, 1))]
    mine, other = np.median(rounds, axis=0)
    row = ratio_row(
        "faces 361 x 2429, r = (100, 49, 25), grouped sparsity, 500 LC sweeps over 500 iterations "
        "of scikit-learn NMF(100) cd",
        float(mine),
        float(other),
        0.5,
        note=f"{source}; measured on {half} + {half}, carried on to 500",
    )
    return Result([row])


PEERS: dict[str, Callable[[Start], Fit]] = {
    "scikit-learn cd": sklearn_cd,
    "scikit-learn mu": sklearn_mu,
    "scikit-learn MiniBatchNMF": sklearn_minibatch,
    "nn_fac hals": nn_fac_hals,
    "nn_fac hals_acc": nn_fac_accelerated,
    "tensorly nonnegative CP, hals": tensorly_hals,
    "torchnmf mu": torchnmf_mu,
}

PEER_TABLE = "Time to the same objective, peers"
PEER_COLUMNS = ("library", "time", "iterations", "deepmf beside it", "deepmf / library")


def _race_peer(name: str, size: Size) -> Result:
    """Race one library in a separate process, with deepmf before and after it."""
    start = positive_start(scene(size.pick(20_000, 2000)), 6)
    iterations = size.pick(200, 30)
    cd = run(sklearn_cd(start), start.X, iterations)
    target, limit = cd.error, min(max(5 * cd.seconds, 2.0), 15.0)
    fit = PEERS[name](start)
    deepmf_race(start, 0, limit=0)  # one sweep: loads compiled code
    fit(1)  # and theirs
    before = deepmf_median(start, target, limit, times=3)
    theirs = race(fit, start.X, target, limit)
    ours = deepmf_median(start, target, limit, times=3)
    mine = float(np.median([before.seconds, ours.seconds])) if ours.reached else math.nan
    reached = seconds(theirs.seconds) if theirs.reached else f"not in {seconds(theirs.seconds)}"
    line = [
        name,
        reached,
        f"{theirs.iterations}",
        seconds(mine) if ours.reached else f"not in {seconds(ours.seconds)}",
        f"{'' if theirs.reached else '< '}{mine / theirs.seconds:.3f}",
    ]
    note = (
        f"Single-layer NMF, r = 6, X {start.X.shape[0]} x {start.X.shape[1]}, to the objective "
        f"that scikit-learn cd reaches in {iterations} iterations ({target:.4g} of ||X||^2), from "
        f"one start. 'not in': the longest call that was tried; the next one, of twice as many "
        f"iterations, should have taken more than {limit:.0f} s."
    )
    return Result(tables=[Table(PEER_TABLE, PEER_COLUMNS, [line], note)])


def _register(name: str) -> None:
    case(f"peer {name}", limit=180)(lambda size: _race_peer(name, size))


for _name in PEERS:
    _register(_name)


@case("own solvers", limit=120)
def own_solvers(size: Size) -> Result:
    """Race the other solvers of deepmf."""
    start = positive_start(scene(size.pick(20_000, 2000)), 6)
    target = run(sklearn_cd(start), start.X, size.pick(200, 30)).error
    lines = []
    for solver in ("fpgm", "pg", "hals", "mu"):
        deepmf_race(start, 0, limit=0, solver=solver)
        o = deepmf_race(start, target, limit=size.pick(15.0, 3.0), solver=solver)
        time = seconds(o.seconds) if o.reached else f"not in {seconds(o.seconds)}"
        lines.append([solver, time, f"{o.iterations}"])
    title = f"The same race, deepmf {deepmf.__version__}'s solvers"
    return Result(tables=[Table(title, ("solver", "time", "sweeps"), lines)])
