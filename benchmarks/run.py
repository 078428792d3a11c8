"""Run all benchmarks, each case in a separate process, and write the report.

    python -m benchmarks.run                 everything, about ten minutes on an idle machine
    python -m benchmarks.run --quick         small sizes, to test the suite itself
    python -m benchmarks.run --only sweeps   cases whose names contain a word

Writes bench.md and bench.json to benchmarks/results after every case, so that an interruption does
not lose earlier results.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from . import checkpoints, kullback_leibler, machine, memory, peers, report, scaling, starts, sweeps
from .measure import CASES, Case, Result, Row, Size, Table
from .peers import PEER_COLUMNS, PEER_TABLE

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = (sweeps, kullback_leibler, peers, starts, memory, scaling, checkpoints)
"""Modules of cases, which register themselves when they are imported."""

BUSY = 0.5
"""Load average above which the machine is busy with something else."""


def main() -> None:
    options = _options()
    if options.one:
        _work(CASES[options.one], Size(options.quick), options.to)
        return
    chosen = [c for c in _ordered() if any(word in c.name for word in options.only or [""])]
    about, result = machine.describe(), Result()
    print("\n".join(f"{name}: {value}" for name, value in about.items()), flush=True)
    if os.getloadavg()[0] > BUSY:
        print("The machine is busy: ratios are still meaningful, times are not.", flush=True)
    began = time.perf_counter()
    for number, case in enumerate(chosen, start=1):
        print(f"[{number}/{len(chosen)}] {case.name}", flush=True)
        done = _in_own_process(case, options.quick)
        result.rows += done.rows
        result.tables += done.tables
        report.write(options.out, about, result, options.quick)
        _show(done, time.perf_counter() - began)
    print(f"\n{options.out / 'bench.md'}\n\n{report.headline(result)}")


def _ordered() -> list[Case]:
    """Cases in the order of their modules."""
    names = [family.__name__ for family in FAMILIES]
    return sorted(CASES.values(), key=lambda case: names.index(case.work.__module__))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, meaningless numbers")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="cases whose names contain these")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--one", choices=list(CASES), metavar="CASE", help=argparse.SUPPRESS)
    parser.add_argument("--to", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _work(case: Case, size: Size, to: Path) -> None:
    """Measure a case in this process and write the result to a file."""
    to.write_text(json.dumps(asdict(case.work(size))), encoding="utf-8")


def _in_own_process(case: Case, quick: bool) -> Result:
    """Result of a case, or a row that says why there is none.

    Its temporary files are in a folder that is always deleted.
    """
    with tempfile.TemporaryDirectory(prefix="deepmf-bench-") as folder:
        to, errors = Path(folder) / "result.json", Path(folder) / "stderr"
        command = [sys.executable, "-m", "benchmarks.run", "--one", case.name, "--to", str(to)]
        command += ["--quick"] if quick else []
        try:
            with errors.open("w") as stderr:
                subprocess.run(
                    command,
                    cwd=ROOT,
                    env={**os.environ, "TMPDIR": folder},
                    stderr=stderr,
                    timeout=case.limit,
                    check=True,
                )
            return _read(to)
        except subprocess.TimeoutExpired:
            return _not_available(case, f"took longer than {case.limit:.0f} s")
        except subprocess.CalledProcessError as error:
            lines = errors.read_text(errors="replace").strip().splitlines()
            return _not_available(case, lines[-1] if lines else f"exit status {error.returncode}")


def _read(path: Path) -> Result:
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [Row(**row) for row in found["rows"]]
    return Result(rows, [Table(**table) for table in found["tables"]])


def _not_available(case: Case, reason: str) -> Result:
    text = f"not available: {reason}"
    if case.name.startswith("peer "):
        blank = [""] * (len(PEER_COLUMNS) - 2)
        line = [case.name.removeprefix("peer "), text, *blank]
        return Result(tables=[Table(PEER_TABLE, PEER_COLUMNS, [line])])
    return Result([Row(case.name, text)])


def _show(done: Result, elapsed: float) -> None:
    for row in done.rows:
        met = "" if row.met is None else " (met)" if row.met else " (NOT met)"
        print(f"  {row.measure}: {row.ratio or row.deepmf}{met}", flush=True)
    for table in done.tables:
        for line in table.rows:
            print("  " + "  ".join(line), flush=True)
    print(f"  {elapsed:.0f} s so far", flush=True)


if __name__ == "__main__":
    main()
