"""Fuzz the readers and draw fits at random for a while; a summary of what was tried, as JSON.

``make soak SOAK_MINUTES=10``: rounds of a minute of damaged files and of some examples of every
property, each drawn anew, until the time is over.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def fuzz(seconds: float, seed: int) -> dict:
    """One round of damaged files."""
    program = [sys.executable, HERE / "hostile/fuzz.py", "--seconds", str(seconds)]
    done = subprocess.run([*program, "--seed", str(seed)], capture_output=True, text=True)
    if done.returncode in (0, 1) and done.stdout:
        return json.loads(done.stdout)
    return {"examples": 0, "failures": [f"seed {seed} ended the process: {done.stderr[-2000:]}"]}


def properties(examples: int, seed: int) -> dict:
    """One round of fits: this many examples of every property."""
    command = [sys.executable, "-m", "pytest", "-q", HERE / "properties", "-p", "no:cacheprovider"]
    command += [f"--hypothesis-seed={seed}", "--hypothesis-show-statistics"]
    environment = {**os.environ, "DEEPMF_PROFILE": "soak", "EXAMPLES": str(examples)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    passed = sum(map(int, re.findall(r"(\d+) passing", done.stdout)))
    return {"examples": passed, "failures": [] if done.returncode == 0 else [done.stdout[-4000:]]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--out", type=Path, default=Path("soak.json"))
    given = parser.parse_args()
    began, rounds = time.monotonic(), 0
    total: dict[str, dict] = {
        name: {"examples": 0, "failures": []} for name in ("files", "properties")
    }
    while time.monotonic() - began < 60 * given.minutes:
        seed = random.randrange(2**31)
        for name, result in (("files", fuzz(60, seed)), ("properties", properties(60, seed))):
            total[name]["examples"] += result["examples"]
            total[name]["failures"] += result["failures"]
        rounds += 1
        minutes = round((time.monotonic() - began) / 60, 1)
        given.out.write_text(json.dumps({"minutes": minutes, "rounds": rounds, **total}, indent=2))
    sys.stdout.write(given.out.read_text() + "\n")
    return int(any(part["failures"] for part in total.values()))


if __name__ == "__main__":
    sys.exit(main())
