"""Matrix Market: sparse stays sparse, names come from beside it, headers are not believed."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from deepmf import factorize
from deepmf.io import Reading, UnreadableError, format_of, read

A = sparse.random_array((6, 9), density=0.4, rng=np.random.default_rng(0), format="coo")
GENES = [
    "ENSG1\tTP53\tGene",
    "ENSG2\tMATR3\tGene",
    "ENSG3\tMATR3\tGene",
    "E4\t\tG",
    "E5\tA",
    "E6\tB",
]
SYMBOLS = ["TP53", "MATR3 (ENSG2)", "MATR3 (ENSG3)", "E4", "A", "B"]
CELLS = [f"AAAC-{j}" for j in range(9)]


def save(folder, matrix=A, name="matrix.mtx", **settings):
    path = folder / name
    if name.endswith(".gz"):
        with gzip.open(path, "wb") as file:
            mmwrite(file, matrix, **settings)
    else:
        mmwrite(path, matrix, **settings)
    return path


@pytest.mark.parametrize("name", ["matrix.mtx", "a.b.mtx.gz", "M.MTX"])
def test_what_scipy_writes(tmp_path, name):
    data = read(
        save(tmp_path, name="m.mtx").rename(tmp_path / name)
        if name == "M.MTX"
        else save(tmp_path, name=name)
    )
    assert sparse.issparse(data.X)
    np.testing.assert_allclose(data.X.toarray(), A.toarray())
    assert data.name == {"matrix.mtx": "matrix", "a.b.mtx.gz": "a.b", "M.MTX": "M"}[name]
    assert data.layout.features is data.layout.samples is None


def test_kinds(tmp_path):
    counts = sparse.coo_array((A * 10).astype(int))
    assert read(save(tmp_path, counts)).X.dtype.kind == "i"
    pattern = read(save(tmp_path, A, field="pattern"))
    np.testing.assert_array_equal(pattern.X.toarray(), A.toarray() > 0)
    square = A @ A.T
    whole = read(save(tmp_path, square, symmetry="symmetric"))
    np.testing.assert_allclose(whole.X.toarray(), square.toarray())
    dense = read(save(tmp_path, A.toarray()))
    np.testing.assert_allclose(dense.X, A.toarray())
    with pytest.raises(UnreadableError, match="complex"):
        read(save(tmp_path, A * 1j))


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize("prefix", ["", "GSM1_"])
@pytest.mark.parametrize("genes", ["features", "genes"])
def test_names_as_10x_has_them(tmp_path, end, prefix, genes):
    pack = gzip.compress if end else bytes
    (tmp_path / f"{prefix}{genes}.tsv{end}").write_bytes(pack("\n".join(GENES).encode()))
    (tmp_path / f"{prefix}barcodes.tsv{end}").write_bytes(pack("\n".join(CELLS).encode() + b"\n"))
    layout = read(save(tmp_path, name=f"{prefix}matrix.mtx{end}")).layout
    assert layout.features.tolist() == SYMBOLS
    assert layout.samples.tolist() == CELLS
    turned = read(save(tmp_path, A.T, f"{prefix}matrix.mtx{end}"), Reading(rows="samples"))
    assert turned.layout.features.tolist() == SYMBOLS
    other = read(save(tmp_path, A.T, "other.mtx"))  # not 10x's
    assert other.layout.features is None


def test_names_of_rows_and_columns(tmp_path):
    (tmp_path / "news_rows.txt").write_text("\n".join("abcdef"))
    (tmp_path / "news_cols.txt").write_text("\n".join("ABCDEFGHI"))
    data = read(save(tmp_path, name="news.mtx"))
    assert "".join(data.layout.features) == "abcdef"
    assert "".join(data.layout.samples) == "ABCDEFGHI"
    data = read(tmp_path / "news.mtx", Reading(rows="samples"))
    assert data.X.shape == (9, 6)
    assert "".join(data.layout.features) == "ABCDEFGHI"
    (tmp_path / "news_rows.txt").write_text("a\nb")
    with pytest.raises(UnreadableError, match=r"news_rows\.txt .* has 2 names, .* 6 features"):
        read(tmp_path / "news.mtx")
    (tmp_path / "news_rows.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UnreadableError, match="no names"):
        read(tmp_path / "news.mtx")


def test_codes_come_back_as_tables(tmp_path):
    (tmp_path / "barcodes.tsv").write_text("\n".join(CELLS))
    path = save(tmp_path)
    f = factorize(read(path), [3, 2], max_iter=2, tol=0)
    format_of(path).write(tmp_path, f, [["x", "y", "z"], ["u", "v"]])
    back = read(tmp_path / "codes-layer-2.csv")
    np.testing.assert_array_equal(back.X, f.codes(2))
    assert back.layout.features.tolist() == ["u", "v"]
    assert back.layout.samples.tolist() == CELLS


# --- bad files -----------------------------------------------------------------------------------

HEADER = "%%MatrixMarket matrix {} real general\n"
LIES = {
    "rows": HEADER.format("coordinate") + "1000000000000 5 1\n1 1 1\n",
    "cols": HEADER.format("coordinate") + "5 1000000000 1\n1 1 1\n",
    "entries": HEADER.format("coordinate") + "5 5 1000000000000\n1 1 1\n",
    "array": HEADER.format("array") + "1000000 1000000\n1\n",
}


@pytest.mark.parametrize("text", LIES.values(), ids=LIES)
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_absurd_sizes_are_not_allocated(tmp_path, text, suffix):
    path = tmp_path / f"m{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError, match="cannot be true"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_cut_and_random_files(tmp_path, suffix):
    path = save(tmp_path, name=f"m{suffix}")
    whole = path.read_bytes()
    for part in (0, 1, 20, 60, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:part])
        with pytest.raises(UnreadableError):
            read(path)
    rng = np.random.default_rng(0)
    for size in (1, 50, 5000):
        path.write_bytes(rng.bytes(size))
        with pytest.raises(UnreadableError):
            read(path)


BAD = {
    "words": HEADER.format("coordinate") + "2 2 1\n1 one 1\n",
    "outside": HEADER.format("coordinate") + "2 2 1\n3 1 1\n",
    "zero-based": HEADER.format("coordinate") + "2 2 1\n0 1 1\n",
    "no rows": HEADER.format("coordinate") + "0 2 0\n",
    "a table": "a,b\n1,2\n",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_bad_text(tmp_path, text):
    path = tmp_path / "m.mtx"
    path.write_text(text)
    with pytest.raises(UnreadableError) as caught:
        read(path)
    assert "\n" not in str(caught.value)


# --- real data -----------------------------------------------------------------------------------

needs_data = pytest.mark.skipif("DEEPMF_DATA" not in os.environ, reason="DEEPMF_DATA is not set")


@needs_data
@pytest.mark.filterwarnings("ignore:X looks like raw counts")
def test_newsgroups(tmp_path):
    """The same counts through SciPy's archive and through Matrix Market, with their words."""
    folder = Path(os.environ["DEEPMF_DATA"]) / "text"
    with np.load(folder / "20news_meta.npz") as meta:
        terms = meta["terms"]
    reading = Reading(features=f"{folder / '20news_meta.npz'}:terms")
    data = read(folder / "20news_counts.npz", reading)
    assert data.X.shape == (7791, 15768)
    np.testing.assert_array_equal(data.layout.features, terms)
    some = data.X[:, :500].astype(np.int64)
    (tmp_path / "news_rows.txt").write_text("\n".join(terms), encoding="utf-8")
    again = read(save(tmp_path, some, "news.mtx"))
    assert abs(again.X - some).nnz == 0
    np.testing.assert_array_equal(again.layout.features, terms)
    f = factorize(again, [5, 2], max_iter=3, tol=0)
    assert f.layout.features is again.layout.features
    assert f.history.data_errors[-1, 0] < 0.9


def test_a_folder_as_10x_makes_it(tmp_path):
    from scipy.io import mmwrite

    mmwrite(tmp_path / "matrix.mtx", sparse.coo_array(np.eye(3, 2)))
    (tmp_path / "barcodes.tsv").write_text("c1\nc2\n")
    data = read(tmp_path)
    assert data.X.shape == (3, 2)
    assert data.layout.samples.tolist() == ["c1", "c2"]
