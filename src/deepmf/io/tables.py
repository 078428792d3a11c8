"""Tables: CSV and TSV, Parquet. Rows are samples; headers name the features."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import setting
from deepmf._utils.optional import need
from deepmf._utils.safe_archives import UnreadableError, check_room, room
from deepmf._utils.text_tables import write_csv
from deepmf._utils.warnings import warn
from deepmf.data.assemble import from_matrix, names_array, only_counts
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.provenance import Source
from deepmf.data.reading import Reading
from deepmf.data.wavelengths import is_number
from deepmf.factorization import Factorization
from deepmf.io.format import Format

_HEAD = 1 << 20
"""Bytes looked at to find the delimiter and the header."""

_LINES = 20
_DELIMITERS = "\t;,"
"""Delimiters, the least likely to occur for another reason first."""


class Csv(Format):
    """Rows are samples, the first line names the features.

    A first column without a name, or the only column of text, names the samples. A first line of
    numbers is data, unless it merely counts the columns. Comma, semicolon or tab is found out.
    """

    name = "CSV table"
    suffixes = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
    rows = "samples"

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`."""
        pandas = need("pandas", "tables", "Reading tables")
        delimiter, lines = _look(path)
        first = lines[0]
        _check_header(path, first)
        exact = {} if _version(pandas) >= (3, 1) else {"float_precision": "round_trip"}
        try:
            with open_text(path) as file:
                frame = pandas.read_csv(
                    file,
                    sep=delimiter,
                    header=None if _is_data(first) else 0,
                    low_memory=False,
                    **exact,
                )
        except pandas.errors.ParserError as error:
            raise _ragged(path, str(error).rpartition("error: ")[2].strip()) from None
        if frame.index.nlevels > 1:
            raise _ragged(path, f"the first line has {len(first)} cells, others have more")
        if _is_data(first) or _counts(first):
            frame.columns = [""] * frame.shape[1]
        elif not first[0].strip() and len(frame.columns) == len(first):
            frame = frame.set_index(frame.columns[0])
        data = from_frame(path, frame, reading, self.name)
        return replace(data, name=re.sub(r"\.[ct]sv(\.gz)?$", "", path.name, flags=re.IGNORECASE))

    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """See `Format.write`."""
        write_tables(folder, f, names)


class Parquet(Format):
    """Rows are samples, columns features; the index, or the only column of text, names samples."""

    name = "Parquet table"
    suffixes = (".parquet", ".pq")
    rows = "samples"

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`."""
        need("pandas", "tables", "Reading Parquet")
        parquet = need("pyarrow.parquet", "tables", "Reading Parquet")
        types = need("pyarrow.types", "tables", "Reading Parquet")
        with parquet.ParquetFile(path) as file:
            nested = [field.name for field in file.schema_arrow if types.is_nested(field.type)]
            if nested:
                raise UnreadableError(
                    f"{path} has columns that hold lists or records: {_listed(nested)}. Remove or "
                    f"flatten them: deepmf needs one number per cell."
                )
            shape = (file.metadata.num_rows, len(file.schema_arrow))
            check_room(path, shape, np.float64)
            frame = file.read().to_pandas()
        return from_frame(path, frame, reading, self.name)

    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """See `Format.write`: ``codes-layer-l.parquet``, rows are samples."""
        pandas = need("pandas", "tables", "Writing Parquet")
        for layer, columns in enumerate(names, start=1):
            frame = pandas.DataFrame(f.view(layer).codes.values.T, columns=list(columns))
            if f.layout.samples is not None:
                frame.index = pandas.Index(f.layout.samples, name="sample")
            frame.to_parquet(folder / f"codes-layer-{layer}.parquet")


def _version(library: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in library.__version__.split(".")[:2])


def write_tables(folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
    """``codes-layer-l.csv``: a row per sample, its name first where known, a column per component.

    Written without pandas, so that every format can.
    """
    samples = f.layout.samples
    for layer, columns in enumerate(names, start=1):
        path, codes = folder / f"codes-layer-{layer}.csv", f.view(layer).codes.values.T
        rows = codes.astype(np.str_)
        if samples is None:
            write_csv(path, columns, rows)
        else:
            named = ([name, *row] for name, row in zip(samples, rows))
            write_csv(path, ["sample", *columns], named)


# --- a table in memory ---------------------------------------------------------------------------


def from_frame(path: Path, frame: Any, reading: Reading, kind: str) -> Dataset:
    """A pandas table whose index, unless it counts, or only column of text names the rows."""
    is_numeric = need("pandas", "tables", "Reading tables").api.types.is_numeric_dtype
    if not len(frame):
        raise UnreadableError(f"{path} is empty: it has {frame.shape[1]} columns and no rows.")
    frame = _chosen(path, frame, reading)
    numeric = np.array([is_numeric(t) for t in frame.dtypes], dtype=bool)
    text = np.flatnonzero(~numeric)
    for k in text:
        _check_text(path, frame, int(k))
    unnamed = only_counts(frame.index)
    if len(text) > 1 or (len(text) == 1 and not unnamed):
        columns = [_column(frame, int(k)) for k in text]
        raise UnreadableError(
            f"{path} has columns that are not numbers: {_listed(columns)}. Leave them out with "
            f"{setting('drop')}, and say which one names the rows with {setting('index')}."
        )
    if not numeric.any():
        raise UnreadableError(f"{path} has no columns of numbers.")
    names = None if unnamed else frame.index
    if len(text):
        names = frame.iloc[:, text[0]]
    table = frame.loc[:, numeric]
    A = table.to_numpy(dtype=_type(table), na_value=np.nan)
    if not reading.gaps:
        _check_whole(path, A, table)
    headers = None if all(c == "" for c in table.columns) else names_array(table.columns)
    labels = names_array(names)
    rows = reading.rows or "samples"
    layout = Layout(
        features=headers if rows == "samples" else labels,
        samples=labels if rows == "samples" else headers,
        source=Source(kind),
    )
    return from_matrix(path, A, reading, rows=rows, layout=layout)


def _chosen(path: Path, frame: Any, reading: Reading) -> Any:
    """The columns the user wants, under the names of the rows that one of them gives."""
    dropped = [name.strip() for name in (reading.drop or "").split(",") if name.strip()]
    for name in [*dropped, *([reading.index] if reading.index else [])]:
        if name not in frame.columns:
            raise UnreadableError(
                f"{path} has no column {name!r}; it has {_listed([str(c) for c in frame.columns])}."
            )
    frame = frame.drop(columns=dropped)
    if reading.index is not None:
        return frame.set_index(reading.index)
    for name in frame.columns[:1]:
        values = frame.iloc[:, 0]
        if values.dtype.kind in "iu" and len(values) > 20 and values.is_unique and name != "":
            warn(
                f"{path}: column {name} has another whole number in every row and is taken as a "
                f"feature; if it names the rows, use {setting(index=str(name))}."
            )
    return frame


def _type(table: Any) -> Any:
    """float32 where that holds every column, else float64."""
    types = [np.dtype(getattr(t, "numpy_dtype", t)) for t in table.dtypes]
    return np.result_type(np.float32, *types) if len(types) else np.float64


def _check_text(path: Path, frame: Any, k: int) -> None:
    """Refuse a column of numbers with decimal commas, or with some text among them."""
    values = frame.iloc[:, k].dropna().astype(str).str.strip()
    commas = values.str.fullmatch(r"[-+]?\d+,\d+")
    if len(values) and commas.any() and (commas | values.map(is_number)).all():
        raise UnreadableError(
            f"{path} has decimal commas, first {values[commas].iloc[0]!r} in column "
            f"{_column(frame, k)}. Write numbers with points, 1.5 for 1,5."
        )
    wrong = ~values.map(is_number).astype(bool)
    if len(values) and wrong.mean() < 0.5:
        first = wrong[wrong].index[0] if wrong.any() else values.index[0]
        row = frame.index.get_loc(first)
        raise UnreadableError(
            f"{path} has text where numbers are due: {values[first]!r} in column "
            f"{_column(frame, k)}, row {row + 1 if isinstance(row, int) else first}. "
            f"Correct it, or leave the column out with {setting('drop')}."
        )


def _check_whole(path: Path, A: NDArray, table: Any) -> None:
    """Refuse missing values, saying how many and where."""
    missing = np.isnan(A)
    if not missing.any():
        return
    i, j = (int(k) for k in np.argwhere(missing)[0])
    cut = " That is its last row: the file may be truncated." if i == len(A) - 1 else ""
    raise UnreadableError(
        f"{path} has {int(missing.sum())} missing values, the first in row {i + 1}, column "
        f"{_column(table, j)}.{cut} Fill them, remove the rows or columns that have them, or fit "
        f"the observed values only: {setting(weights='observed')}."
    )


def _column(frame: Any, k: int) -> str:
    """A column's name, or its number from 1."""
    name = frame.columns[k]
    return str(k + 1) if name == "" else repr(str(name))


# --- a table in text -----------------------------------------------------------------------------


def open_text(path: Path) -> IO[bytes]:
    """A file of text, unpacked where its suffix is ``.gz``."""
    return io.BufferedReader(_Unpacked(path)) if path.suffix.lower() == ".gz" else path.open("rb")


class _Unpacked(io.RawIOBase):
    """Text of a gzip file, as long as it does not grow beyond the size of honest files."""

    def __init__(self, path: Path) -> None:
        self._path, self._file, self._left = path, gzip.GzipFile(path), room(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise UnreadableError(
                f"{self._path} unpacks to far more than its own length. It may be made to fill the "
                f"memory; if it is sound, unpack it first."
            )
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def _look(path: Path) -> tuple[str, list[list[str]]]:
    """The delimiter, and the fields of the first lines."""
    with open_text(path) as file:
        raw = file.read(_HEAD)
    if not raw.strip():
        raise UnreadableError(f"{path} is empty.")
    if b"\0" in raw:
        raise UnreadableError(f"{path} is not text; its suffix may be wrong.")
    cut = raw if len(raw) < _HEAD else raw[: raw.rfind(b"\n") + 1] or raw[:-4]
    try:
        text = cut.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableError(f"{path} is not text in UTF-8; save it as such.") from None
    parsed = {d: _fields(text, d) for d in _DELIMITERS}
    for d, lines in parsed.items():
        widths = [len(fields) for fields in lines]
        if min(widths) > 1 and max(widths) - min(widths) <= (widths[0] == min(widths)):
            return d, lines  # all alike, but for a header that leaves out the names' column
    widest = max(parsed, key=lambda d: max(len(fields) for fields in parsed[d]))
    return widest, parsed[widest]


def _ragged(path: Path, how: str) -> UnreadableError:
    return UnreadableError(
        f"{path} is not a table: {how}. Every row needs one cell per column, quoted if it contains "
        f"the delimiter."
    )


def _fields(text: str, delimiter: str) -> list[list[str]]:
    lines: list[list[str]] = []
    for fields in csv.reader(io.StringIO(text), delimiter=delimiter):
        if any(f.strip() for f in fields):
            lines.append(fields)
        if len(lines) == _LINES:
            break
    return lines


def _check_header(path: Path, header: list[str]) -> None:
    if _is_data(header):
        return
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise UnreadableError(
            f"{path} has several columns of the same name: {_listed(twice)}. Rename or remove them."
        )


def _is_data(fields: list[str]) -> bool:
    return all(is_number(f) for f in fields) and not _counts(fields)


def _counts(fields: list[str]) -> bool:
    """Whether a line is 0, 1, 2, ... or 1, 2, 3, ..., as some programs name columns."""
    places = [str(k) for k in range(len(fields) + 1)]
    return len(fields) > 1 and [f.strip() for f in fields] in (places[:-1], places[1:])


def _listed(names: Sequence[Any]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(str(name) for name in names[:8]) + more
