"""NumPy files: ``.npy``, memory-mapped, and ``.npz``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from deepmf._utils.safe_archives import (
    UnreadableError,
    check_npy,
    check_room,
    load_npz,
    npz_headers,
)
from deepmf.data.assemble import from_cube, from_matrix, names_array
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.provenance import Source
from deepmf.data.reading import Reading
from deepmf.data.wavelengths import find_wavelengths
from deepmf.factorization import Factorization
from deepmf.io.format import Format, Variable
from deepmf.io.variables import choose


class Npy(Format):
    """One array: a matrix, or a cube of rows x cols x bands."""

    name = "NumPy array"
    suffixes = (".npy",)

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`; the array is memory-mapped."""
        check_npy(path)
        A = np.load(path, mmap_mode="r", allow_pickle=False)
        arrange = from_cube if A.ndim == 3 else from_matrix
        return arrange(path, A, reading, layout=Layout(source=Source(self.name)))

    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """See `Format.write`: one array per layer, of components x samples or of pictures."""
        write_codes(folder, f)


class Npz(Npy):
    """Several arrays; those named as parts of a `Layout` are understood.

    wavelengths, features, samples, image_shape, order and pixels.
    """

    name = "NumPy archive"
    suffixes = (".npz",)

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`; sparse archives of SciPy too."""
        found = {v.name: v for v in self.variables(path)}
        layout = Layout(source=Source(self.name))
        if {"indices", "indptr", "shape"} <= set(found):
            check_room(path, (sum(math.prod(v.shape) for v in found.values()),), np.float64)
            return from_matrix(path, sparse.load_npz(path), reading, layout=layout)
        name = choose(path, list(found.values()), reading.variable, preferred=("X",))
        small = [k for k, v in found.items() if k != name and len(v.shape) <= 1]
        parts = load_npz(path, [name, *small])
        A = parts.pop(name)
        layout = replace(
            layout,
            features=names_array(parts.get("features")),
            samples=names_array(parts.get("samples")),
            image_shape=_picture(parts, A.shape),
            order="F" if _is_word(parts.get("order"), "F") else "C",
            pixels="rows" if _is_word(parts.get("pixels"), "rows") else "columns",
        )
        arrange = from_cube if A.ndim == 3 else from_matrix
        waves = find_wavelengths(parts, A.shape)
        return arrange(path, A, reading, wavelengths=waves, layout=layout)

    def variables(self, path: Path) -> list[Variable]:
        """See `Format.variables`; only headers are read."""
        headers = npz_headers(path)
        return [Variable(name, shape, str(dtype)) for name, (shape, dtype) in headers.items()]


def _picture(parts: dict[str, Any], shape: tuple[int, ...]) -> tuple[int, int] | None:
    """``image_shape``; or ``shape``, where a matrix has as many pixels."""
    for name in ("image_shape", "shape"):
        size = parts.get(name)
        if size is None or len(shape) != 2:
            continue
        if size.shape == (2,) and size.dtype.kind in "ui" and int(np.prod(size)) in shape:
            return int(size[0]), int(size[1])
        if name == "image_shape":
            raise UnreadableError(
                f"image_shape must be rows and cols of a picture in X {shape}, got {size}."
            )
    return None


def _is_word(array: Any, word: str) -> bool:
    return array is not None and array.dtype.kind == "U" and array.tolist() in (word, [word])


def write_codes(folder: Path, f: Factorization) -> None:
    """``fractions-layer-l.npy``, components x rows x cols, for a scene; else ``codes-layer-l.npy``.

    Codes are components x samples.
    """
    for layer in range(1, f.depth + 1):
        found = f.view(layer).amounts
        out = found.maps(f.layout) if f.layout.kind == "scene" else found.values
        np.save(folder / f"{found.kind}-layer-{layer}.npy", out)
