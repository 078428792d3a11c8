"""CSV, TSV and Parquet: rows are samples; odd tables get a sentence."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deepmf import factorize
from deepmf.io import Reading, UnreadableError, format_of, read

RNG = np.random.default_rng(0)
VALUES = np.round(RNG.random((8, 4)), 3)
FEATURES = ["a", "b", "c µ", "d, e"]
SAMPLES = [f"s{i}" for i in range(8)]
FRAME = pd.DataFrame(VALUES, columns=FEATURES, index=SAMPLES)


def save(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same(data, features=FEATURES, samples=SAMPLES, values=VALUES):
    np.testing.assert_array_equal(data.X, values.T)
    for given, expected in ((data.layout.features, features), (data.layout.samples, samples)):
        assert (None if given is None else given.tolist()) == expected
    return data


# --- what is understood --------------------------------------------------------------------------


@pytest.mark.parametrize("sep", [",", ";", "\t"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".CSV"])
def test_what_pandas_writes(tmp_path, sep, suffix):
    path = tmp_path / f"some.table{suffix}"
    FRAME.to_csv(path, sep=sep)
    data = same(read(path))
    assert data.name == "some.table"
    assert data.layout.source.format == "CSV table"


def test_numbers_are_read_to_the_last_digit(tmp_path):
    values = RNG.random((50, 4)) * 10.0 ** RNG.integers(-30, 30, (50, 4))
    same(read(save(tmp_path, pd.DataFrame(values).to_csv(index=False))), None, None, values)


def test_names_of_samples(tmp_path):
    numbered = FRAME.set_axis(range(10, 18))
    same(read(save(tmp_path, numbered.to_csv())), samples=[str(k) for k in range(10, 18)])
    same(read(save(tmp_path, FRAME.to_csv(index=False))), samples=None)
    same(read(save(tmp_path, FRAME.to_csv(index_label="cell"))))
    last = FRAME.assign(kind=["x", "y"] * 4)
    same(read(save(tmp_path, last.to_csv(index=False))), samples=["x", "y"] * 4)


def test_a_header_without_the_names_column(tmp_path):
    """As R's write.table has it."""
    lines = FRAME.to_csv().splitlines()
    same(read(save(tmp_path, "\n".join([lines[0][1:], *lines[1:]]))))


def test_no_header(tmp_path):
    same(read(save(tmp_path, FRAME.to_csv(header=False, index=False))), None, None)
    counted = pd.DataFrame(VALUES)
    same(read(save(tmp_path, counted.to_csv(index=False))), None, None)
    assert read(save(tmp_path, "0.5\n1\n2\n")).X.shape == (1, 3)


def test_byte_order_mark_and_line_ends(tmp_path):
    text = FRAME.to_csv(lineterminator="\r\n")
    same(read(save(tmp_path, b"\xef\xbb\xbf" + text.encode())))
    same(read(save(tmp_path, b"\xef\xbb\xbf" + FRAME.to_csv(index=False).encode())), samples=None)


def test_turned(tmp_path):
    data = read(save(tmp_path, FRAME.T.to_csv()), Reading(rows="features"))
    same(data)
    FRAME.T.to_parquet(tmp_path / "t.parquet")
    same(read(tmp_path / "t.parquet", Reading(rows="features")))


def test_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    FRAME.to_parquet(path)
    same(read(path))
    FRAME.reset_index(drop=True).to_parquet(path)
    same(read(path), samples=None)
    FRAME.reset_index(names="cell").to_parquet(path)
    same(read(path))
    FRAME.assign(cell=range(10, 18)).set_index("cell").to_parquet(path)
    same(read(path), samples=[str(k) for k in range(10, 18)])
    FRAME.astype("float32").to_parquet(path)
    assert read(path).X.dtype == np.float32
    pd.DataFrame({"n": pd.array([1, 2, 3], dtype="Int64"), "b": [True, False, True]}).to_parquet(
        path
    )
    np.testing.assert_array_equal(read(path).X, [[1, 2, 3], [1, 0, 1]])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("named", [True, False])
def test_codes_come_back(tmp_path, suffix, named):
    path = tmp_path / f"t{suffix}"
    frame = FRAME if named else FRAME.reset_index(drop=True)
    if suffix == ".csv":
        frame.to_csv(path, index=named)
    else:
        frame.to_parquet(path)
    f = factorize(read(path), [3, 2], max_iter=3, tol=0)
    names = [["one", "two", "three"], ["soil", "water, deep"]]
    out = tmp_path / "out"
    out.mkdir()
    format_of(path).write(out, f, names)
    assert sorted(p.name for p in out.iterdir()) == [f"codes-layer-{k}{suffix}" for k in (1, 2)]
    for layer in (1, 2):
        back = same(
            read(out / f"codes-layer-{layer}{suffix}"),
            names[layer - 1],
            SAMPLES if named else None,
            f.codes(layer).T,
        )
        assert back.X.dtype == np.float64


# --- what is not ---------------------------------------------------------------------------------

BAD = {
    "two columns of text": ("a,b,c\nx,1,u\ny,2,v\n", r"not numbers: 'a', 'c'\. Leave them out"),
    "names and text": (",b,c\nx,1,u\ny,2,v\n", r"not numbers: 'c'\."),
    "only text": ("a\nx\ny\n", "no columns of numbers"),
    "dates": ("t,a\n2020-01-01,1\n2020-01-02,x\n", "'t', 'a'"),
    "missing": ("a,b\n1,2\n,4\n5,\n7,8\n", r"2 missing values, the first in row 2, column 'a'"),
    "short last row": ("a,b,c\n1,2,3\n4,5", "column 'c'.*last row: the file may be truncated"),
    "long row": ("a,b\n1,2\n3,4,5\n", "Expected 2 fields in line 3, saw 3"),
    "long rows": ("a\n1,2,3\n3,4,5\n", "first line has 1 cells"),
    "decimal commas": ("a;b\n1,5;2\n2;3,25\n", "decimal commas, first '1,5' in column 'a'"),
    "nothing but decimal commas": ("1,5;2,5\n2,5;3,25\n", "decimal commas, first '2,5'"),
    "a slip": ("a,b\n1,2\n3,4\n5,6o\n", "'6o' in column 'b', row 3"),
    "same names": ("a,b,a\n1,2,3\n", "same name: a"),
    "open quote": ('a,b\n1,"2\n3,4\n', "no table|not numbers|text"),
    "empty": ("", "is empty"),
    "blank": ("\n \n", "is empty"),
    "header alone": ("a,b\n", "no columns of numbers|empty"),
    "latin": (b"a,\xe9\n1,2\n", "UTF-8"),
    "numbers of 16 bits": ("a,b\n1,2\n".encode("utf-16"), "is not text"),
    "zip": (b"PK\x03\x04\0\0\0\0", "is not text"),
    "gzip in disguise": (gzip.compress(b"a,b\n1,2\n", mtime=0), "not text"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_bad_text(tmp_path, text, said):
    with pytest.raises(UnreadableError, match=said) as caught:
        read(save(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert "t.csv" in str(caught.value)


def test_bad_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1.0, 2.0], "b": [[1], [2, 3]]}), path)
    with pytest.raises(UnreadableError, match="lists or records: b"):
        read(path)
    pq.write_table(pa.table({"a": [1.0, None], "b": [1, 2]}), path)
    with pytest.raises(UnreadableError, match="1 missing values, the first in row 2, column 'a'"):
        read(path)
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), path)
    with pytest.raises(UnreadableError, match="empty"):
        read(path)


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet"])
def test_cut_files(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    frame = pd.DataFrame(RNG.random((300, 5)), columns=list("abcde"))
    frame.to_csv(path) if suffix == ".csv.gz" else frame.to_parquet(path)
    whole = path.read_bytes()
    for part in (0, 1, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:part])
        with pytest.raises(UnreadableError):
            read(path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_random_bytes(tmp_path, suffix):
    for size in (1, 100, 5000):
        with pytest.raises(UnreadableError):
            read(save(tmp_path, b"\0" + RNG.bytes(size), f"t{suffix}"))


def test_missing_file_and_wrong_suffix(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.csv"):
        read(tmp_path / "none.csv")
    with pytest.raises(UnreadableError, match="Parquet table"):
        read(save(tmp_path, FRAME.to_csv(), "t.parquet"))


def test_an_index_and_dropped_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,city,a,b\n7,Rome,1,2\n8,Oslo,3,4\n")
    data = read(path, Reading(index="id", drop="city"))
    assert data.layout.features.tolist() == ["a", "b"]
    assert data.layout.samples.tolist() == ["7", "8"]
    np.testing.assert_array_equal(data.X, [[1, 3], [2, 4]])
    with pytest.raises(UnreadableError, match="no column 'town'; it has id, city, a, b"):
        read(path, Reading(drop="town"))
    with pytest.raises(UnreadableError, match="no column 'name'"):
        read(path, Reading(index="name"))


def test_a_column_that_looks_like_an_index_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a\n" + "\n".join(f"{k + 1000},{k % 3}" for k in range(40)))
    with pytest.warns(UserWarning, match="index='id'"):
        assert read(path).X.shape == (2, 40)
    assert read(path, Reading(index="id")).X.shape == (1, 40)
