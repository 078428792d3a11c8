"""NumPy's .npy, memory-mapped, and .npz."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from deepmf.dataset import Dataset
from deepmf.factorization import Factorization
from deepmf.io.arrange import from_cube, from_matrix, names_array
from deepmf.io.base import Format, Reading, UnreadableError, Variable
from deepmf.io.choose import choose
from deepmf.layout import Layout


class Npy(Format):
    """One array: a matrix, or a cube of rows x cols x bands."""

    name = "NumPy array"
    suffixes = (".npy",)

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`; the array is memory-mapped."""
        A = np.load(path, mmap_mode="r", allow_pickle=False)
        layout = Layout(header={"format": self.name})
        if A.ndim == 3:
            return from_cube(path, A, reading, layout=layout)
        return from_matrix(path, A, reading, layout=layout)

    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """See `Format.write`: one array per layer, of components x samples or of pictures."""
        write_codes(folder, f)


class Npz(Npy):
    """Several arrays; wavelengths, features, samples and image_shape are understood by name."""

    name = "NumPy archive"
    suffixes = (".npz",)

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`; SciPy's sparse archives too."""
        if {"indices", "indptr", "shape"} <= {v.name for v in self.variables(path)}:
            return from_matrix(path, sparse.load_npz(path), reading)
        with np.load(path, allow_pickle=False) as file:
            name = choose(path, self.variables(path), reading.variable, preferred=("X",))
            parts = {k: file[k] for k in ("wavelengths", "features", "samples") if k in file.files}
            A = file[name]
            shape = tuple(int(v) for v in file["image_shape"]) if "image_shape" in file else None
        layout = _layout(parts, shape, {"format": self.name})
        waves = parts.get("wavelengths")
        if A.ndim == 3:
            return from_cube(path, A, reading, wavelengths=waves, layout=layout)
        return from_matrix(path, A, reading, wavelengths=waves, layout=layout)

    def variables(self, path: Path) -> list[Variable]:
        """See `Format.variables`; only headers are read."""
        found = []
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                with archive.open(member) as file:
                    version = np.lib.format.read_magic(file)
                    header = (
                        np.lib.format.read_array_header_1_0(file)
                        if version == (1, 0)
                        else np.lib.format.read_array_header_2_0(file)
                    )
                found.append(Variable(member.removesuffix(".npy"), header[0], str(header[2])))
        return found


def _layout(parts: Mapping[str, Any], shape: Any, header: Mapping[str, Any]) -> Layout:
    if shape is not None and len(shape) != 2:
        raise UnreadableError(f"image_shape must be rows and cols, got {shape}.")
    return Layout(
        features=names_array(parts.get("features")),
        samples=names_array(parts.get("samples")),
        image_shape=shape,
        header=header,
    )


def write_codes(folder: Path, f: Factorization) -> None:
    """``codes-layer-l.npy``: components x samples, or components x rows x cols for a scene."""
    for layer in range(1, f.depth + 1):
        codes = f.codes(layer)
        scene = f.layout.kind == "scene"
        out = np.stack([f.layout.image(row) for row in codes]) if scene else codes
        np.save(folder / f"codes-layer-{layer}.npy", out.astype(codes.dtype, copy=False))
