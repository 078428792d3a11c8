"""A hyperspectral scene from files of one's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf.dataset import Dataset
from deepmf.datasets.matfiles import array, number, read, scaled
from deepmf.datasets.published import component_names
from deepmf.layout import Layout

__all__ = ["load_scene"]

Array = NDArray[np.float64]
File = str | os.PathLike[str]


def load_scene(cube: File, truths: Sequence[File] = ()) -> Dataset:
    """The scene in a file, with the true spectra in others.

    Parameters
    ----------
    cube : path
        ``.mat`` or ``.npy`` with bands x pixels (pixels down the image's columns, as in the
        published scenes) or rows x columns x bands; of several variables the largest is taken.
    truths : paths
        ``.mat`` files with M (bands x materials) and names ``cood``, one per layer.

    Returns
    -------
    Dataset
        ``W`` holds the true spectra in the order given.
    """
    path = Path(cube)
    X, shape, maximum = _cube(path)
    spectra = [_spectra(Path(truth), len(X), path) for truth in truths]
    return Dataset(
        name=path.stem,
        X=scaled(X, maximum),
        layout=Layout(image_shape=shape, order="F"),
        W=[M for M, _ in spectra],
        names=[names for _, names in spectra],
    )


def _cube(path: Path) -> tuple[Array, tuple[int, int], float | None]:
    """Bands x pixels, the image's shape, and the largest value the sensor can give."""
    variables = _variables(path)
    numeric = {k: v for k, v in variables.items() if np.asarray(v).dtype.kind in "uif"}
    if not numeric:
        raise ValueError(f"{path} holds no numbers; expected a matrix or a cube.")
    name = max(numeric, key=lambda k: np.asarray(numeric[k]).size)
    X = np.asarray(numeric[name])
    rows = int(number(variables, "nRow") or 0)
    if X.ndim == 3:
        rows = X.shape[0]
        X = X.reshape(-1, X.shape[2], order="F").T
    X = array({name: X}, [name], path)
    pixels = X.shape[1]
    square = isqrt(pixels) if isqrt(pixels) ** 2 == pixels else 0
    rows = rows or square
    if not rows or pixels % rows:
        raise ValueError(
            f"{path} has {pixels} pixels, and nothing says how they make an image; "
            "save nRow with it, or give the cube as rows x columns x bands."
        )
    return X, (rows, pixels // rows), number(variables, "maxValue")


def _spectra(path: Path, bands: int, cube: Path) -> tuple[Array, list[str]]:
    variables = _variables(path)
    M = array(variables, ["M"], path)
    if len(M) != bands:
        raise ValueError(f"{path} has {len(M)} bands, but {cube} has {bands}; they must agree.")
    return M, component_names(variables.get("cood", []), M.shape[1])


def _variables(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    if path.suffix.lower() != ".npy":
        return read(path)
    try:
        return {path.stem: np.load(path, allow_pickle=False)}
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} is not a readable NumPy file ({type(error).__name__}).") from None
