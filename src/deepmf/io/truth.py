"""True components from files beside the data."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import setting
from deepmf._utils.safe_archives import UnreadableError, load_npy, load_npz
from deepmf.data.dataset import Dataset, Truth
from deepmf.data.wavelengths import as_wavelengths, find_wavelengths, is_length, names_wavelengths
from deepmf.io.format import Variable
from deepmf.io.mat import Mat, load
from deepmf.io.numpy_files import Npz
from deepmf.io.spectral_library import read_library
from deepmf.io.variables import is_numeric, list_of

_TABLES = (".csv", ".tsv", ".txt")
_SUFFIXES = (".mat", ".npz", ".npy", *_TABLES, ".sli", ".hdr")
_ARRAYS = re.compile(r"(M|W|A|names|cood)(\d*)")
_NOT_MATERIALS = {"band", "bands", "feature", "index", ""}
_SAME = 1e-3
"""Wavelengths that differ by less, relatively, are the same."""


class _Found(NamedTuple):
    """A matrix of features x materials, their names, and wavelengths and abundances if known."""

    W: Any
    names: list[str]
    wavelengths: NDArray[np.float64] | None = None
    A: Any = None


def read_truth(path: str | os.PathLike[str], data: Dataset) -> list[Truth]:
    """The true components that a file holds, those of most materials first.

    Where the file and the data have wavelengths, spectra are interpolated onto the data's bands;
    else bands that ``data`` left out of its own file are left out here too. Abundances are taken
    where they have a column for each sample of the data, in the same order.

    Parameters
    ----------
    path : path
        ``.mat`` or ``.npz`` with M (features x materials, or M4, M5, ...), names (``cood`` or
        ``names``, ``names4``, ...) and abundances A (materials x samples, or A4, A5, ...) where
        known, or one matrix under another name; ``FILE.mat:NAME`` takes the
        array of that name. ``.npy`` with M alone, a CSV table with a column per material, or an
        ENVI spectral library.
    data : Dataset
        The data they belong to.
    """
    file, name = _split(os.fspath(path))
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {str(file)!r}.")
    try:
        found = _read(file, name, data)
    except (UnreadableError, ImportError, PermissionError):
        raise
    except Exception as error:  # a broken file fails in a dozen ways
        raise UnreadableError(
            f"{file} is not a whole file of true components ({type(error).__name__}: {error}). It "
            f"may be truncated or damaged; get or write it again."
        ) from error
    known = [_fitted(file, one, data) for one in found]
    return sorted(known, key=lambda truth: -len(truth.names))


def truth_file(source: str) -> str:
    """The file in ``FILE`` or ``FILE.mat:NAME``."""
    return str(_split(source)[0])


def _split(source: str) -> tuple[Path, str | None]:
    file, colon, name = source.rpartition(":")
    if colon and file.lower().endswith((".mat", ".npz")) and not Path(source).exists():
        return Path(file), name
    return Path(source), None


def component_names(given: Any, count: int) -> list[str]:
    """``1-Asphalt Road`` as ``Asphalt Road``; numbers where names are missing."""
    cells = [str(np.asarray(cell).ravel()[0]) for cell in np.asarray(given).ravel()]
    if len(cells) != count:
        return [str(k + 1) for k in range(count)]
    return [re.sub(r"^\s*\d+\s*[-_. ]\s*", "", cell).strip() for cell in cells]


def _read(path: Path, name: str | None, data: Dataset) -> list[_Found]:
    suffix = path.suffix.lower()
    if suffix in (".sli", ".hdr"):
        return [_Found(*read_library(path))]
    if suffix in _TABLES:
        return [_from_table(path)]
    if suffix == ".npy":
        M = load_npy(path)
        return [_Found(M, component_names([], M.shape[-1]))]
    if suffix in (".mat", ".npz"):
        return _from_arrays(path, name, data)
    raise UnreadableError(
        f"{path} has no suffix of a file of true components. They are read from "
        f"{', '.join(_SUFFIXES)}."
    )


def _from_arrays(path: Path, name: str | None, data: Dataset) -> list[_Found]:
    """M, or M4, M5, ... each with its names; else the only matrix with the data's features."""
    mat = path.suffix.lower() == ".mat"
    found = {v.name: v for v in (Mat() if mat else Npz()).variables(path)}
    lists = [
        v.name
        for v in found.values()
        if (is_numeric(v.dtype) or v.dtype == "cell" or v.dtype[:2] in ("<U", ">U"))
        and max(v.shape, default=1) == math.prod(v.shape)
    ]
    usual = [n for n in found if _ARRAYS.fullmatch(n)]
    matrices = [n for n in usual if n[0] in "MW" and len(found[n].shape) == 2]
    if name is not None or not matrices:
        matrices = [_the_matrix(path, list(found.values()), name, data)]
    wanted = {*matrices, *usual, *lists}
    arrays = load(path, wanted) if mat else load_npz(path, sorted(wanted))
    waves = {n: a for n, a in arrays.items() if n in lists}
    out = []
    for n in matrices:
        M = arrays[n]
        number = n.lstrip("MW")
        given = arrays.get(f"names{number}", arrays.get(f"cood{number}"))
        if given is None and n not in usual:
            given = _only_names(arrays, M.shape[1])
        names = component_names([] if given is None else given, M.shape[1])
        A = arrays.get(f"A{number}") if n in usual else None
        out.append(_Found(M, names, find_wavelengths(waves, M.shape[:1]), A))
    return out


def _the_matrix(path: Path, found: list[Variable], name: str | None, data: Dataset) -> str:
    """The matrix of that name, or the only one with as many rows as the data have features."""
    numbers = [v for v in found if len(v.shape) == 2 and is_numeric(v.dtype) and min(v.shape) > 0]
    if name is not None:
        if name in [v.name for v in numbers]:
            return name
        raise UnreadableError(f"{path} has no matrix {name!r}; it has {list_of(found)}.")
    counts = (data.X.shape[0], data.layout.total_bands)
    right = [v for v in numbers if v.shape[0] in counts and v.shape != data.X.shape]
    right = [v for v in right if v.shape[1] > 1] or right
    if len(right) == 1:
        return right[0].name
    raise UnreadableError(
        f"{path} has no true components under a usual name: expected a matrix M of features x "
        f"materials, but it has {list_of(right or found)}. Say which one: {path.name}:NAME."
    )


def _only_names(arrays: Mapping[str, Any], count: int) -> Any:
    """The only list of as many texts."""
    texts = [a for a in arrays.values() if np.asarray(a).dtype.kind in "OU" and np.size(a) == count]
    return texts[0] if len(texts) == 1 else None


def _from_table(path: Path) -> _Found:
    """A column per material under a line of names; one may be of bands, one of wavelengths."""
    text = path.read_text(encoding="utf-8-sig")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    lines = [line for line in csv.reader(text.splitlines(), delimiter=delimiter) if any(line)]
    if len(lines) < 2 or len({len(line) for line in lines}) > 1:
        raise UnreadableError(
            f"{path} is not a table of true components: expected a line of names, then a line of "
            f"as many numbers per band."
        )
    head = [name.strip() for name in lines[0]]
    of_waves = [k for k, name in enumerate(head) if names_wavelengths(name) or is_length(name)]
    named = [
        k for k, name in enumerate(head) if name.lower() not in _NOT_MATERIALS and k not in of_waves
    ]
    wanted = named + of_waves
    columns = np.array([[float(line[k]) for k in wanted] for line in lines[1:]])
    names = component_names([head[k] for k in named], len(named))
    waves = None
    if of_waves:
        unit = re.split(r"[^a-zµμ]+", head[of_waves[0]].lower().strip(" ()[]"))[-1]
        waves = as_wavelengths(columns[:, len(named)], unit)
    return _Found(columns[:, : len(named)], names, waves)


def _fitted(path: Path, found: _Found, data: Dataset) -> Truth:
    """The truth found, with the features of the data, finite and real."""
    M = found.W.toarray() if hasattr(found.W, "toarray") else np.asarray(found.W)
    if M.ndim != 2 or M.size == 0 or M.dtype.kind not in "buif" or not np.isfinite(M).all():
        raise UnreadableError(
            f"{path} holds no matrix of finite numbers with a column for each true component."
        )
    m, layout = data.X.shape[0], data.layout
    waves, note = found.wavelengths, ""
    if len(M) != m and layout.bands is not None and len(M) == layout.total_bands:
        M, waves = M[layout.bands - 1], None if waves is None else waves[layout.bands - 1]
    if waves is not None and layout.wavelengths is not None:
        same = len(M) == m and np.allclose(waves, layout.wavelengths, rtol=_SAME)
        if not same:
            M, note = _interpolated(path, M, waves, data.name, layout.wavelengths)
    if len(M) != m:
        more = f" ({layout.total_bands} with bad ones)" if layout.bands is not None else ""
        raise UnreadableError(
            f"{path} has true components of {len(M)} features, but {data.name} has {m}{more}; "
            f"they must agree, or both must have wavelengths."
        )
    A, left_out = _abundances(path, found, data)
    W = np.ascontiguousarray(M, dtype=np.float64)
    return Truth(W, found.names, " ".join(filter(None, (note, left_out))), A)


def _abundances(path: Path, found: _Found, data: Dataset) -> tuple[NDArray[np.float64] | None, str]:
    """Abundances with a column for each sample; or why there are none."""
    if found.A is None:
        return None, ""
    A = found.A.toarray() if hasattr(found.A, "toarray") else np.asarray(found.A)
    wanted = (len(found.names), data.X.shape[1])
    if A.shape != wanted:
        why = f"they are {' x '.join(map(str, A.shape))}, not {wanted[0]} x {wanted[1]}"
    elif A.dtype.kind not in "buif" or not np.isfinite(A).all() or (A < 0).any():
        why = "not all of them are finite and nonnegative numbers"
    else:
        return np.ascontiguousarray(A, dtype=np.float64), ""
    return None, f"The abundances in {path.name} are not compared: {why}."


def _interpolated(
    path: Path, M: NDArray, waves: NDArray, name: str, bands: NDArray
) -> tuple[NDArray[np.float64], str]:
    """Spectra on the data's bands, between wavelengths linearly; and what to say of it."""
    low, high = float(waves.min()), float(waves.max())
    steps = np.diff(np.sort(bands)) if len(bands) > 1 else np.ones(1)
    # a band beyond an end by less than the distance to its neighbor has the value at the end
    beyond = int(((bands <= low - steps[0]) | (bands >= high + steps[-1])).sum())
    spans = f"{low:.0f} to {high:.0f} nm", f"{bands.min():.0f} to {bands.max():.0f} nm"
    if beyond:
        raise UnreadableError(
            f"{path} has spectra from {spans[0]}, but {name} has bands from {spans[1]}, {beyond} "
            f"of them outside; give spectra that cover them, or leave these bands out with "
            f"{setting('bad_bands')}."
        )
    order = np.argsort(waves)
    out = np.column_stack([np.interp(bands, waves[order], spectrum[order]) for spectrum in M.T])
    note = (
        f"Spectra of {path.name} at {len(waves)} wavelengths ({spans[0]}) were interpolated onto "
        f"the {len(bands)} bands of the data ({spans[1]})."
    )
    return out, note
