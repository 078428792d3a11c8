"""Names, wavelengths and image geometry of the rows and columns of X."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf.data.provenance import (
    Dimensions,
    Georeference,
    Scaling,
    Source,
    from_plain,
    to_plain,
)

Kind = Literal["scene", "pictures", "table"]

_ARRAYS = ("features", "samples", "wavelengths", "bands", "valid", "y", "x", "kept")
_PLAIN = ("order", "pixels", "total_bands", "spectra_totals")
_PARTS = ("source", "georeference", "dimensions", "scaling")
"""Fields that are saved as arrays, and as JSON."""

_WHOLE = "whole_"
"""Beginning of the names of arrays that describe all features, where some were kept."""

_FEW_BANDS = 20
"""Largest number of bands that are named below a curve."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Names and geometry of X, m features x n samples. Every part is optional.

    Attributes
    ----------
    features, samples : arrays of m and n str
        Names of the rows (bands, words, genes) and of the columns (documents, cells).
    wavelengths : array of m floats
        Band centers in nanometers.
    bands : array of m ints
        Numbers, from 1, of the rows among the bands of the file; a jump is a gap of bad bands.
    total_bands : int
        Number of bands of the file, where some are left out.
    image_shape : (rows, cols)
        The picture's shape, where X holds pictures.
    order : {"C", "F"}
        Whether consecutive pixels run along a row ("C") or down a column ("F", as in MATLAB).
    pixels : {"columns", "rows"}
        Whether the pixels of a picture are the columns of X (a scene: a row of X or of H_1 is a
        picture) or its rows (faces: a column of X or of W is a picture).
    valid : array of rows x cols bools
        Pixels of a scene that X has, where others hold no data; n of them are true.
    y, x : arrays of rows and of cols values
        Coordinates of the picture's rows and columns.
    source : Source
        The file that X was read from.
    georeference : Georeference
        Position of a scene on Earth.
    dimensions : Dimensions
        Named dimensions of the xarray object that X was made from.
    scaling : Scaling
        Statistics that X was scaled by.
    kept : array of bools
        Features that X has among all that were given, where the most variable were kept; m of
        them are true.
    whole : Layout
        Names, wavelengths and bands of all features that were given, where some were kept.
    spectra_totals : tuple of tuples of floats
        Where codes were computed for the spectra of another fit: the sum over the bands of each
        spectrum of each layer, so that fractions refer to the same spectra.
    """

    features: NDArray[np.str_] | None = None
    samples: NDArray[np.str_] | None = None
    wavelengths: NDArray[np.float64] | None = None
    bands: NDArray[np.int64] | None = None
    image_shape: tuple[int, int] | None = None
    order: Literal["C", "F"] = "C"
    pixels: Literal["columns", "rows"] = "columns"
    valid: NDArray[np.bool_] | None = None
    y: NDArray | None = None
    x: NDArray | None = None
    total_bands: int | None = None
    source: Source = field(default_factory=Source)
    georeference: Georeference = field(default_factory=Georeference)
    dimensions: Dimensions | None = None
    scaling: Scaling | None = None
    kept: NDArray[np.bool_] | None = None
    whole: Layout | None = None
    spectra_totals: tuple[tuple[float, ...], ...] | None = None

    @property
    def kind(self) -> Kind:
        """Form in which data are shown: a scene of pixels, a set of pictures, or a table."""
        if self.image_shape is None:
            return "table"
        return "scene" if self.pixels == "columns" else "pictures"

    def check(self, shape: tuple[int, int], name: str = "the data") -> None:
        """Refuse parts that do not fit X's shape."""
        m, n = shape
        for part, allowed in (("order", ("C", "F")), ("pixels", ("columns", "rows"))):
            if getattr(self, part) not in allowed:
                raise ValueError(
                    f"{name}: {part} must be {' or '.join(allowed)}, got {getattr(self, part)!r}."
                )
        for part, wanted, what in (
            ("features", m, "rows"),
            ("wavelengths", m, "bands"),
            ("bands", m, "bands"),
            ("samples", n, "columns"),
        ):
            given = getattr(self, part)
            if given is not None and given.shape != (wanted,):
                raise ValueError(
                    f"{name}: {part} has shape {given.shape}, but X has {wanted} {what}."
                )
        if self.kept is not None:
            if self.whole is None or self.kept.dtype != bool or self.kept.sum() != m:
                raise ValueError(f"{name}: kept must be a mask of {m} features, with their names.")
            self.whole.check((self.kept.size, n), name)
        if self.image_shape is None:
            return
        if self.valid is not None and self.valid.shape != self.image_shape:
            raise ValueError(
                f"{name}: valid has shape {self.valid.shape}, but the picture is "
                f"{self.image_shape[0]} x {self.image_shape[1]}."
            )
        count = n if self.pixels == "columns" else m
        if self.n_pixels != count:
            raise ValueError(
                f"{name}: image_shape {self.image_shape} does not hold the {count} {self.pixels} "
                f"of X{'' if self.valid is None else ' with its valid pixels'}."
            )

    @property
    def n_pixels(self) -> int:
        """Number of pixels with data."""
        if self.image_shape is None:
            return 0
        return int(np.prod(self.image_shape) if self.valid is None else self.valid.sum())

    def image(self, values: ArrayLike) -> NDArray[np.float64]:
        """One value per pixel as a picture, row 0 at the top, NaN where there is no data.

        Parameters
        ----------
        values : array_like of as many values as there are pixels with data
            A row of X or of codes for a scene, a column of X or of W for pictures.
        """
        flat = np.asarray(values, dtype=np.float64)
        if self.image_shape is None:
            raise ValueError("These data hold no pictures: their layout has no image_shape.")
        rows, cols = self.image_shape
        if flat.shape != (self.n_pixels,):
            raise ValueError(
                f"values has shape {flat.shape}, but a picture needs {self.n_pixels} values, one "
                f"for each of the {self.pixels} of X ({rows} x {cols} pixels)."
            )
        if self.valid is None:
            return flat.reshape(rows, cols, order=self.order)
        picture = np.full((rows, cols), np.nan)
        if self.order == "C":
            picture[self.valid] = flat
        else:
            picture.T[self.valid.T] = flat
        return picture

    def values(self, picture: ArrayLike) -> NDArray[np.float64]:
        """One value per pixel with data, of a picture that `image` made.

        Parameters
        ----------
        picture : array_like of rows x cols
        """
        flat = np.asarray(picture, dtype=np.float64)
        if flat.shape != self.image_shape:
            raise ValueError(f"picture has shape {flat.shape}; expected {self.image_shape}.")
        if self.valid is None:
            return flat.ravel(order=self.order)
        return flat[self.valid] if self.order == "C" else flat.T[self.valid.T]

    def pieces(self) -> list[slice]:
        """Runs of neighboring bands, broken at the gaps of bad ones; [] without bands."""
        count = self.wavelengths if self.wavelengths is not None else self.bands
        if count is None:
            return []
        ends = [] if self.bands is None else (np.flatnonzero(np.diff(self.bands) > 1) + 1).tolist()
        return [slice(a, b) for a, b in zip([0, *ends], [*ends, len(count)])]

    def band_ticks(self) -> list[str] | None:
        """Names of a scene's bands, where they are few and nothing says their wavelengths."""
        if self.kind != "scene" or self.features is None or self.wavelengths is not None:
            return None
        return self.features.tolist() if len(self.features) <= _FEW_BANDS else None

    def sample_name(self, j: int) -> str:
        """A sample in words: the pixel of a scene by its row and column, counted from 0."""
        if self.kind == "scene" and self.image_shape is not None:
            mask = np.ones(self.image_shape, dtype=bool) if self.valid is None else self.valid
            place = np.flatnonzero(mask.ravel(order=self.order))[j]
            row, column = np.unravel_index(place, self.image_shape, order=self.order)
            return f"the pixel in row {row}, column {column}"
        return f"sample {j}" if self.samples is None else f"sample {str(self.samples[j])!r}"

    def feature_name(self, i: int) -> str:
        """A feature in words: by its name, its wavelength, or its number from 0."""
        if self.features is not None:
            return f"feature {str(self.features[i])!r}"
        if self.wavelengths is not None:
            return f"the band at {self.wavelengths[i]:.6g} nm"
        return f"feature {i if self.kept is None else np.flatnonzero(self.kept)[i]}"

    def feature_numbers(self, m: int) -> NDArray[np.int64]:
        """Numbers, from 0, of X's m features among all that were given."""
        return np.arange(m) if self.kept is None else np.flatnonzero(self.kept)

    def of_features(self, kept: NDArray[np.bool_]) -> Layout:
        """Layout of some of these features, which remembers all of them."""
        parts = {name: getattr(self, name) for name in ("features", "wavelengths", "bands")}
        own: dict[str, Any] = {n: None if part is None else part[kept] for n, part in parts.items()}
        if self.kind == "pictures":
            own["valid"] = self.image(kept) == 1
        whole = Layout(**parts, total_bands=self.total_bands)
        return replace(self, **own, kept=kept, whole=whole)

    @property
    def all_features(self) -> Layout:
        """Layout of all features that were given, where some were kept; else this one."""
        return self if self.whole is None else self.whole

    def of_new(self, m: int) -> Layout:
        """Layout that new samples of m features must have: all that were given, or those kept.

        These alone will do where nothing was scaled.
        """
        scaled = self.scaling is not None and self.scaling.how
        enough = self.kept is not None and m == self.kept.sum() and not scaled
        return self if enough else self.all_features

    def of_samples(self, samples: NDArray[np.str_] | None) -> Layout:
        """Layout with these features and other samples, which are not a scene."""
        kept = self if self.kind == "pictures" else replace(self, image_shape=None, valid=None)
        return replace(kept, samples=samples, y=None, x=None)

    # --- files -------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray]:
        """Arrays that an ``.npz`` can hold without pickle."""
        parts = {name: getattr(self, name) for name in _ARRAYS}
        rest = to_plain({name: getattr(self, name) for name in (*_PLAIN, *_PARTS)})
        rest["image_shape"] = None if self.image_shape is None else list(self.image_shape)
        arrays = {name: a for name, a in parts.items() if a is not None}
        whole = {} if self.whole is None else self.whole.to_arrays()
        arrays |= {f"{_WHOLE}{name}": a for name, a in whole.items()}
        return {**arrays, "layout": np.array(json.dumps(rest))}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray]) -> Layout:
        """Layout from the arrays of `to_arrays`."""
        rest = from_plain(json.loads(str(arrays["layout"])))
        shape = rest.pop("image_shape")
        parts: dict[str, Any] = {name: arrays[name] for name in _ARRAYS if name in arrays}
        whole = {n.removeprefix(_WHOLE): a for n, a in arrays.items() if n.startswith(_WHOLE)}
        return cls(
            **parts,
            image_shape=None if shape is None else (shape[0], shape[1]),
            whole=cls.from_arrays(whole) if whole else None,
            **rest,
        )
