"""Lists of bands: wavelengths, and numbers such as 1-3,103."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.atomic_files import UNREADABLE
from deepmf._utils.messages import setting
from deepmf._utils.safe_archives import UnreadableError, load_npy

_NANOMETRES = {
    **dict.fromkeys(("nm", "nanometers", "nanometer", "nanometres", "nanometre"), 1.0),
    **dict.fromkeys(("um", "µm", "μm", "microns", "micron"), 1e3),
    **dict.fromkeys(("micrometers", "micrometer", "micrometres", "micrometre"), 1e3),
}
_PER_CENTIMETRE = ("wavenumber", "cm-1", "cm^-1", "1/cm")

_NAMES = ("wavelength", "wl", "wvl", "lambda", "lambdas", "bandswavelengths", "bandwavelengths")
_WITH_UNIT = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)\s*(nm|[uµμ]m|nanomet(?:er|re)s?|micromet(?:er|re)s?|microns?)\b",
    re.IGNORECASE,
)


def in_nanometers(values: NDArray[np.float64], unit: str | None) -> NDArray[np.float64]:
    """Wavelengths in nm; without a known unit, values below 100 are micrometers."""
    unit = (unit or "").strip().lower()
    if unit in _PER_CENTIMETRE:
        return 1e7 / values
    factor = _NANOMETRES.get(unit)
    if factor is None:
        factor = 1e3 if values.size and float(values.max()) < 100 else 1.0
    return values * factor


def as_wavelengths(values: Any, unit: Any = None) -> NDArray[np.float64] | None:
    """Wavelengths in nm, or None where the values are not all positive numbers."""
    numbers = np.asarray(values).ravel()
    if numbers.size == 0 or numbers.dtype.kind not in "uif":
        return None
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        return None
    return in_nanometers(numbers.astype(np.float64), None if unit is None else str(unit))


def is_length(unit: Any) -> bool:
    """Whether a unit is one of wavelengths."""
    return str(unit).strip().lower() in (*_NANOMETRES, *_PER_CENTIMETRE)


def names_wavelengths(name: str) -> bool:
    """Whether an array of this name would hold wavelengths: ``wl``, ``Wavelengths``, ``lambda``."""
    plain = re.sub(r"[^a-z]", "", name.lower())
    return plain in _NAMES or plain.startswith(("wavelength", "centerwave", "centralwave"))


def wavelength_in(text: str | None) -> float | None:
    """450.0 from ``"Band 1 (0.45 um)"``; None where no number has a unit."""
    found = _WITH_UNIT.search(text or "")
    return None if found is None else float(found[1]) * _NANOMETRES[found[2].lower()]


def find_wavelengths(
    arrays: Mapping[str, Any], counts: Collection[int]
) -> NDArray[np.float64] | None:
    """The first array, by its name, with a positive number for each band; in nanometers."""
    for name, array in arrays.items():
        if names_wavelengths(name) and np.size(array) in counts:
            waves = as_wavelengths(array)
            if waves is not None:
                return waves
    return None


def band_numbers(text: str, count: int) -> NDArray[np.int64]:
    """``"1-3,103"`` as 1, 2, 3, 103."""
    numbers: list[int] = []
    for part in re.split(r"[,\s]+", text.strip()):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if ends is None:
            raise UnreadableError(
                f"{setting('bad_bands')} must be numbers and ranges such as 1-3,103, got {part!r} "
                f"in {text!r}."
            )
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if not 1 <= first <= last <= count:
            raise UnreadableError(
                f"{setting('bad_bands')} has {part!r}, outside the file's bands, 1 to {count}."
            )
        numbers += range(first, last + 1)
    return np.array(sorted(set(numbers)), dtype=np.int64)


def read_wavelengths(path: str) -> NDArray[np.float64]:
    """One wavelength per band from a text, CSV or ``.npy`` file, in nanometers.

    Of a table, the first column whose entries are all numbers is taken, unless it merely counts.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {path!r} with wavelengths.")
    try:
        if Path(path).suffix == ".npy":
            values = load_npy(Path(path)).astype(np.float64).ravel()
        else:
            values = _column(Path(path).read_text(encoding="utf-8-sig"))
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise ValueError("not all are positive")
    except UNREADABLE as error:
        raise UnreadableError(
            f"{path} holds no list of wavelengths ({type(error).__name__}): expected one positive "
            f"number per line, a table with a column of them, or a .npy file."
        ) from None
    return in_nanometers(values, None)


def _column(text: str) -> NDArray[np.float64]:
    lines = [re.split(r"[,;\s]+", line.strip()) for line in text.splitlines() if line.strip()]
    if len(lines) == 1:
        return np.array([float(v) for v in lines[0] if v])
    if lines and not all(is_number(v) for v in lines[0]):
        lines = lines[1:]  # a header
    width = min(map(len, lines), default=0)
    for k in range(width):
        if all(is_number(line[k]) for line in lines):
            values = np.array([float(line[k]) for line in lines])
            counts = np.array_equal(values - values[0], np.arange(len(values))) and values[0] <= 1
            if not (counts and k + 1 < width):
                return values
    raise ValueError("no column of numbers")


def is_number(text: str) -> bool:
    """Whether a text is one number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
