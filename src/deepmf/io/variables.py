"""Choice of the data among the arrays of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deepmf._utils.messages import setting
from deepmf._utils.safe_archives import UnreadableError
from deepmf.io.format import Variable

_MOST = 12
"""Variables that a message lists."""


def choose(
    path: Path, found: Sequence[Variable], asked: str | None, preferred: Sequence[str] = ()
) -> str:
    """The variable asked for, a preferred name, or the only cube or matrix there is."""
    if asked is not None:
        if asked in [v.name for v in found]:
            return asked
        raise UnreadableError(f"{path} has no variable {asked!r}; it has {list_of(found)}.")
    big = [v for v in found if len(v.shape) in (2, 3) and min(v.shape) > 1 and is_numeric(v.dtype)]
    for name in preferred:
        if name in [v.name for v in big]:
            return name
    cubes = [v for v in big if len(v.shape) == 3]
    if len(big) == 1 or len(cubes) == 1:  # one cube among matrices: these are maps or spectra
        return (cubes or big)[0].name
    if not big:
        raise UnreadableError(f"{path} holds no matrix or cube of numbers, only {list_of(found)}.")
    raise several(path, big)


def several(path: Path, found: Sequence[Variable]) -> UnreadableError:
    """Error message for a file with several candidates."""
    return UnreadableError(
        f"{path} holds several matrices: {list_of(found)}. Say which one is the data with "
        f"{setting('variable')}."
    )


def is_numeric(dtype: str) -> bool:
    """Whether the NumPy type of this name is one of real numbers."""
    try:
        return np.dtype(dtype).kind in "buif"
    except TypeError:  # a cell or the like, which NumPy does not know
        return False


def list_of(found: Sequence[Variable]) -> str:
    """Names, sizes and types of some variables."""
    shown = [f"{v.name} ({_size(v)} {v.dtype})" for v in found[:_MOST]]
    more = [f"{len(found) - _MOST} more"] if len(found) > _MOST else []
    return ", ".join([*shown, *more]) or "nothing"


def _size(variable: Variable) -> str:
    return " x ".join(map(str, variable.shape)) or "scalar"
