"""ENVI spectral libraries (.sli): spectra with names and wavelengths, for other software."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.safe_archives import UnreadableError
from deepmf.factorization import Factorization
from deepmf.io.envi import (
    braced,
    is_library,
    listed,
    open_raw,
    scale_factor,
    wavelengths,
    write_raw,
)


class Library(NamedTuple):
    """Spectra as the columns of W, bands x spectra."""

    W: NDArray[np.float64]
    names: list[str]
    wavelengths: NDArray[np.float64] | None


def read_library(path: Path) -> Library:
    """The spectra in a library; ``path`` is its ``.sli`` or ``.hdr``."""
    header, cube = open_raw(path)
    if not is_library(header) or cube.shape[2] != 1:
        raise UnreadableError(f"{path} is an ENVI image; expected an ENVI spectral library.")
    W = cube[:, :, 0].T.astype(np.float64) / scale_factor(path, header)
    names = listed(header, "spectra names") or []
    if len(names) != W.shape[1]:
        names = [str(k + 1) for k in range(W.shape[1])]
    return Library(W, names, wavelengths(header))


def write_library(folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
    """``components-layer-l.sli`` and ``.hdr``: each layer's components, where X has wavelengths.

    A scene's are in the data's units.
    """
    waves = f.layout.wavelengths
    if waves is None:
        return
    bands = {"wavelength units": "Nanometers", "wavelength": braced([f"{v:.10g}" for v in waves])}
    for layer in range(1, f.depth + 1):
        view, own = f.view(layer), braced(names[layer - 1])
        said = {"description": braced([view.components_text]), "spectra names": own}
        path = folder / f"components-layer-{layer}.sli"
        write_raw(path, view.components.T[None], {**said, **bands}, "ENVI Spectral Library")
