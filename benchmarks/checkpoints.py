"""Cost of checkpoints as a fraction of the time of a fit."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from deepmf import Checkpoint, factorize

from .data import scene
from .measure import Result, Row, Size, case, megabytes, seconds, timed
from .sweeps import DEEP

_SWEEPS = 20
_DEFAULT = 60.0
"""Default interval between checkpoints, in seconds."""


class _Timed(Checkpoint):
    """Checkpoint after every sweep that records its own duration."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, interval=0, keep=True)
        self.times: list[float] = []

    def save(self, moment: Any) -> None:
        """See `Checkpoint.save`."""
        save = super().save
        self.times.append(timed(lambda: save(moment)))


@case("checkpoints", limit=300)
def checkpoints(size: Size) -> Result:
    """Compare the time of a save with that of a sweep, in one fit with a save after each sweep."""
    X = scene(size.pick(94249, 20_000))
    with tempfile.TemporaryDirectory() as folder:
        kept = _Timed(Path(folder) / "c")
        f = factorize(X, list(DEEP), max_iter=_SWEEPS, tol=0, checkpoint=kept)
        written = kept.path.stat().st_size
    save = float(np.median(kept.times))
    sweep = float(np.median(np.diff(f.history.time))) - save
    rows = [
        Row(
            "a checkpoint after every sweep",
            seconds(sweep + save),
            f"{seconds(sweep)} without",
            f"{1 + save / sweep:.2f}",
            note=f"X {megabytes(X.nbytes)}, file {megabytes(written)}",
            values={"sweep": sweep, "save": save},
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
