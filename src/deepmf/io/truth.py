"""True components from files beside the data."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from deepmf.archives import load_npy, load_npz, npz_headers
from deepmf.dataset import Dataset, Truth
from deepmf.io.bands import names_wavelengths
from deepmf.io.base import UnreadableError
from deepmf.io.mat import Mat, load
from deepmf.io.spectral_library import read_library

_TABLES = (".csv", ".tsv", ".txt")
_SUFFIXES = (".mat", ".npz", ".npy", *_TABLES, ".sli", ".hdr")
_ARRAYS = re.compile(r"(M|W|names|cood)(\d*)")
_NOT_MATERIALS = {"band", "bands", "feature", "nm", "um", "index", ""}

Named = tuple[Any, list[str]]


def read_truth(path: str | os.PathLike[str], data: Dataset) -> list[Truth]:
    """The true components that a file holds, those of most materials first.

    Bands that ``data`` left out of its own file are left out here too.

    Parameters
    ----------
    path : path
        ``.mat`` or ``.npz`` with M (features x materials, or M4, M5, ...) and names (``cood`` or
        ``names``, ``names4``, ...), ``.npy`` with M alone, a CSV table with a column per material,
        or an ENVI spectral library.
    data : Dataset
        The data they belong to.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {str(file)!r}.")
    try:
        found = _read(file)
    except (UnreadableError, ImportError, PermissionError):
        raise
    except Exception as error:  # a broken file fails in a dozen ways
        raise UnreadableError(
            f"{file} is not a whole file of true components ({type(error).__name__}: {error}). It "
            f"may be truncated or damaged; get or write it again."
        ) from error
    known = [Truth(_fitted(file, W, data), names) for W, names in found]
    return sorted(known, key=lambda truth: -len(truth.names))


def component_names(given: Any, count: int) -> list[str]:
    """``1-Asphalt Road`` as ``Asphalt Road``; numbers where names are missing."""
    cells = [str(np.asarray(cell).ravel()[0]) for cell in np.asarray(given).ravel()]
    if len(cells) != count:
        return [str(k + 1) for k in range(count)]
    return [re.sub(r"^\s*\d+\s*[-_. ]\s*", "", cell).strip() for cell in cells]


def _read(path: Path) -> list[Named]:
    """Matrices of features x materials, and the materials' names."""
    suffix = path.suffix.lower()
    if suffix in (".sli", ".hdr"):
        W, names, _ = read_library(path)
        return [(W, names)]
    if suffix in _TABLES:
        return [_from_table(path)]
    if suffix == ".npy":
        M = load_npy(path)
        return [(M, component_names([], M.shape[-1]))]
    if suffix == ".mat":
        named = [v.name for v in Mat().variables(path) if _ARRAYS.fullmatch(v.name)]
        return _from_arrays(path, load(path, named))
    if suffix == ".npz":
        named = [name for name in npz_headers(path) if _ARRAYS.fullmatch(name)]
        return _from_arrays(path, load_npz(path, named))
    raise UnreadableError(
        f"{path} has no suffix of a file of true components. They are read from "
        f"{', '.join(_SUFFIXES)}."
    )


def _from_arrays(path: Path, arrays: Mapping[str, Any]) -> list[Named]:
    """M, or M4, M5, ... each with its names."""
    found = []
    for name, M in arrays.items():
        kind, number = name[0], name.lstrip("MW")
        if kind in "MW" and np.ndim(M) == 2:
            given = arrays.get(f"names{number}", arrays.get(f"cood{number}", []))
            found.append((M, component_names(given, M.shape[1])))
    if not found:
        raise UnreadableError(
            f"{path} has no true components: expected a matrix M of features x materials, or "
            f"several, M4, M5, and so on."
        )
    return found


def _from_table(path: Path) -> Named:
    """A column per material under a line of names; columns of bands and wavelengths are skipped."""
    text = path.read_text(encoding="utf-8-sig")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    lines = [line for line in csv.reader(text.splitlines(), delimiter=delimiter) if any(line)]
    if len(lines) < 2 or len({len(line) for line in lines}) > 1:
        raise UnreadableError(
            f"{path} is not a table of true components: expected a line of names, then a line of "
            f"as many numbers per band."
        )
    head = [name.strip() for name in lines[0]]
    named = [
        k
        for k, name in enumerate(head)
        if name.lower() not in _NOT_MATERIALS and not names_wavelengths(name)
    ]
    W = np.array([[float(line[k]) for k in named] for line in lines[1:]])
    return W, component_names([head[k] for k in named], len(named))


def _fitted(path: Path, M: Any, data: Dataset) -> np.ndarray:
    """M with the features of the data, finite and real."""
    M = M.toarray() if hasattr(M, "toarray") else np.asarray(M)
    if M.ndim != 2 or M.size == 0 or M.dtype.kind not in "buif" or not np.isfinite(M).all():
        raise UnreadableError(
            f"{path} holds no matrix of finite numbers with a column for each true component."
        )
    m, layout = data.X.shape[0], data.layout
    if len(M) != m and layout.bands is not None and len(M) == layout.header.get("all_bands"):
        M = M[layout.bands - 1]
    if len(M) != m:
        more = f" ({layout.header['all_bands']} with bad ones)" if layout.bands is not None else ""
        raise UnreadableError(
            f"{path} has true components of {len(M)} features, but {data.name} has {m}{more}; "
            f"they must agree."
        )
    return np.ascontiguousarray(M, dtype=np.float64)
