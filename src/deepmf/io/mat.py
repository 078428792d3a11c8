"""MATLAB's .mat: versions 4 to 7 with SciPy, version 7.3 (HDF5) with h5py."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf._utils.optional import need
from deepmf._utils.safe_archives import UnreadableError, check_room
from deepmf.data.assemble import from_cube, from_matrix
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.provenance import Source
from deepmf.data.reading import Reading
from deepmf.data.wavelengths import find_wavelengths
from deepmf.factorization import Factorization
from deepmf.io.format import Format, Variable
from deepmf.io.hdf5 import check_hdf5
from deepmf.io.mat_tags import check_tags
from deepmf.io.variables import choose

_Array = np.ndarray | sparse.sparray | sparse.spmatrix
_HDF5 = b"\x89HDF\r\n\x1a\n"
_TYPES = {"double": "float64", "single": "float32", "logical": "bool", "sparse": "float64"}
_TYPES |= {f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""NumPy types of MATLAB's classes of numbers."""


class Mat(Format):
    """A matrix or cube; ``nRow``, ``nCol`` and wavelengths are understood by name.

    Pixels run down the columns of a picture, as in the published scenes and in MATLAB itself.
    """

    name = "MATLAB"
    suffixes = (".mat",)

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`."""
        found = {v.name: v for v in self.variables(path)}
        name = choose(path, list(found.values()), reading.variable, preferred=("X", "Y", "V"))
        if found[name].dtype not in _TYPES.values():
            raise UnreadableError(
                f"{path}: {name} is a {found[name].dtype} of MATLAB's; expected numbers."
            )
        numbers = [
            v.name
            for v in found.values()
            if v.dtype in _TYPES.values() and max(v.shape, default=1) == int(np.prod(v.shape))
        ]
        for v in (found[name], *(found[n] for n in numbers)):
            if v.dense:
                check_room(path, v.shape, v.dtype)
        parts = load(path, {name, *numbers})
        A = parts.pop(name, None)
        if A is None:
            raise UnreadableError(f"{path} is damaged: its variable {name} cannot be read.")
        layout = Layout(image_shape=_picture(parts, A.shape), order="F", source=Source(self.name))
        arrange = from_cube if A.ndim == 3 else from_matrix
        waves = find_wavelengths(parts, A.shape)
        return arrange(path, A, reading, wavelengths=waves, layout=layout)

    def variables(self, path: Path) -> list[Variable]:
        """See `Format.variables`; only headers are read."""
        if is_hdf5(path):
            with need("h5py", "cubes", "Reading MATLAB 7.3 files").File(path, "r") as file:
                check_hdf5(path, file)
                return [_describe(name, node) for name, node in file.items() if name[0] != "#"]
        from scipy.io import whosmat

        check_tags(path)
        return [
            Variable(name, shape, _TYPES.get(kind, kind), kind != "sparse")
            for name, shape, kind in whosmat(path)
        ]

    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """See `Format.write`.

        ``codes-layer-l.mat``: the layer's ``W`` and ``H``, the names of its components, ``codes``
        (components x samples) or, for a scene, ``fractions`` (rows x cols x components; codes where
        factors have signs), ``about``, what these are, and above layer 1 the ``links``.
        """
        from scipy.io import savemat

        for layer in range(1, f.depth + 1):
            cells = np.array(names[layer - 1], dtype=object)
            out = {"W": f.basis(layer), "H": f.H[layer - 1], "names": cells[:, None]}
            found = f.view(layer).amounts
            scene = f.layout.kind == "scene"
            out[found.kind] = np.moveaxis(found.maps(f.layout), 0, 2) if scene else found.values
            out["about"] = found.text
            if layer > 1:
                out["links"] = f.links(layer)
            if f.layout.wavelengths is not None:
                out["wavelengths"] = f.layout.wavelengths[:, None]
            savemat(folder / f"codes-layer-{layer}.mat", out, do_compression=True)

    def write_map(self, folder: Path, name: str, values: Any, layout: Layout) -> None:
        """See `Format.write_map`: ``name.mat`` with rows x cols of that name."""
        from scipy.io import savemat

        savemat(folder / f"{name}.mat", {name: layout.image(values)}, do_compression=True)


def load(path: Path, names: Collection[str] | None = None) -> dict[str, Any]:
    """Variables by name: numbers, and cells of text. Objects, functions and the like are left out.

    Parameters
    ----------
    path : Path
    names : collection of str, optional
        Which; all by default.
    """
    if not is_hdf5(path):
        from scipy.io import loadmat

        check_tags(path)
        wanted = None if names is None else list(names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two variables of one name, say
            found = loadmat(path, variable_names=wanted)
        # SciPy adds text: the header, and errors in place of variables
        return {name: value for name, value in found.items() if isinstance(value, _Array)}
    with need("h5py", "cubes", "Reading MATLAB 7.3 files").File(path, "r") as file:
        check_hdf5(path, file)
        wanted = list(file) if names is None else list(names)
        parts = {name: _values(file, file[name]) for name in wanted if name[0] != "#"}
    return {name: part for name, part in parts.items() if part is not None}


def number(variables: dict[str, Any], name: str) -> float | None:
    """A scalar variable, or None when it is not there."""
    value = np.asarray(variables.get(name, []))
    return float(value.ravel()[0]) if value.size == 1 and value.dtype.kind in "buif" else None


def is_hdf5(path: Path) -> bool:
    """Whether a file is HDF5, from its start or after MATLAB's 512 bytes."""
    return begins(path, _HDF5) or begins(path, _HDF5, 512)


def begins(path: Path, mark: bytes, at: int = 0) -> bool:
    """Whether a file has these bytes at its start, or further on."""
    with path.open("rb") as file:
        file.seek(at)
        return file.read(len(mark)) == mark


def _picture(parts: dict[str, Any], shape: tuple[int, ...]) -> tuple[int, int] | None:
    rows, cols = number(parts, "nRow"), number(parts, "nCol")
    if rows is None or cols is None or len(shape) != 2 or rows * cols not in shape:
        return None
    return int(rows), int(cols)


# --- version 7.3 ---------------------------------------------------------------------------------


def _describe(name: str, node: Any) -> Variable:
    """An HDF5 node as MATLAB sees it: dimensions the other way round."""
    if "MATLAB_sparse" in node.attrs:
        shape = (int(node.attrs["MATLAB_sparse"]), len(node["jc"]) - 1)
        return Variable(name, shape, "float64", dense=False)
    kind = node.attrs.get("MATLAB_class", b"")
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if not hasattr(node, "dtype"):
        return Variable(name, (), kind or "struct")
    if "MATLAB_empty" in node.attrs:
        return Variable(name, (0,), kind)
    kind = kind or ("object" if node.dtype.hasobject else str(node.dtype))
    return Variable(name, node.shape[::-1], _TYPES.get(kind, kind))


def _values(file: Any, node: Any) -> Any:
    """Numbers or names; None for anything else."""
    if "MATLAB_sparse" in node.attrs:
        shape = (int(node.attrs["MATLAB_sparse"]), len(node["jc"]) - 1)
        if "data" not in node:
            return sparse.csc_array(shape)
        return sparse.csc_array((node["data"][()], node["ir"][()], node["jc"][()]), shape=shape)
    if not hasattr(node, "dtype") or "MATLAB_empty" in node.attrs:
        return None
    if node.dtype.hasobject:
        return _cells(file, node)
    return node[()].T


def _cells(file: Any, node: Any) -> NDArray[np.object_] | None:
    """A cell array of text, whose cells are references to characters."""
    texts = [file[reference][()] for reference in node[()].T.ravel()]
    if not all(text.dtype == np.uint16 for text in texts):
        return None
    return np.array(["".join(map(chr, text.T.ravel())) for text in texts], dtype=object)
