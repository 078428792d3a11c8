"""The formats there are, chosen by a file's suffix."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deepmf._utils.messages import setting
from deepmf._utils.safe_archives import UnreadableError
from deepmf.data.dataset import Dataset
from deepmf.data.reading import Reading
from deepmf.io.envi import Envi
from deepmf.io.format import Format, Variable
from deepmf.io.geotiff import GeoTiff
from deepmf.io.h5ad import H5ad
from deepmf.io.mat import Mat
from deepmf.io.matrix_market import MatrixMarket
from deepmf.io.name_files import with_names
from deepmf.io.numpy_files import Npy, Npz
from deepmf.io.tables import Csv, Parquet
from deepmf.io.xarray_files import NetCdf, Zarr

_USUAL = Reading()

FORMATS: tuple[Format, ...] = (
    Npy(),
    Npz(),
    Mat(),
    Envi(),
    GeoTiff(),
    NetCdf(),
    Zarr(),
    Csv(),
    Parquet(),
    MatrixMarket(),
    H5ad(),
)


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format of a file, by its suffix; of a 10x Genomics folder, that of its matrix."""
    name = _inside(Path(path)).name.lower()
    for kind in FORMATS:
        if name.endswith(kind.suffixes):
            return kind
    known = ", ".join(suffix for kind in FORMATS for suffix in kind.suffixes)
    raise UnreadableError(f"{os.fspath(path)!r} has no suffix that deepmf knows. It reads {known}.")


def read(path: str | os.PathLike[str], reading: Reading = _USUAL, **answers: Any) -> Dataset:
    """The data in a file, features x samples, with the layout the file knows.

    Parameters
    ----------
    path : path
        Its suffix says the format.
    reading : Reading
        Answers to what the file leaves open.
    **answers
        The same by name, each an attribute of `Reading` and an option of the command line:
        ``variable`` (which of several arrays), ``rows`` (of a matrix: ``"features"`` or
        ``"samples"``), ``bands`` (the spectral axis of a cube: ``"first"`` or ``"last"``),
        ``image`` (rows and cols of the picture that a matrix makes), ``order`` (of its pixels:
        ``"C"`` or ``"F"``), ``wavelengths`` (a file), ``bad_bands`` (as ``"1-3,103"``), ``nodata``
        (a value), ``features`` and ``samples`` (files of names), ``index`` and ``drop`` (columns of
        a table), ``gaps`` (keep what is partly missing, with NaN, for ``weights="observed"``).

    Returns
    -------
    Dataset
        To be given to `factorize` or `DeepMF`; its ``notes`` say what was chosen and left out.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from deepmf.io import read
    >>> path = os.path.join(tempfile.mkdtemp(), "cube.npy")
    >>> np.save(path, np.ones((6, 4, 5)))
    >>> read(path, bands="first", bad_bands="1-2").X.shape
    (4, 20)
    """
    reading = reading.but(**answers)
    file = _inside(Path(path))
    with whole(file) as kind:
        if reading.variable is not None and type(kind).variables is Format.variables:
            raise UnreadableError(f"{file} holds one array; leave out {setting('variable')}.")
        return with_names(kind.read(file, reading), reading)


def variables(path: str | os.PathLike[str]) -> list[Variable]:
    """The arrays that a file holds, where its format allows several."""
    file = _inside(Path(path))
    with whole(file) as kind:
        return kind.variables(file)


def _inside(path: Path) -> Path:
    """The matrix in a folder as 10x Genomics makes it, or the path itself."""
    for name in ("matrix.mtx", "matrix.mtx.gz") if path.is_dir() else ():
        if (path / name).is_file():
            return path / name
    return path


@contextmanager
def whole(file: Path) -> Iterator[Format]:
    """A file's format; errors of libraries on a broken file become one error message."""
    if not file.exists():
        raise FileNotFoundError(f"There is no file {str(file)!r}.")
    kind = format_of(file)
    try:
        yield kind
    except (UnreadableError, ImportError, PermissionError, FileNotFoundError):
        raise
    except MemoryError:
        raise UnreadableError(f"{file} does not fit in memory.") from None
    except Exception as error:  # libraries fail on broken files in a dozen ways
        raise UnreadableError(
            f"{file} is not a whole {kind.name} file ({_first_line(error)}). It may be truncated "
            f"or damaged, or its suffix may be wrong; get or write it again."
        ) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
