"""Lists of bands: wavelengths, and numbers such as 1-3,103."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deepmf.io.base import UnreadableError

_NANOMETRES = {"nm": 1.0, "nanometers": 1.0, "nanometer": 1.0, "nanometres": 1.0}
_NANOMETRES |= {"um": 1e3, "µm": 1e3, "μm": 1e3, "micrometers": 1e3, "micrometer": 1e3}
_NANOMETRES |= {"microns": 1e3, "micron": 1e3, "micrometres": 1e3}


def in_nanometres(values: NDArray[np.float64], unit: str | None) -> NDArray[np.float64]:
    """Wavelengths in nm; without a known unit, values below 100 are micrometres."""
    factor = _NANOMETRES.get((unit or "").strip().lower())
    if factor is None:
        factor = 1e3 if values.size and float(np.nanmax(values)) < 100 else 1.0
    return values * factor


def band_numbers(text: str, count: int) -> NDArray[np.int64]:
    """``"1-3,103"`` as 1, 2, 3, 103."""
    numbers: list[int] = []
    for part in re.split(r"[,\s]+", text.strip()):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if ends is None:
            raise UnreadableError(
                f"Bad bands must be numbers and ranges such as 1-3,103, got {part!r} in {text!r}."
            )
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if not 1 <= first <= last <= count:
            raise UnreadableError(f"Bad bands {part!r} are outside the file's bands, 1 to {count}.")
        numbers += range(first, last + 1)
    return np.array(sorted(set(numbers)), dtype=np.int64)


def read_wavelengths(path: str) -> NDArray[np.float64]:
    """One wavelength per band from a text, CSV or ``.npy`` file, in nanometres.

    Of a table, the first column whose entries are all numbers is taken, unless it merely counts.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {path!r} with wavelengths.")
    try:
        if Path(path).suffix == ".npy":
            values = np.load(path, allow_pickle=False).astype(np.float64).ravel()
        else:
            values = _column(Path(path).read_text(encoding="utf-8-sig"))
    except (ValueError, OSError, EOFError) as error:
        raise UnreadableError(
            f"{path} holds no list of wavelengths ({type(error).__name__}): expected one number "
            f"per line, a table with a column of them, or a .npy file."
        ) from None
    return in_nanometres(values, None)


def _column(text: str) -> NDArray[np.float64]:
    lines = [re.split(r"[,;\s]+", line.strip()) for line in text.splitlines() if line.strip()]
    if len(lines) == 1:
        return np.array([float(v) for v in lines[0] if v])
    if not all(_is_number(v) for v in lines[0]):
        lines = lines[1:]  # a header
    for k in range(min(map(len, lines), default=0)):
        if all(_is_number(line[k]) for line in lines):
            values = np.array([float(line[k]) for line in lines])
            if k + 1 < min(map(len, lines)) and np.array_equal(
                values, np.arange(1, len(values) + 1)
            ):
                continue
            return values
    raise ValueError("no column of numbers")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
