"""Passes over X on a CUDA device, compared with the limit set by its memory bandwidth.

    python -m benchmarks.gpu             everything, about a minute
    python -m benchmarks.gpu --quick     small sizes, to test the script itself

The floor of a pass is one read of X at the speed of a copy on the device, counting bytes read and
written. Writes gpu.md to benchmarks/results.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deepmf import FastProjectedGradient, Nonnegative, factorize
from deepmf.data.panels import Coding

from . import machine
from .data import scene

try:
    import torch

    from deepmf.data.gpu import tensor
    from deepmf.data.gpu.kernels import Pass
    from deepmf.data.gpu.panels import TensorPanels
    from deepmf.data.gpu.tensor import TensorData
    from deepmf.data.validation import as_matrix
except ImportError as error:
    raise SystemExit(f"There is nothing to measure with: {error}") from None

RESULTS = Path(__file__).parent / "results"
INNER = 10
PASSES = [  # rows, columns, rank, order
    (162, 94_249, 6, "C"),
    (162, 94_249, 6, "F"),
    (224, 4_000_000, 6, "C"),
    (224, 4_000_000, 6, "F"),
    (224, 1_000_000, 16, "C"),
    (162, 94_249, 32, "C"),
    (224, 1_000_000, 32, "C"),
    (162, 94_249, 100, "C"),
    (224, 1_000_000, 100, "C"),
]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="a hundredth of the columns")
    options.add_argument("--out", type=Path, default=RESULTS / "gpu.md")
    chosen = options.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no CUDA device to measure.")
    less = 100 if chosen.quick else 1
    text = ["# On a CUDA device", ""]
    for line in report(less):
        print(line, flush=True)
        text.append(line)
    chosen.out.write_text("\n".join(text) + "\n", encoding="utf-8")


def report(less: int) -> Iterator[str]:
    about = {"device": torch.cuda.get_device_name(), **machine.describe()}
    yield "; ".join(
        f"{name}: {value}" for name, value in about.items() if name != "OMP_NUM_THREADS"
    )
    speed, sending = copy_speed(less), sending_speed(less)
    yield f"\nCopies: on the device {speed / 1e12:.2f} TB/s, to it {sending / 1e9:.1f} GB/s.\n"
    yield "## One update of H_1\n"
    yield (
        "float32, nonnegative, 10 inner iterations, in microseconds; the call includes the way to "
        "the device and back; the products are those of the same update by cuBLAS in float32.\n"
    )
    heads = "m x n, r, order|on the device|whole call|floor|over floor|products|over products"
    yield f"| {heads.replace('|', ' | ')} |"
    yield "|---|---|---|---|---|---|---|"
    for m, n, r, order in PASSES:
        yield one_pass(m, n // less, r, order, speed)
    yield "\n## Whole fits\n"
    yield from fits(less)
    yield "\n## Larger than the device's memory\n"
    yield streamed(less, sending)


def copy_speed(less: int) -> float:
    a = torch.rand(2**30 // less, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.nbytes / median(lambda: b.copy_(a))


def sending_speed(less: int) -> float:
    a, b = torch.empty(2**28 // less, pin_memory=True), torch.empty(2**28 // less, device="cuda")
    return a.nbytes / median(lambda: b.copy_(a, non_blocking=True))


def median(
    work: Callable[[], Any], before: Callable[[], Any] = lambda: None, times: int = 15
) -> float:
    """Median time on the device, in seconds."""
    seen = []
    for k in range(times + 3):
        before()
        ends = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        ends[0].record()
        work()
        ends[1].record()
        torch.cuda.synchronize()
        seen += [ends[0].elapsed_time(ends[1]) / 1e3] * (k >= 3)
    return float(np.median(seen))


def mixtures(m: int, n: int, r: int, order: str) -> tuple[Any, Any]:
    """Data with r components and 5 % noise on the device, rows aligned to 16 bytes."""
    make = torch.Generator("cuda").manual_seed(0)
    W = torch.rand(m, r, device="cuda", generator=make)
    codes = torch.rand(r, n, device="cuda", generator=make) ** 4
    shape = (m, -(-n // 4) * 4) if order == "C" else (n, -(-m // 4) * 4)
    room = torch.empty(shape, device="cuda")
    X = room[:, :n] if order == "C" else room[:, :m].T
    torch.matmul(W, codes, out=X) if order == "C" else X.copy_(W @ codes)
    X += 0.05 * X.mean() * torch.rand(m, n, device="cuda", generator=make)
    return X, W


def one_pass(m: int, n: int, r: int, order: str, speed: float) -> str:
    X, W = mixtures(m, n, r, order)
    basis = W.cpu().numpy().astype(float)
    basis += 0.1 * np.random.default_rng(0).random(basis.shape)
    p = TensorPanels(TensorData(X))
    coding, solver = Coding.of(basis, Nonnegative()), FastProjectedGradient()
    p.begin(coding)
    begun = p.H.clone()

    def reset() -> None:
        p.H.copy_(begun)

    p.update(coding, solver, INNER, 0.0)
    (way,) = p._passes.values()
    kernel = solver.column_kernel(coding.A, coding.constraint, p.dtype, INNER, 0.0)
    calls = []
    for _ in range(15):
        reset()
        torch.cuda.synchronize()
        began = time.perf_counter()
        way(coding.A, coding.G, p.H, p.H, 0.0, kernel)
        calls.append(time.perf_counter() - began)
    (graph,) = way.recorded.values()
    alone = median(graph.replay, reset)
    A = (W.T @ W).contiguous()

    def products() -> None:
        W.T @ X, X @ p.H.T, p.H @ p.H.T
        for _ in range(INNER + 1):
            A @ p.H

    by_blas, floor = median(products, times=5), X.shape[0] * X.shape[1] * 4 / speed
    numbers = [alone, float(np.median(calls[3:])), floor]
    cells = [f"{t * 1e6:.0f}" for t in numbers] + [f"{alone / floor:.2f}"]
    cells += [f"{by_blas * 1e6:.0f}", f"{alone / by_blas:.2f}"]
    return f"| {m} x {n}, {r}, {order} | " + " | ".join(cells) + " |"


def fits(less: int) -> Iterator[str]:
    settings: dict[str, Any] = {
        "ranks": [6, 4, 2],
        "max_iter": 500,
        "tol": 0,
        "inner_iter": INNER,
        "random_state": 0,
    }
    X = scene(94_249 // less).astype(np.float32)
    factorize(X, device="cuda", **settings)
    said = [fitted(X, settings) for _ in range(3)][-1]
    yield f"{X.shape[0]} x {X.shape[1]}, ranks 6 > 4 > 2, 500 sweeps, from a NumPy array: {said}."
    settings |= {"max_iter": 100}
    # without extrapolation, whose decisions rest on small differences
    f, g = (factorize(X, device=d, extrapolate=False, **settings) for d in ("cuda", None))
    off = np.abs(f.history.objective / g.history.objective - 1).max()
    rise = (np.diff(f.history.objective) / f.history.objective[:-1]).max()
    yield (
        f"The objective differs from the CPU's in float32 by at most {off:.1e} in 100 sweeps; the "
        f"largest change by a sweep is {rise:.1e} of it (negative: every sweep decreases it)."
    )
    big, _ = mixtures(224, 4_000_000 // less, 6, "C")
    said = fitted(big, settings)
    yield f"\n224 x {big.shape[1]}, the same ranks, 100 sweeps, from a tensor: {said}."


def fitted(X: Any, settings: dict[str, Any]) -> str:
    """Time of a fit and of its parts."""
    sweeps = settings["max_iter"]
    spent: list[float] = []
    call = Pass.__call__

    def watched(*arguments: Any) -> Any:
        began = time.perf_counter()
        done = call(*arguments)
        spent.append(time.perf_counter() - began)
        return done

    Pass.__call__ = watched  # type: ignore[method-assign]
    try:
        began = time.perf_counter()
        f = factorize(X, device="cuda", **settings)
        whole = time.perf_counter() - began
    finally:
        Pass.__call__ = call  # type: ignore[method-assign]
    swept, device = f.history.time[-1] - f.history.time[0], sum(spent[-sweeps:])
    each, there = swept / sweeps * 1e6, device / sweeps * 1e6
    return (
        f"{whole:.3f} s, sweeps alone {swept:.3f} s ({each:.0f} us each: the device and the way "
        f"there and back {there:.0f} us, the small side on the CPU {each - there:.0f} us)"
    )


def streamed(less: int, sending: float) -> str:
    share, tensor._SHARE = tensor._SHARE, 0.0
    try:
        rng = np.random.default_rng(0)
        W = rng.random((224, 6))
        X = np.tile((W @ rng.dirichlet(np.ones(6), 10_000).T).astype(np.float32), 200 // less)
        with as_matrix(X, device="cuda").panels() as p:
            coding = Coding.of(W, Nonnegative())
            p.begin(coding)
            seen = []
            for _ in range(5):
                began = time.perf_counter()
                p.update(coding, FastProjectedGradient(), INNER, 0.0)
                seen.append(time.perf_counter() - began)
        speed = X.nbytes / np.median(seen)
    finally:
        tensor._SHARE = share
    return (
        f"224 x {X.shape[1]}, sent from the CPU's memory in each pass: {1e3 * np.median(seen):.1f} "
        f"ms, {speed / 1e9:.1f} GB/s, {sending / speed:.2f} times the time of the copy alone."
    )


if __name__ == "__main__":
    main()
