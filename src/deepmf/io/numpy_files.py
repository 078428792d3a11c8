"""NumPy's .npy, memory-mapped, and .npz."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from deepmf.dataset import Dataset
from deepmf.factorization import Factorization
from deepmf.io.arrange import (
    check_length,
    check_room,
    from_cube,
    from_matrix,
    maps,
    names_array,
)
from deepmf.io.bands import find_wavelengths
from deepmf.io.base import Format, Reading, UnreadableError, Variable
from deepmf.io.choose import choose
from deepmf.layout import Layout


class Npy(Format):
    """One array: a matrix, or a cube of rows x cols x bands."""

    name = "NumPy array"
    suffixes = (".npy",)

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`; the array is memory-mapped."""
        with path.open("rb") as file:
            shape, dtype = _header(path, file)
            check_length(path, shape, dtype, path.stat().st_size - file.tell())
        A = np.load(path, mmap_mode="r", allow_pickle=False)
        arrange = from_cube if A.ndim == 3 else from_matrix
        return arrange(path, A, reading, layout=Layout(header={"format": self.name}))

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
        """See `Format.read`; SciPy's sparse archives too."""
        found = {v.name: v for v in self.variables(path)}
        header = {"format": self.name}
        if {"indices", "indptr", "shape"} <= set(found):
            return from_matrix(path, sparse.load_npz(path), reading, layout=Layout(header=header))
        name = choose(path, list(found.values()), reading.variable, preferred=("X",))
        check_room(path, found[name].shape, found[name].dtype)
        with np.load(path, allow_pickle=False) as file:
            A = file[name]
            parts = {k: file[k] for k, v in found.items() if k != name and len(v.shape) <= 1}
        layout = Layout(
            features=names_array(parts.get("features")),
            samples=names_array(parts.get("samples")),
            image_shape=_picture(parts, A.shape),
            order="F" if _is_word(parts.get("order"), "F") else "C",
            pixels="rows" if _is_word(parts.get("pixels"), "rows") else "columns",
            header=header,
        )
        arrange = from_cube if A.ndim == 3 else from_matrix
        waves = find_wavelengths(parts, A.shape)
        return arrange(path, A, reading, wavelengths=waves, layout=layout)

    def variables(self, path: Path) -> list[Variable]:
        """See `Format.variables`; only headers are read."""
        found = []
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as file:
                    shape, dtype = _header(path, file)
                    if 0 not in shape:
                        check_length(path, shape, dtype, member.file_size - file.tell())
                found.append(Variable(member.filename.removesuffix(".npy"), shape, str(dtype)))
        return found


def _header(path: Path, file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of the array that begins here."""
    first = np.lib.format.read_magic(file) == (1, 0)
    header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(file)
    if dtype.hasobject:
        raise UnreadableError(
            f"{path} holds Python objects, which deepmf does not load; save numbers instead."
        )
    return shape, dtype


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
    """``codes-layer-l.npy``: components x samples, or components x rows x cols for a scene."""
    for layer in range(1, f.depth + 1):
        codes = f.codes(layer)
        out = maps(f, layer) if f.layout.kind == "scene" else codes
        np.save(folder / f"codes-layer-{layer}.npy", out.astype(codes.dtype, copy=False))
