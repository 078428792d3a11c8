"""A hyperspectral scene from files of one's own."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from deepmf.data.dataset import Dataset
from deepmf.datasets.matfiles import scaled
from deepmf.io import Reading, UnreadableError, format_of, read
from deepmf.io.mat import load, number
from deepmf.io.truth import read_truth

__all__ = ["load_scene"]

File = str | os.PathLike[str]


def load_scene(cube: File, truths: Sequence[File] = ()) -> Dataset:
    """The scene in a file, with the true spectra in others.

    Parameters
    ----------
    cube : path
        A cube in any format that `deepmf.io.read` knows, or bands x pixels, pixels down the image's
        columns as in the published scenes; of several variables the largest is taken.
    truths : paths
        Files with M (bands x materials) and names, see `deepmf.io.truth.read_truth`.

    Returns
    -------
    Dataset
        ``W`` holds the true spectra in the order given.
    """
    data = _read(Path(cube))
    if not np.isfinite(data.X).all():
        raise ValueError(f"{cube} has entries that are NaN or infinite; remove them first.")
    known = [truth for path in truths for truth in read_truth(path, data)]
    X = np.asarray(data.X, dtype=np.float64)
    return replace(
        data,
        X=scaled(X, _stated_maximum(Path(cube))),
        W=[truth.W for truth in known],
        names=[list(truth.names) for truth in known],
    )


def _stated_maximum(path: Path) -> float | None:
    """``maxValue`` of a MATLAB file."""
    return number(load(path, {"maxValue"}), "maxValue") if path.suffix.lower() == ".mat" else None


def _read(path: Path) -> Dataset:
    """The largest array; a matrix that nothing shapes makes a square picture."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    found = [v for v in format_of(path).variables(path) if len(v.shape) in (2, 3)]
    largest = max(found, key=lambda v: math.prod(v.shape)).name if found else None
    data = read(path, Reading(variable=largest, order="F"))
    side = math.isqrt(data.X.shape[1])
    if data.layout.kind == "scene":
        return data
    if side**2 == data.X.shape[1]:
        return read(path, Reading(variable=largest, order="F", image=(side, side)))
    raise UnreadableError(
        f"{path} has {data.X.shape[1]} pixels, and nothing says how they make an image; "
        "save nRow with it, or give the cube as rows x columns x bands."
    )
