"""Choices in reading a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from deepmf._utils.messages import setting
from deepmf._utils.safe_archives import UnreadableError

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
        """Refuse invalid choices."""
        for part, allowed in _ANSWERS.items():
            if getattr(self, part) not in (None, *allowed):
                given = getattr(self, part)
                raise UnreadableError(
                    f"{setting(part)} must be {' or '.join(allowed)}, got {given!r}."
                )
        for part in _TEXTS:
            if not isinstance(getattr(self, part), str | None):
                raise UnreadableError(f"{setting(part)} must be text, got {getattr(self, part)!r}.")
        if not isinstance(self.gaps, bool | None):
            raise UnreadableError(f"gaps must be true or false, got {self.gaps!r}.")
        if isinstance(self.nodata, bool) or not isinstance(self.nodata, int | float | None):
            raise UnreadableError(f"{setting('nodata')} must be a number, got {self.nodata!r}.")
        if self.image is not None and not (len(self.image) == 2 and min(self.image) > 0):
            raise UnreadableError(f"{setting('image')} must be rows and cols, got {self.image!r}.")

    def but(self, **answers: Any) -> Reading:
        """Copy with some choices replaced."""
        for name in answers:
            if name not in self.__dataclass_fields__:
                known = ", ".join(self.__dataclass_fields__)
                raise TypeError(f"A file is not read by {name!r}; there are {known}.")
        return replace(self, **answers)
