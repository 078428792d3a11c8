"""Damage sound files of every kind at random and read them: data or a sentence, nothing else.

Run as a program, in a process of its own with a limit on memory, so that a crash is seen and does
no harm; the damaged file that caused one is left in the folder. Prints a summary as JSON.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import resource
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

from deepmf.io import UnreadableError
from deepmf.runs.config import ConfigError

sys.path.insert(0, str(Path(__file__).parent))
from seeds import Reader, make_seeds

SENTENCES = (UnreadableError, ConfigError, FileNotFoundError)
MEMORY = 4 << 30
SLOW = 60
"""Seconds after which a file counts as one that hangs the reader."""

ODD = (b"\0", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff" * 8, b"-1", b"1e309", b"nan", b"../../x")
ODD += (b"9" * 40, b"[" * 3000, b"{", b"}", b'"', b"\n", b"<script>", b"\x00\x00\x00\x80")


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Some of: bits turned, bytes replaced by odd ones, pieces cut, doubled or moved."""
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if not out:
            break
        at = rng.randrange(len(out))
        end = min(len(out), at + rng.choice((1, 2, 4, 8, 64, 1024)))
        way = rng.randrange(7)
        if way == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            out[at] = rng.randrange(256)
        elif way == 2:
            odd = rng.choice(ODD)
            out[at : at + len(odd)] = odd
        elif way == 3:
            out[at:at] = rng.choice(ODD)
        elif way == 4:
            del out[at:end]
        elif way == 5:
            out[at:at] = out[at:end]
        else:
            del out[at:]
    return bytes(out)


def failure(error: Exception) -> str | None:
    """What is wrong with the way a damaged file was refused."""
    kind = type(error)
    known = isinstance(error, SENTENCES) or kind in (ValueError, PermissionError)
    if known and str(error).endswith((".", "?")):
        return None
    return f"{kind.__module__}.{kind.__name__}: {str(error)[:200]}"


def fuzz(folder: Path, seconds: float, examples: int, seed: int, only: str = "") -> dict:
    """Examples for each kind of file in turn, until one of the limits."""
    rng = random.Random(seed)
    seeds = {k: v for k, v in make_seeds(folder).items() if only in k}
    for kind, (_, path, reader) in seeds.items():
        try:
            reader(path)
        except SENTENCES as error:
            raise SystemExit(f"the sound {kind} file was refused: {error}") from None
    whole = {kind: file.read_bytes() for kind, (file, _, _) in seeds.items()}
    counts, refused, failures = dict.fromkeys(seeds, 0), 0, []
    began = time.monotonic()
    for _ in range(examples):
        for kind, (file, path, reader) in seeds.items():
            content = damaged(whole[kind], rng)
            file.write_bytes(content)
            faulthandler.dump_traceback_later(SLOW, exit=True)
            wrong, was_refused = one(path, reader)
            faulthandler.cancel_dump_traceback_later()
            counts[kind] += 1
            refused += was_refused
            if wrong is not None:
                kept = folder / f"failure-{len(failures)}-{file.name}"
                kept.write_bytes(content)
                failures.append(f"{kind}: {wrong} ({kept})")
            file.write_bytes(whole[kind])
        if time.monotonic() - began > seconds:
            break
    return {
        "kinds": len(counts),
        "examples": sum(counts.values()),
        "refused": refused,
        "seconds": round(time.monotonic() - began, 1),
        "peak_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "failures": failures,
    }


def one(path: Path, reader: Reader) -> tuple[str | None, bool]:
    """What went wrong in reading one file, and whether it was refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader(path)
    except Exception as error:
        return failure(error), True
    return None, False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--examples", type=int, default=10**9, help="for each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="kinds with this in their name")
    parser.add_argument("--keep", type=Path, help="folder for files that made trouble")
    given = parser.parse_args()
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    folder = given.keep or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    summary = fuzz(folder, given.seconds, given.examples, given.seed, given.only)
    sys.stdout.write(json.dumps(summary) + "\n")
    if not summary["failures"] and given.keep is None:
        shutil.rmtree(folder)
    return bool(summary["failures"])


if __name__ == "__main__":
    sys.exit(main())
