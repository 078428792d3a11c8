"""ENVI: a text header (.hdr) beside a file of raw numbers, which is memory-mapped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.safe_archives import UnreadableError, check_length
from deepmf.data.assemble import from_cube, from_matrix, names_array
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.provenance import Georeference, Source
from deepmf.data.reading import Reading
from deepmf.data.wavelengths import as_wavelengths
from deepmf.factorization import Factorization
from deepmf.io.format import Format
from deepmf.io.numpy_files import write_codes

_DATA = (".img", ".dat", ".bsq", ".bil", ".bip", ".raw", ".bin", ".sli")
_TYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8", 6: "c8", 9: "c16", 12: "u2"}
_TYPES |= {13: "u4", 14: "i8", 15: "u8"}
_AXES = {"bsq": (1, 2, 0), "bil": (0, 2, 1), "bip": (0, 1, 2)}
"""Axes of lines, samples and bands in the file."""

_KEPT: tuple[str, ...] = ("map info", "coordinate system string", "projection info", "x start")
_KEPT += ("y start", "pixel size", "geo points", "rpc info", "sensor type", "acquisition time")
_FIELD = re.compile(r"^[ \t]*+([^;={}\s][^={}\n]*+)=[ \t]*+(\{[^{}]*+\}|[^{\n]*+)", re.MULTILINE)
"""No part gives back what it took: a header of any length is read once."""

Header = Mapping[str, str]


class Envi(Format):
    """A cube in any interleave, type and byte order; band-interleaved-by-line alone is copied."""

    name = "ENVI"
    suffixes = (".hdr", *_DATA)

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`; ``path`` is the header or the data file."""
        header, cube = open_raw(path)
        waves = wavelengths(header)
        kept = {key: header[key] for key in _KEPT if key in header}
        layout = Layout(source=Source(self.name), georeference=Georeference(envi=kept))
        if is_library(header):
            layout = replace(layout, samples=names_array(listed(header, "spectra names")))
            spectra = cube[:, :, 0] / np.float32(scale_factor(path, header))
            return from_matrix(
                path, spectra, reading, rows="samples", wavelengths=waves, layout=layout
            )
        m = cube.shape[2]
        names = listed(header, "band names")
        if names is not None and len(names) == m:
            layout = replace(layout, features=names_array(names))
        return from_cube(
            path,
            cube,
            reading,
            axis="last",
            wavelengths=waves,
            bad=_bad(path, header, m),
            nodata=_number(path, header, "data ignore value"),
            factor=scale_factor(path, header),
            layout=layout,
        )

    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """See `Format.write`: ``fractions-layer-l.hdr`` and ``.img``, a band per component."""
        if f.layout.kind != "scene":
            return write_codes(folder, f)
        for layer in range(1, f.depth + 1):
            kind, _, text = found = f.view(layer).amounts
            path = folder / f"{kind}-layer-{layer}.img"
            self._save(path, found.maps(f.layout), names[layer - 1], f.layout, text)

    def write_map(self, folder: Path, name: str, values: Any, layout: Layout) -> None:
        """See `Format.write_map`: ``name.hdr`` and ``.img``."""
        self._save(folder / f"{name}.img", layout.image(values)[None], [name], layout)

    def _save(
        self, path: Path, bands: NDArray, names: Sequence[str], layout: Layout, text: str = ""
    ) -> None:
        said = {"description": braced([text])} if text else {}
        said |= {"band names": braced(names), "data ignore value": "nan"}
        write_raw(path, bands, {**said, **layout.georeference.envi})


def open_raw(path: Path) -> tuple[Header, NDArray]:
    """The header, and the numbers as lines x samples x bands, memory-mapped."""
    alone = path.suffix.lower() == ".hdr"
    beside = path if alone else _header_file(path)
    header = read_header(beside)
    data = _data_file(path) if alone else path
    shape = tuple(_whole(beside, header, key) for key in ("lines", "samples", "bands"))
    interleave = header.get("interleave", "bsq").lower()
    kind = _TYPES.get(_whole(beside, header, "data type"))
    if kind is None or interleave not in _AXES:
        raise UnreadableError(
            f"{beside} says data type {header['data type']} and interleave {interleave}; expected "
            f"one of {', '.join(map(str, _TYPES))} and one of {', '.join(_AXES)}."
        )
    dtype = np.dtype(kind).newbyteorder(">" if header.get("byte order", "0") == "1" else "<")
    offset = _whole(beside, header, "header offset", 0)
    check_length(data, shape, dtype, data.stat().st_size - offset)
    axes = _AXES[interleave]
    stored = tuple(shape[axes.index(k)] for k in range(3))
    return header, np.memmap(data, dtype, "r", offset, stored).transpose(axes)


def read_header(path: Path) -> dict[str, str]:
    """``key = value`` lines, keys in small letters; values in braces may take several lines."""
    text = path.read_bytes().decode("utf-8", errors="replace").removeprefix("\ufeff")
    if not text.startswith("ENVI"):
        raise UnreadableError(f"{path} is not an ENVI header: it does not begin with ENVI.")
    return {key.strip().lower(): value.strip() for key, value in _FIELD.findall(text)}


def write_raw(path: Path, bands: NDArray, header: Header, kind: str = "ENVI Standard") -> None:
    """Bands x lines x samples as float32 with a header beside it."""
    bands.astype("<f4").tofile(path)
    m, lines, samples = bands.shape
    said = {"samples": samples, "lines": lines, "bands": m, "header offset": 0, "file type": kind}
    said |= {"data type": 4, "interleave": "bsq", "byte order": 0, **header}
    text = "".join(f"{key} = {value}\n" for key, value in said.items())
    path.with_suffix(".hdr").write_text("ENVI\n" + text, encoding="utf-8")


def listed(header: Header, key: str) -> list[str] | None:
    """The values of a list in braces."""
    text = header.get(key)
    return None if text is None else [part.strip() for part in text.strip("{} \n").split(",")]


def braced(values: Sequence[Any]) -> str:
    """A list in braces; a name's commas and braces would end it."""
    return "{" + ", ".join(re.sub(r"[{},\s]+", " ", str(value)) for value in values) + "}"


def wavelengths(header: Header) -> NDArray[np.float64] | None:
    """Band centers in nanometers; None where there are none, or mere numbers of bands."""
    unit = header.get("wavelength units")
    try:
        values = [float(text) for text in listed(header, "wavelength") or ()]
    except ValueError:
        return None
    return None if (unit or "").lower() == "index" else as_wavelengths(values, unit)


def scale_factor(path: Path, header: Header) -> float:
    """Divisor that turns stored values into reflectances; 1 if the header has none."""
    factor = _number(path, header, "reflectance scale factor", 1.0)
    if factor is None or not 0 < factor < np.inf:
        raise UnreadableError(
            f"{path} says reflectance scale factor = {factor}; expected a positive number."
        )
    return factor


def is_library(header: Header) -> bool:
    """Whether the numbers are spectra, one a line, rather than a picture."""
    return header.get("file type", "").lower() == "envi spectral library"


# --- files and fields ----------------------------------------------------------------------------


def _data_file(header: Path) -> Path:
    """The data of a header: its name without ``.hdr``, or with another suffix."""
    for suffix in ("", *_DATA):
        for ending in (suffix, suffix.upper()):
            data = header.with_suffix(ending)
            if data.is_file():
                return data
    raise FileNotFoundError(
        f"{header} is only a header: there is no data file {header.stem}, {header.stem}.img, "
        f"{header.stem}.dat or the like beside it."
    )


def _header_file(data: Path) -> Path:
    """The header of a data file."""
    beside = [data.with_suffix(".hdr"), data.with_suffix(".HDR"), Path(f"{data}.hdr")]
    for header in beside:
        if header.is_file():
            return header
    raise FileNotFoundError(f"{data} has no ENVI header {beside[0].name} beside it.")


def _bad(path: Path, header: Header, m: int) -> NDArray[np.bool_] | None:
    """The bands that ``bbl`` marks with 0."""
    marks = listed(header, "bbl")
    if marks is None:
        return None
    if len(marks) != m:
        raise UnreadableError(
            f"{path} has {m} bands, but its list of bad bands (bbl) has {len(marks)} marks; fix "
            f"or remove that list."
        )
    return np.array([float(mark) == 0 for mark in marks])


def _number(path: Path, header: Header, key: str, default: float | None = None) -> float | None:
    try:
        return float(header[key]) if key in header else default
    except ValueError:
        raise UnreadableError(f"{path} says {key} = {header[key]}; expected a number.") from None


def _whole(path: Path, header: Header, key: str, default: int | None = None) -> int:
    value = _number(path, header, key, default)
    if value is None or value != value // 1:
        raise UnreadableError(f"{path} does not say a whole number of {key}.")
    return int(value)
