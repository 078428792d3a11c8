"""Metadata of a data file that X and its names do not hold; results are written back with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Attributes = Mapping[str, Any]
"""Plain data by name, as JSON can hold it."""


@dataclass(frozen=True)
class Source:
    """The file or object that X was read from.

    Attributes
    ----------
    format : str
        A file format's name, or ``"xarray"``.
    path : str, optional
        Where results are added to a copy of the file.
    attrs : mapping
        Attributes of the whole file.
    """

    format: str = ""
    path: str | None = None
    attrs: Attributes = field(default_factory=dict)


@dataclass(frozen=True)
class Georeference:
    """Position of a scene on Earth, in the terms of its file.

    Attributes
    ----------
    crs : str, optional
        Coordinate reference system as WKT.
    transform : six floats, optional
        Affine map from (column, row) to coordinates.
    envi : mapping
        Fields of an ENVI header, such as ``map info``.
    grid_mapping : mapping
        Attributes of each coordinate of an xarray object that describes a projection.
    """

    crs: str | None = None
    transform: tuple[float, ...] | None = None
    envi: Mapping[str, str] = field(default_factory=dict)
    grid_mapping: Mapping[str, Attributes] = field(default_factory=dict)


@dataclass(frozen=True)
class Dimensions:
    """Named dimensions of the array that X was made from.

    Attributes
    ----------
    order : tuple of str
        All of them, in the order of the array; several dimensions of features count as one.
    samples : tuple of str
        Those of the samples: one, or the two of a picture.
    attrs : mapping
        Attributes of their coordinates.
    label_type : str, optional
        dtype of the samples' labels, which a `Layout` holds as text.
    """

    order: tuple[str, ...]
    samples: tuple[str, ...]
    attrs: Mapping[str, Attributes] = field(default_factory=dict)
    label_type: str | None = None

    @property
    def features(self) -> str:
        """The dimension of the features."""
        (name,) = set(self.order) - set(self.samples)
        return name


@dataclass(frozen=True)
class Scaling:
    """Statistics that X was scaled by, so that new samples can be scaled alike.

    Attributes
    ----------
    median_total : float
        Median of the columns' sums.
    row_weights : tuple of floats
        Factor of each row.
    how : str
        One of `deepmf.data.scaling.SCALES`; empty in files of older versions.
    """

    median_total: float = 1.0
    row_weights: tuple[float, ...] = ()
    how: str = ""


_PARTS = {
    "source": Source,
    "georeference": Georeference,
    "dimensions": Dimensions,
    "scaling": Scaling,
}


def to_plain(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a layout as JSON can hold them."""
    return {name: asdict(part) if name in _PARTS and part else part for name, part in parts.items()}


def from_plain(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a layout from what `to_plain` gave, or from a file of an older version."""
    parts = dict(parts)
    if "header" in parts:
        parts |= _from_header(parts.pop("header"))
    for name, cls in _PARTS.items():
        if parts.get(name) is not None:
            parts[name] = cls(**{key: _as_tuple(value) for key, value in parts[name].items()})
    if parts.get("spectra_totals") is not None:
        parts["spectra_totals"] = tuple(map(_as_tuple, parts["spectra_totals"]))
    return parts


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _from_header(header: Attributes) -> dict[str, Any]:
    """Fields from the one mapping that files held before version 0.1."""
    names = {"all_bands": "total_bands", "spectra": "spectra_totals"}
    fields: dict[str, Any] = {new: header[old] for old, new in names.items() if old in header}
    fields["source"] = {key: header[key] for key in ("format", "path", "attrs") if key in header}
    place = {key: header[key] for key in ("crs", "transform", "envi") if key in header}
    fields["georeference"] = {**place, "grid_mapping": header.get("crs_variable", {})}
    if "dims" in header:
        fields["dimensions"] = {
            "order": header["dims"],
            "samples": header["samples"],
            "attrs": header.get("coords", {}),
            "label_type": header.get("type"),
        }
    if "scaled_by" in header:
        by = header["scaled_by"]
        fields["scaling"] = {
            "median_total": by.get("middle", 1.0),
            "row_weights": by.get("rows", []),
        }
    return fields
