"""Classes of the samples from files, or from columns of AnnData files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.safe_archives import UnreadableError
from deepmf.data.anndata_objects import FORMAT
from deepmf.data.dataset import Dataset
from deepmf.io.h5ad import read_obs
from deepmf.io.name_files import read_names


def read_labels(source: str, data: Dataset) -> NDArray[np.str_]:
    """The class of each sample.

    Parameters
    ----------
    source : str
        A text or CSV file with one class per line, below a heading or not; ``FILE.npy``,
        ``FILE.npz:ARRAY``; or a column of obs, for data from an ``.h5ad`` file.
    data : Dataset
        The data whose samples they are.
    """
    own = data.layout.source
    if labels_file(source):
        found = read_names(os.path.expanduser(source))
    elif own.format == FORMAT and own.path:
        found = read_obs(Path(own.path), source)
    else:
        raise FileNotFoundError(
            f"There is no file {source!r} with classes, and {data.name} is no .h5ad file, which "
            f"could have a column of that name."
        )
    n = data.X.shape[1]
    if len(found) == n + 1:  # below a heading
        found = found[1:]
    if len(found) != n:
        raise UnreadableError(
            f"{source} has the classes of {len(found)} samples, but {data.name} has {n}; give one "
            f"for each sample."
        )
    if n > 1 and len(np.unique(found)) == n:
        raise UnreadableError(
            f"{source} has another value for every sample, such as {str(found[0])!r}: expected "
            f"classes that samples share."
        )
    return found


def labels_file(source: str) -> str | None:
    """The file in ``FILE`` or ``FILE.npz:ARRAY``; None where there is none."""
    file, _, array = os.path.expanduser(source).partition(".npz:")
    path = file + ".npz" if array else file
    return path if Path(path).is_file() else None
