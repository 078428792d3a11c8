"""Fits whose processes are killed at random moments, compared with uninterrupted fits.

``python -m benchmarks.kills [--kills 60] [--seed 0]`` runs every fit of `CASES` in a separate
process with a checkpoint after every sweep, kills it (SIGKILL) at a random moment and restarts it,
several times; then it lets the fit finish, and compares every bit of the factors and of the history
with those of an uninterrupted fit. It exits with 1 if one differs or does not resume.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from deepmf import Checkpoint, Factorization, MinVolume, factorize
from deepmf.data.on_disk import OnDisk

_LONGEST = 0.35
"""Longest time that a process may work before it is killed, in seconds."""


def _dense() -> Any:
    rng = np.random.default_rng(0)
    return rng.random((60, 8)) @ rng.random((8, 5000)) + 0.1 * rng.random((60, 5000))


def _sparse() -> Any:
    return sparse.random_array((60, 5000), density=0.2, rng=0, format="csc", dtype=np.float32)


CASES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "layer-centric": (_dense, {}),
    "multilayer, float32": (lambda: _dense().astype(np.float32), {"model": "multilayer"}),
    "three starts, augment": (_dense, {"init": ["random", "snpa", "random"], "augment": 10}),
    "sparse, plain sweeps": (_sparse, {"extrapolate": False, "model": "data-centric"}),
    "on disk, min-volume": (lambda: OnDisk(_dense()), {"regularizer_W": MinVolume(0.1)}),
}


def fit(case: str, checkpoint: Path | None, result: Path) -> None:
    """Run a case to its end, from the beginning or from its checkpoint."""
    make, settings = CASES[case]
    X = make()
    factorize(X, [6, 3], max_iter=1, tol=0, **settings)  # loads compiled code
    sys.stdout.write("at work\n")
    sys.stdout.flush()
    file = None if checkpoint is None else Checkpoint(checkpoint, interval=0)
    f = factorize(X, [6, 3], max_iter=60, tol=0, random_state=0, checkpoint=file, **settings)
    f.save(result)


def begun(case: str, checkpoint: Path | None, result: Path) -> subprocess.Popen[str]:
    """Start a process for a case and wait until it is working."""
    given = json.dumps([case, None if checkpoint is None else str(checkpoint), str(result)])
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.kills", "--fit", given],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for a process; return its last error line, or an empty string."""
    _, said = process.communicate()
    return "" if process.returncode == 0 else said.strip().splitlines()[-1]


def differences(one: Path, two: Path) -> list[str]:
    """Names of the parts in which two saved fits differ, except times."""
    f, g = Factorization.load(one), Factorization.load(two)
    pairs: dict[str, tuple[Any, Any]] = {"stop_reason": (f.stop_reason, g.stop_reason)}
    pairs["starts"] = (f.starts, g.starts)
    pairs |= {f"W{k}": pair for k, pair in enumerate(zip(f.W, g.W), start=1)}
    pairs |= {f"H{k}": pair for k, pair in enumerate(zip(f.H, g.H), start=1)}
    for name in ("objective", "layer_errors", "data_errors"):
        pairs[name] = (f.history[name], g.history[name])
    return [name for name, (a, b) in pairs.items() if not np.array_equal(a, b)]


def trial(case: str, kills: int, rng: np.random.Generator) -> tuple[int, int, str]:
    """Numbers of kills and of kills during a write, and a description of any failure."""
    with tempfile.TemporaryDirectory() as folder:
        place, alone, result = (Path(folder) / name for name in ("c", "alone.npz", "result.npz"))
        problem = ended(begun(case, None, alone))
        hit = writing = 0
        while hit < kills and not problem and not result.exists():
            process = begun(case, place, result)
            time.sleep(rng.uniform(0, _LONGEST))
            process.kill()
            problem = ended(process) if process.wait() != -9 else ""
            hit += process.returncode == -9
            writing += any(Path(folder).glob(".c.*.part"))  # removed by the next process
        if not problem and not result.exists():
            problem = ended(begun(case, place, result))
        if not problem:
            wrong = differences(alone, result)
            problem = f"{', '.join(wrong)} differ" if wrong else ""
        left = {path.name for path in Path(folder).iterdir()} - {alone.name, result.name}
        if not problem and left:
            problem = f"{', '.join(left)} left"
        return hit, writing, problem


def main() -> int:
    """Run the cases in turn until there were enough kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--each", type=int, default=4, help="largest number of kills per fit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        case, checkpoint, result = json.loads(given.fit)
        fit(case, checkpoint and Path(checkpoint), Path(result))
        return 0
    rng = np.random.default_rng(given.seed)
    kills = writing = fits = lost = 0
    while kills < given.kills:
        case = list(CASES)[fits % len(CASES)]
        hit, during, problem = trial(case, min(given.each, given.kills - kills), rng)
        kills, writing, fits = kills + hit, writing + during, fits + 1
        lost += bool(problem)
        sys.stdout.write(f"{case}: {hit} kills: {problem or 'the same bits'}\n")
        sys.stdout.flush()
    sys.stdout.write(
        f"{kills} kills, {writing} of them during a write; {fits} fits, {fits - lost} ended with "
        f"the same bits, {lost} lost\n"
    )
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
