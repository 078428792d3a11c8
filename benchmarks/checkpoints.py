"""What checkpoints cost: fits that write one after every sweep beside fits that write none."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from deepmf import Checkpoint, factorize

from .data import scene
from .measure import Result, Row, Size, case, megabytes, seconds, timed
from .sweeps import DEEP

_SWEEPS = 20
_DEFAULT = 60.0
"""Seconds between two checkpoints unless users say otherwise."""


@case("checkpoints", limit=300)
def checkpoints(size: Size) -> Result:
    """One save, from a fit with one after each of 20 sweeps and the same without, in turn."""
    X = scene(size.pick(94249, 20_000))
    with tempfile.TemporaryDirectory() as folder:
        kept = Checkpoint(Path(folder) / "c", interval=0, keep=True)

        def fit(checkpoint: Checkpoint | None) -> None:
            if checkpoint is not None:
                checkpoint.remove()
            factorize(X, list(DEEP), max_iter=_SWEEPS, tol=0, checkpoint=checkpoint)

        fit(kept)  # what is compiled is loaded, and the disk has seen a file of this size
        pairs = [
            (timed(lambda: fit(kept)), timed(lambda: fit(None))) for _ in range(size.pick(5, 1))
        ]
        written = kept.path.stat().st_size
    every, none = np.median(pairs, axis=0)
    save = max(0.0, (every - none) / _SWEEPS)
    rows = [
        Row(
            "a checkpoint after every sweep",
            seconds(every),
            seconds(none) + " without",
            f"{every / none:.2f}",
            note=f"X {megabytes(X.nbytes)}, file {megabytes(written)}",
            values={"every sweep": every, "none": none},
        ),
        Row(
            "a checkpoint a minute",
            seconds(save),
            "60 s",
            f"{1 + save / _DEFAULT:.4f}",
            goal="<= 1.01",
            met=save <= 0.01 * _DEFAULT,
            values={"save": save},
        ),
    ]
    return Result(rows)
