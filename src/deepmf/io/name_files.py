"""Names of features and samples from files beside the data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.atomic_files import UNREADABLE
from deepmf._utils.safe_archives import UnreadableError, load_npy, load_npz
from deepmf.data.dataset import Dataset
from deepmf.data.reading import Reading


def with_names(data: Dataset, reading: Reading) -> Dataset:
    """The data with the names the user gave in files."""
    given: dict[str, Any] = {}
    for axis, part in enumerate(("features", "samples")):
        source = getattr(reading, part)
        if source is None:
            continue
        names = read_names(source)
        if len(names) != data.X.shape[axis]:
            raise UnreadableError(
                f"{source} has {len(names)} names, but {data.name} has {data.X.shape[axis]} {part}."
            )
        given[part] = names
    return replace(data, layout=replace(data.layout, **given))


def read_names(source: str) -> NDArray[np.str_]:
    """One name per line of a text file, or the entries of ``FILE.npy`` or ``FILE.npz:ARRAY``."""
    file, _, array = source.partition(".npz:")
    path = Path(file + ".npz" if array else source)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r} with names.")
    try:
        if array:
            return load_npz(path, [array])[array].astype(np.str_).ravel()
        if path.suffix == ".npy":
            return load_npy(path).astype(np.str_).ravel()
        return np.array(path.read_text(encoding="utf-8-sig").splitlines(), dtype=np.str_)
    except UNREADABLE as error:
        raise UnreadableError(
            f"{source} holds no list of names ({type(error).__name__}): expected a text file with "
            f"one name per line, FILE.npy, or FILE.npz:ARRAY."
        ) from None
