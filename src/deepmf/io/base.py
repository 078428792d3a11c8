"""What a file format is, and how files that leave a choice are to be read."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from deepmf.archives import UnreadableError as UnreadableError
from deepmf.dataset import Dataset
from deepmf.factorization import Factorization
from deepmf.layout import Layout

_TEXTS = ("variable", "wavelengths", "bad_bands", "features", "samples", "index", "drop")
_ANSWERS = {"rows": ("features", "samples"), "bands": ("first", "last"), "order": ("C", "F")}


@dataclass(frozen=True)
class Reading:
    """Answers to what a file may leave open. ``None``: what the file says, or the usual.

    Attributes
    ----------
    variable : str
        Which of several arrays (``.npz``, ``.mat``, NetCDF, Zarr), layer (``.h5ad``).
    rows : {"features", "samples"}
        What the rows of a matrix are.
    bands : {"first", "last"}
        Which axis of a cube without named dimensions is spectral.
    image : (rows, cols)
        Shape of the picture that the columns (a scene) or rows (faces) of a matrix make.
    order : {"C", "F"}
        Whether the pixels of such a picture run along its rows or down its columns.
    wavelengths : path
        A text, CSV or ``.npy`` file with one wavelength per band.
    bad_bands : str
        Bands to leave out, numbered from 1: ``"1-3,103,148-166"``; ``"none"`` keeps those that the
        file itself marks, and ``"none,1-3"`` leaves out these alone.
    nodata : float
        The value of pixels without data, in all their bands.
    features, samples : path
        A text file with one name per line for each feature or sample, a ``.npy`` file, or an array
        in an archive, ``names.npz:terms``.
    index : str
        The column of a table that names its rows.
    drop : str
        Columns of a table to leave out, ``"segment,city"``.
    gaps : bool
        Whether entries that a table or some pixels of a scene lack are NaN in X, for
        ``weights="observed"``. Default: such a table is refused, such pixels are left out.
    """

    variable: str | None = None
    rows: Literal["features", "samples"] | None = None
    bands: Literal["first", "last"] | None = None
    image: tuple[int, int] | None = None
    order: Literal["C", "F"] | None = None
    wavelengths: str | None = None
    bad_bands: str | None = None
    nodata: float | None = None
    features: str | None = None
    samples: str | None = None
    index: str | None = None
    drop: str | None = None
    gaps: bool | None = None

    def __post_init__(self) -> None:
        """Refuse answers that are none."""
        for part, allowed in _ANSWERS.items():
            if getattr(self, part) not in (None, *allowed):
                given = getattr(self, part)
                raise UnreadableError(f"{part} must be {' or '.join(allowed)}, got {given!r}.")
        for part in _TEXTS:
            if not isinstance(getattr(self, part), str | None):
                raise UnreadableError(f"{part} must be text, got {getattr(self, part)!r}.")
        if not isinstance(self.gaps, bool | None):
            raise UnreadableError(f"gaps must be true or false, got {self.gaps!r}.")
        if isinstance(self.nodata, bool) or not isinstance(self.nodata, int | float | None):
            raise UnreadableError(f"nodata must be a number, got {self.nodata!r}.")
        if self.image is not None and not (len(self.image) == 2 and min(self.image) > 0):
            raise UnreadableError(f"image must be rows and cols, got {self.image!r}.")

    def but(self, **answers: Any) -> Reading:
        """The same with other answers."""
        for name in answers:
            if name not in self.__dataclass_fields__:
                known = ", ".join(self.__dataclass_fields__)
                raise TypeError(f"A file is not read by {name!r}; there are {known}.")
        return replace(self, **answers)


class Variable(NamedTuple):
    """An array inside a file."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    dense: bool = True


class Format(ABC):
    """A kind of file: how it is read, and how codes are written in the same kind."""

    name: ClassVar[str]
    """What people call it, for example ``"GeoTIFF"``."""
    suffixes: ClassVar[tuple[str, ...]]
    rows: ClassVar[Literal["features", "samples"]] = "features"
    """What the rows of a matrix are, where neither file nor user says."""

    @abstractmethod
    def read(self, path: Path, reading: Reading) -> Dataset:
        """The data, with all the layout that the file knows; ``layout.header["format"] = name``."""

    @abstractmethod
    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """Write each layer's codes into a new folder; ``names`` are the components' per layer."""

    def write_map(self, folder: Path, name: str, values: Any, layout: Layout) -> None:
        """Write one value per pixel of a scene as a picture; of NumPy's kind by default."""
        np.save(folder / f"{name}.npy", layout.image(values))

    def variables(self, path: Path) -> list[Variable]:
        """The arrays a file holds, where it may hold several."""
        return []


def need(module: str, extra: str, purpose: str) -> Any:
    """Import an optional library, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).split(".")[0]
        raise ImportError(
            f"{purpose} needs {missing}, which is not installed: pip install 'deepmf[{extra}]'.",
            name=missing,
        ) from None
