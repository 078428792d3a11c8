""".h5ad and AnnData: obs are samples, var are features, and results open in scanpy as they are."""

from __future__ import annotations

import tracemalloc

import anndata as ad
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from deepmf import factorize
from deepmf.data.anndata_objects import from_anndata
from deepmf.io import Reading, UnreadableError, format_of, read

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.7, (20, 7)) * (RNG.random((20, 7)) < 0.7)
CELLS = [f"cell{i}" for i in range(20)]
GENES = [f"gene{i}" for i in range(7)]
NAMES = [["a", "b", "c"], ["T cells", "B cells"]]


def cells(kind=sparse.csr_matrix, dtype="float32"):
    obs = pd.DataFrame({"batch": pd.Categorical(["x", "y"] * 10)}, index=CELLS)
    adata = ad.AnnData(kind(COUNTS.astype(dtype)), obs, pd.DataFrame(index=GENES))
    adata.layers["log"] = np.log1p(COUNTS)
    adata.obsm["X_pca"] = RNG.random((20, 2))
    adata.uns["note"] = "kept"
    return adata


def save(tmp_path, adata=None, name="c.h5ad"):
    (cells() if adata is None else adata).write_h5ad(tmp_path / name)
    return tmp_path / name


KINDS = {
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "array": sparse.csr_array,
    "dense": np.asarray,
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_anndata_writes(tmp_path, kind):
    path = save(tmp_path, cells(KINDS[kind]))
    for data in (read(path), from_anndata(ad.read_h5ad(path))):
        assert sparse.issparse(data.X) == (kind != "dense")
        assert data.X.dtype == np.float32
        X = data.X.toarray() if sparse.issparse(data.X) else data.X
        np.testing.assert_array_equal(X, COUNTS.T)
        assert data.layout.features.tolist() == GENES
        assert data.layout.samples.tolist() == CELLS
        assert data.layout.source.format == "AnnData"
    assert read(path).layout.source.path == str(path)


def test_layers(tmp_path):
    path = save(tmp_path)
    assert [v.name for v in format_of(path).variables(path)] == ["X", "log"]
    log = Reading(variable="log")
    for data in (read(path, log), from_anndata(cells(), log)):
        np.testing.assert_array_equal(data.X, np.log1p(COUNTS).T)
    with pytest.raises(UnreadableError, match=r"no variable 'nope'; it has X .*, log"):
        read(path, Reading(variable="nope"))
    with pytest.raises(UnreadableError, match="no matrix 'nope'; it has X, log"):
        from_anndata(cells(), Reading(variable="nope"))
    with pytest.raises(UnreadableError, match=r"adata\.T"):
        from_anndata(cells(), Reading(rows="features"))


def test_views_and_files_left_open(tmp_path):
    part = from_anndata(cells()[3:9, ["gene4", "gene1"]])
    np.testing.assert_array_equal(part.X.toarray(), COUNTS[3:9, [4, 1]].T)
    assert part.layout.features.tolist() == ["gene4", "gene1"]
    backed = ad.read_h5ad(save(tmp_path), backed="r")
    np.testing.assert_array_equal(from_anndata(backed).X.toarray(), COUNTS.T)
    backed.file.close()


def test_no_matrix(tmp_path):
    empty = ad.AnnData(obs=pd.DataFrame(index=CELLS), var=pd.DataFrame(index=GENES))
    with pytest.raises(UnreadableError, match="no matrix 'X'; it has none"):
        from_anndata(empty)
    with pytest.raises(UnreadableError, match="no matrix"):
        read(save(tmp_path, empty))
    empty.layers["only"] = COUNTS.astype(float)
    assert read(save(tmp_path, empty)).X.shape == (7, 20)


# --- writing -------------------------------------------------------------------------------------


def result(tmp_path, adata=None):
    path = save(tmp_path, adata)
    return path, factorize(read(path), [3, 2], max_iter=3, tol=0)


def check(adata, f):
    for layer in (1, 2):
        np.testing.assert_array_equal(adata.obsm[f"X_deepmf_{layer}"], f.codes(layer).T)
        np.testing.assert_array_equal(adata.varm[f"deepmf_{layer}"], f.basis(layer))
        assert list(adata.uns["deepmf"][f"names_{layer}"]) == NAMES[layer - 1]
    np.testing.assert_array_equal(adata.uns["deepmf"]["links_2"], f.links(2))
    np.testing.assert_array_equal(adata.uns["deepmf"]["ranks"], [3, 2])
    np.testing.assert_array_equal(adata.uns["deepmf"]["data_errors"], f.history.data_errors[-1])
    assert adata.obs_names.tolist() == CELLS
    assert adata.var_names.tolist() == GENES


def test_a_copy_with_results(tmp_path):
    path, f = result(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    format_of(path).write(out, f, NAMES)
    done = ad.read_h5ad(out / "c.h5ad")
    check(done, f)
    np.testing.assert_array_equal(done.X.toarray(), COUNTS)
    assert done.uns["note"] == "kept"
    assert "X_pca" in done.obsm
    assert list(done.obs["batch"].cat.categories) == ["x", "y"]
    assert "X_deepmf_1" not in ad.read_h5ad(path).obsm
    # and once more from the result
    again = factorize(read(out / "c.h5ad"), [3, 2], max_iter=1, tol=0)
    more = tmp_path / "more"
    more.mkdir()
    format_of(path).write(more, again, NAMES)
    check(ad.read_h5ad(more / "c.h5ad"), again)


@pytest.mark.parametrize("what", ["gone", "other cells", "broken"])
def test_results_alone(tmp_path, what):
    path, f = result(tmp_path)
    if what == "gone":
        path.unlink()
    elif what == "other cells":
        save(tmp_path, cells()[::-1].copy())
    else:
        path.write_bytes(b"nothing")
    out = tmp_path / "out"
    out.mkdir()
    format_of(path).write(out, f, NAMES)
    done = ad.read_h5ad(out / "c.h5ad")
    check(done, f)
    assert done.X is None


# --- bad files -----------------------------------------------------------------------------------


def test_cut_and_random_files(tmp_path):
    path = save(tmp_path)
    whole = path.read_bytes()
    for part in (0, 1, 100, len(whole) // 3, len(whole) // 2, len(whole) - 100):
        path.write_bytes(whole[:part])
        with pytest.raises(UnreadableError):
            read(path)
    for size in (1, 100, 5000):
        path.write_bytes(RNG.bytes(size))
        with pytest.raises(UnreadableError):
            read(path)


def drop(*places):
    def spoil(file):
        for place in places:
            del file[place]

    return spoil


def wrong_shape(file):
    file["X"].attrs["shape"] = [20, 10**12]


def unwritten(file):
    del file["X"]
    X = file.create_dataset("X", shape=(20, 10**6 * 5), dtype="f8", chunks=(1, 1000))
    X.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})


def endless(file):
    del file["X"]
    X = file.create_dataset("X", shape=(10**9, 10**9), dtype="f8", compression="gzip", chunks=True)
    X.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})


def text(file):
    del file["X"]
    file["X"] = np.full((20, 7), b"x")


def indices_outside(file):
    file["X/indices"][0] = 10**6


SPOILED = {
    "no names": drop("var"),
    "no index": drop("obs/_index"),
    "no data": drop("X/data"),
    "no matrix": drop("X", "layers"),
    "wrong shape": wrong_shape,
    "unwritten": unwritten,
    "endless": endless,
    "text": text,
    "indices outside": indices_outside,
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_absurd_files(tmp_path, spoil):
    path = save(tmp_path)
    with h5py.File(path, "r+") as file:
        spoil(file)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError) as caught:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
