"""Finding and reading the files of published data sets, with errors a user can act on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.safe_archives import load_npz
from deepmf.io.mat import load
from deepmf.io.registry import whole

Array = NDArray[np.float64]

ENVIRONMENT = "DEEPMF_DATA"


def root(folder: str | os.PathLike[str] | None) -> Path:
    """The folder given, or the one DEEPMF_DATA names; it must exist."""
    given = os.environ.get(ENVIRONMENT) if folder is None else folder
    if not given:
        raise FileNotFoundError(
            f"no data folder was given and the environment variable {ENVIRONMENT} is not set; "
            "pass folder= or set the variable to the folder that holds the files."
        )
    path = Path(given).expanduser()
    if not path.is_dir():
        raise FileNotFoundError(
            f"the data folder {path} is not a directory; pass folder= or set {ENVIRONMENT} to the "
            "folder that holds the files."
        )
    return path


def find(folder: Path, name: str) -> Path | None:
    """The file of that name (in any case) anywhere under the folder, the least deep one first."""
    wanted = name.casefold()
    hits = [p for p in folder.rglob("*") if p.name.casefold() == wanted and p.is_file()]
    return min(hits, key=lambda p: (len(p.parts), str(p)), default=None)


def missing(folder: Path, names: Sequence[str], remedy: str) -> FileNotFoundError:
    """The error for files that are not there."""
    return FileNotFoundError(
        f"looked for {' or '.join(names)} in {folder} and its subfolders and found nothing; "
        f"{remedy}."
    )


def read(path: Path) -> dict[str, Any]:
    """The variables of a MATLAB file or a NumPy archive."""
    with whole(path):
        return load_npz(path) if path.suffix == ".npz" else load(path)


def array(variables: dict[str, Any], names: Sequence[str], path: Path) -> Array:
    """The first of the named variables as a finite float64 matrix."""
    name = next((name for name in names if name in variables), None)
    if name is None:
        raise ValueError(
            f"{path} has no variable {' or '.join(names)}, only {', '.join(variables) or 'none'}; "
            "download the published file again."
        )
    try:
        values = np.ascontiguousarray(variables[name], dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(
            f"variable {name} of {path} is not a matrix of finite numbers; "
            "download the published file again."
        )
    return values


def scaled(X: Array, maximum: float | None) -> Array:
    """``X / max(maximum, max X)`` puts counts in [0, 1]; data at most 1 stay as they are."""
    peak = float(X.max())
    return X / max(peak, maximum or 0.0) if peak > 1 else X
