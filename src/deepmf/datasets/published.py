"""Loaders of public data sets from files the user has, in the form they are published in.

None of these files comes with the package. The hyperspectral scenes and their truths are those of
Zhu's collection (Urban_R162.mat, samson_1.mat, jasperRidge2_R198.mat with end*.mat), whose pixels
run down the columns of the image. Every loader looks in ``folder`` and below, and when ``folder``
is None in the folder that the environment variable DEEPMF_DATA names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.datasets.matfiles import array, find, missing, read, root, scaled
from deepmf.io.mat import number
from deepmf.io.truth import component_names

__all__ = ["load_cbcl", "load_jasper", "load_moffett", "load_samson", "load_urban"]

Array = NDArray[np.float64]
Folder = str | os.PathLike[str] | None
Truth = tuple[Array, Array, list[str]]  # spectra M, abundances A, names

_URBAN_SMALL = "urban_d4_77x77.npz"
_NO_TRUTH = "put it there, or pass truth=False to load the data alone"


def load_urban(folder: Folder = None, materials: int = 6, *, truth: bool = True) -> Dataset:
    """HYDICE Urban, 162 bands: ``X ~ W[0] H[0]`` with the truth of 4, 5 or 6 materials.

    Reads Urban_R162.mat (307 x 307 pixels; Y, nRow, nCol, maxValue) and endK_groundTruth.mat, or,
    when the former is absent, urban_d4_77x77.npz (every fourth row and column, truth included).

    Parameters
    ----------
    folder : path, optional
    materials : {4, 5, 6}, default 6
        Which published truth is layer 1. With 5 or 6, the truth of 4 materials becomes layer 2 when
        it is there.
    truth : bool, default True
        False loads X alone.

    Returns
    -------
    Dataset
        ``W = [M6, M4]`` and ``H = [A6]`` by default: no factor between the layers is published.
        True spectra are scaled, so compare them by angle.
    """
    if materials not in (4, 5, 6):
        raise ValueError(
            f"materials={materials!r} has no published truth for Urban; give 4, 5 or 6."
        )
    where = root(folder)
    path = _required(where, "Urban_R162.mat", _URBAN_SMALL)
    layers = [] if not truth else [materials] if materials == 4 else [materials, 4]
    if path.suffix == ".npz":
        X, shape, truths = _urban_small(path, layers)
    else:
        X, shape = _cube(path, "Y")
        truths = [_mat_truth(where, f"end{k}_groundTruth.mat") for k in layers]
    if truth and truths[0] is None:
        raise missing(where, [f"end{materials}_groundTruth.mat"], _NO_TRUTH)
    return _scene("Urban", X, shape, truths)


def load_samson(folder: Folder = None, *, truth: bool = True) -> Dataset:
    """Samson, 156 bands, 95 x 95 pixels: rock, tree and water.

    Reads samson_1.mat (V, nRow, nCol) and end3.mat (M, A, cood).

    Parameters
    ----------
    folder : path, optional
    truth : bool, default True
        False loads X alone.

    Returns
    -------
    Dataset
        ``wavelengths`` are equally spaced over the sensor's 401 to 889 nm, an approximation.
    """
    return _zhu("Samson", folder, "samson_1.mat", "end3.mat", truth, nm=(401, 889))


def load_jasper(folder: Folder = None, *, truth: bool = True) -> Dataset:
    """Jasper Ridge, AVIRIS, 198 bands, 100 x 100 pixels: tree, water, soil and road.

    Reads jasperRidge2_R198.mat (Y, nRow, nCol, maxValue) and end4.mat (M, A, cood).

    Parameters
    ----------
    folder : path, optional
    truth : bool, default True
        False loads X alone.

    Returns
    -------
    Dataset
    """
    return _zhu("Jasper Ridge", folder, "jasperRidge2_R198.mat", "end4.mat", truth)


def load_moffett(folder: Folder = None) -> Dataset:
    """Moffett Field, AVIRIS, 159 bands, 50 x 50 pixels, no truth. Reads X of Moffet.mat.

    Parameters
    ----------
    folder : path, optional

    Returns
    -------
    Dataset
    """
    path = _required(root(folder), "Moffet.mat", "Moffett.mat")
    return _scene("Moffett Field", *_cube(path, "X"), [])


def load_cbcl(folder: Folder = None) -> Dataset:
    """CBCL faces, 2429 pictures of 19 x 19 pixels. Reads X (361 x 2429) of CBCL.mat.

    Parameters
    ----------
    folder : path, optional

    Returns
    -------
    Dataset
        Each column of X is a face: ``data.image(data.X[:, 0])``.
    """
    path = _required(root(folder), "CBCL.mat")
    X = array(read(path), ["X"], path)
    if X.shape[0] != 361:
        raise ValueError(
            f"X of {path} has {X.shape[0]} rows, but faces of 19 x 19 pixels need 361; "
            "transpose it if it holds the faces as rows."
        )
    layout = Layout(image_shape=(19, 19), order="F", pixels="rows")
    return Dataset("CBCL faces", scaled(X, None), layout)


def _required(where: Path, *names: str) -> Path:
    path = next((path for name in names if (path := find(where, name))), None)
    if path is None:
        raise missing(where, names, "put the published file there")
    return path


def _zhu(
    name: str,
    folder: Folder,
    data_file: str,
    truth_file: str,
    truth: bool,
    nm: tuple[float, float] | None = None,
) -> Dataset:
    """A scene and its one truth in the form of Zhu's collection."""
    where = root(folder)
    X, shape = _cube(_required(where, data_file), "V", "Y")
    known = _mat_truth(where, truth_file) if truth else None
    if truth and known is None:
        raise missing(where, [truth_file], _NO_TRUTH)
    wavelengths = None if nm is None else np.linspace(*nm, X.shape[0])
    return _scene(name, X, shape, [known], wavelengths)


def _cube(path: Path, *names: str) -> tuple[Array, tuple[int, int]]:
    """X in [0, 1] and the image's shape, which is square where the file does not say."""
    variables = read(path)
    X = array(variables, names, path)
    n = X.shape[1]
    rows, cols = number(variables, "nRow") or isqrt(n), number(variables, "nCol") or isqrt(n)
    if rows * cols != n:
        raise ValueError(
            f"{path} has {n} pixels, which an image of {rows:.0f} x {cols:.0f} does not hold; "
            "download the published file again."
        )
    return scaled(X, number(variables, "maxValue")), (int(rows), int(cols))


def _mat_truth(where: Path, name: str) -> Truth | None:
    path = find(where, name)
    if path is None:
        return None
    variables = read(path)
    M, A = array(variables, ["M"], path), array(variables, ["A"], path)
    return M, A, component_names(variables.get("cood", []), M.shape[1])


def _urban_small(
    path: Path, layers: Sequence[int]
) -> tuple[Array, tuple[int, int], list[Truth | None]]:
    """The reduced scene: X, shape, and M, A, names of each number of materials."""
    saved = read(path)
    rows, cols = (int(v) for v in saved.get("shape", (77, 77)))
    truths: list[Truth | None] = []
    for k in layers:
        if f"M{k}" in saved and f"A{k}" in saved:
            M, A = array(saved, [f"M{k}"], path), array(saved, [f"A{k}"], path)
            truths.append((M, A, component_names(saved.get(f"names{k}", []), k)))
        else:
            truths.append(None)
    return scaled(array(saved, ["X"], path), None), (rows, cols), truths


def _scene(
    name: str,
    X: Array,
    shape: tuple[int, int],
    truths: list[Truth | None],
    wavelengths: Array | None = None,
) -> Dataset:
    """A scene with pixels down the columns; codes are published for the first layer only."""
    known = [truth for truth in truths if truth is not None]
    return Dataset(
        name=name,
        X=X,
        layout=Layout(wavelengths=wavelengths, image_shape=shape, order="F"),
        W=[M for M, _, _ in known],
        H=[A for _, A, _ in known[:1]],
        names=[names for _, _, names in known],
        A=[A for _, A, _ in known],
    )
