"""The Matrix Market format .mtx, with names in files beside it."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf._utils.messages import setting
from deepmf._utils.safe_archives import UnreadableError
from deepmf.data.assemble import check_numbers, check_sparse_size, from_matrix
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.provenance import Source
from deepmf.data.reading import Reading
from deepmf.factorization import Factorization
from deepmf.io.format import Format
from deepmf.io.tables import open_text, write_tables

_READ = 1 << 20
_INFLATION = 1100
"""Bytes that gzip can make of one, at most."""


class MatrixMarket(Format):
    """A sparse matrix of features x samples (terms x documents, genes x cells).

    Names come from ``STEM_rows.txt`` and ``STEM_cols.txt``, or as 10x Genomics has them from
    ``features.tsv`` (or ``genes.tsv``) and ``barcodes.tsv``, each possibly with ``.gz``.
    """

    name = "Matrix Market"
    suffixes = (".mtx", ".mtx.gz")

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`; sparse data stay sparse."""
        ended = _is_ended(path)
        _check_size(path)
        A = _matrix(path, ended)
        check_numbers(path, A)
        if hasattr(A, "tocsc"):
            A = sparse.csc_array(A)
        stem = re.sub(r"\.mtx(\.gz)?$", "", path.name, flags=re.IGNORECASE)
        transposed = reading.rows == "samples"
        features, samples = _names(path, stem, A.shape[::-1] if transposed else A.shape, transposed)
        layout = Layout(features=features, samples=samples, source=Source(self.name))
        return replace(from_matrix(path, A, reading, rows="features", layout=layout), name=stem)

    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """See `Format.write`: tables, as a CSV file's are."""
        write_tables(folder, f, names)


def _is_ended(path: Path) -> bool:
    """Whether the last line ends as lines do; a file that is not text is refused."""
    last = b""
    with open_text(path) as file:
        while block := file.read(_READ):
            if b"\0" in block:
                raise UnreadableError(f"{path} is not text; its suffix may be wrong.")
            last = block
    return last.endswith(b"\n")


def _matrix(path: Path, ended: bool) -> Any:
    """Matrix as SciPy reads it; SciPy crashes on text after the last number."""
    from scipy.io import mmread

    if ended:
        return mmread(path, spmatrix=False)
    with NamedTemporaryFile(suffix=".mtx") as whole, open_text(path) as file:
        shutil.copyfileobj(file, whole)
        whole.write(b"\n")
        whole.flush()
        return mmread(whole.name, spmatrix=False)


def _check_size(path: Path) -> None:
    """Refuse what the file's length cannot hold, before anything is allocated."""
    from scipy.io import mminfo

    rows, cols, entries, kind = mminfo(path)[:4]
    check_sparse_size(path, (rows, cols), entries)
    room = path.stat().st_size * (_INFLATION if path.suffix.lower() == ".gz" else 1)
    shortest = 4 if kind == "coordinate" else 1  # "1 1\n", or half of "0\n" under symmetry
    if entries * shortest > room:
        raise UnreadableError(
            f"{path} claims {rows} x {cols} with {entries} entries, which cannot be true of a file "
            f"of {path.stat().st_size} bytes. It may be truncated or damaged; get it again."
        )


def _names(
    path: Path, stem: str, shape: tuple[int, int], transposed: bool
) -> tuple[NDArray[np.str_] | None, NDArray[np.str_] | None]:
    """Names of features and samples from the first of the files that exist beside this one."""
    own = [f"{stem}_cols.txt", f"{stem}_rows.txt"]
    beside = ([own[not transposed]], [own[transposed]])
    if stem.endswith("matrix"):  # 10x's, perhaps with a prefix
        prefix = stem.removesuffix("matrix")
        beside[0].extend([f"{prefix}features.tsv", f"{prefix}genes.tsv"])
        beside[1].append(f"{prefix}barcodes.tsv")
    found: list[NDArray[np.str_] | None] = []
    for files, count, what in zip(beside, shape, ("features", "samples")):
        both = [path.parent / (name + end) for name in files for end in ("", ".gz")]
        file = next((candidate for candidate in both if candidate.is_file()), None)
        names = None if file is None else _lines(file)
        if names is not None and len(names) != count:
            raise UnreadableError(
                f"{file} beside {path} has {len(names)} names, but the matrix has {count} {what}. "
                f"Correct it or move it away; if the matrix is transposed, say what its rows are "
                f"with {setting('rows')}."
            )
        found.append(names)
    return found[0], found[1]


def _lines(file: Path) -> NDArray[np.str_]:
    """The names in a file: one per line, or 10x's ``ID <tab> SYMBOL``, with IDs to tell twins."""
    try:
        with open_text(file) as handle:
            lines = handle.read().decode("utf-8-sig").splitlines()
    except (UnicodeDecodeError, EOFError, OSError) as error:
        raise UnreadableError(
            f"{file} holds no names ({type(error).__name__}): expected text, one name per line."
        ) from None
    cells = [line.split("\t") for line in lines]
    names = [c[1] if len(c) > 1 and c[1] else c[0] for c in cells]
    counts = Counter(names)
    twins = (f"{n} ({c[0]})" if counts[n] > 1 and len(c) > 1 else n for n, c in zip(names, cells))
    return np.array(list(twins), dtype=np.str_)
