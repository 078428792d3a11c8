"""AnnData, xarray cubes and data sets through the estimator: names and coordinates come along."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext

import anndata as ad
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

from deepmf import DeepMF, Factorization, factorize, scan
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.plots import relative_residual

pytestmark = pytest.mark.filterwarnings("ignore:Pixels that lack some bands")

SHORT = {"max_iter": 4, "tol": 0, "random_state": 0}
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(1.0, (20, 7)).astype("float32")
CELLS, GENES = [f"cell{i}" for i in range(20)], [f"gene{i}" for i in range(7)]
NAMES = ["deepmf0", "deepmf1"]


def cells(kind=sparse.csr_matrix):
    return ad.AnnData(kind(COUNTS), pd.DataFrame(index=CELLS), pd.DataFrame(index=GENES))


def model(**settings):
    return DeepMF((4, 2), **SHORT, **settings)


# --- AnnData -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, np.asarray])
def test_anndata(kind):
    adata, plain = cells(kind), model().fit(COUNTS)
    fitted = model().fit(adata)
    np.testing.assert_allclose(fitted.components_, plain.components_, rtol=1e-4, atol=1e-6)
    assert type(fitted.components_) is np.ndarray
    assert list(fitted.feature_names_in_) == GENES
    assert fitted.factorization_.layout.features.tolist() == GENES
    assert fitted.factorization_.layout.samples.tolist() == CELLS
    codes = fitted.transform(adata)
    assert isinstance(codes, pd.DataFrame)
    assert codes.index.tolist() == CELLS
    assert codes.columns.tolist() == NAMES == list(fitted.get_feature_names_out())
    np.testing.assert_allclose(codes, plain.transform(COUNTS), rtol=1e-3, atol=1e-4)
    adata.obsm["X_deepmf"] = model().fit_transform(adata)
    pd.testing.assert_frame_equal(adata.obsm["X_deepmf"], codes)
    assert fitted.score(adata) == pytest.approx(plain.score(COUNTS), rel=1e-4)
    first = fitted.transform(adata[3:8], layer=1)
    assert first.shape == (5, 4)
    assert first.index.tolist() == CELLS[3:8]
    parts = fitted.components(1)
    assert parts.index.tolist() == [f"deepmf{k}" for k in range(4)]
    assert parts.columns.tolist() == GENES
    np.testing.assert_array_equal(parts, fitted.factorization_.basis(1).T)


def test_anndata_and_tables_are_one():
    frame = pd.DataFrame(COUNTS, index=CELLS, columns=GENES)
    for fitted in (model().fit(cells()), model().fit(frame)):
        from_table, from_cells = fitted.transform(frame), fitted.transform(cells())
        np.testing.assert_allclose(from_table, from_cells, atol=1e-5)
        assert fitted.components(2).columns.tolist() == GENES
        assert fitted.factorization_.layout.samples.tolist() == CELLS


def test_rows_are_named_by_numbers_only_where_somebody_said_so():
    frame = pd.DataFrame(COUNTS, columns=GENES)
    assert model().fit(frame).factorization_.layout.samples is None
    numbers = range(7, 7 + len(frame))
    named = frame.assign(cell=numbers).set_index("cell")
    samples = model().fit(named).factorization_.layout.samples
    assert samples.tolist() == [str(k) for k in numbers]


def test_other_genes_are_refused():
    adata = cells()
    fitted = model().fit(adata)
    with pytest.raises(ValueError, match=r"another order.*adata\[:, model.feature_names_in_\]"):
        fitted.transform(adata[:, ::-1])
    np.testing.assert_allclose(
        fitted.transform(adata[:, ::-1][:, fitted.feature_names_in_]), fitted.transform(adata)
    )
    with pytest.raises(ValueError, match="had 7: it lacks 'gene1', 'gene2', 'gene3' and 3 more"):
        fitted.transform(adata[:, :1])
    with pytest.raises(ValueError, match="it lacks 'gene6' and has 'x' beyond it"):
        fitted.score(ad.concat([adata[:, :6], other()], axis="var"))
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(pd.DataFrame(COUNTS[:, ::-1], columns=GENES[::-1]))
    with pytest.raises(ValueError, match="X has 5 features, but the model was fitted to 7"):
        model().fit(COUNTS).transform(adata[:, :5])


def other():
    return ad.AnnData(COUNTS[:, :1], pd.DataFrame(index=CELLS), pd.DataFrame(index=["x"]))


def test_set_output_with_anndata():
    adata = cells()
    expected = model().fit_transform(adata)
    named = model().set_output(transform="pandas")
    pd.testing.assert_frame_equal(named.fit_transform(adata), expected)


def test_negative_values_in_anndata():
    with pytest.raises(ValueError, match="Negative values in data"):
        model().fit(cells(lambda X: X - 1))
    model(allow_negative=True).fit(cells(lambda X: X - 1))


# --- cubes ---------------------------------------------------------------------------------------

WAVES = np.linspace(400, 900, 6)


def cube(hole=True, bands_first=False):
    values = RNG.random((5, 4, 3)) @ np.random.default_rng(1).random((3, 6))
    if hole:
        values[2, 1] = np.nan
        values[4, 3, 2] = np.nan
    da = xr.DataArray(
        values,
        dims=("y", "x", "band"),
        coords={
            "y": np.arange(5) * 10.0,
            "x": np.arange(4) + 100.0,
            "wavelength": ("band", WAVES, {"units": "nm"}),
        },
    )
    return da.transpose("band", "y", "x") if bands_first else da


@pytest.mark.parametrize("bands_first", [False, True])
@pytest.mark.parametrize("hole", [False, True])
def test_cube(hole, bands_first):
    da = cube(hole, bands_first)
    fitted = model().fit(da)
    layout = fitted.factorization_.layout
    assert layout.kind == "scene"
    np.testing.assert_allclose(layout.wavelengths, WAVES)
    maps = fitted.transform(da)
    assert isinstance(maps, xr.DataArray)
    assert set(maps.dims) == {"y", "x", "component"}
    maps = maps.transpose("component", "y", "x")
    assert maps.component.values.tolist() == NAMES
    np.testing.assert_array_equal(maps.y, da.y)
    np.testing.assert_array_equal(maps.x, da.x)
    lost = np.isnan(da.transpose("y", "x", "band").values).any(axis=2)
    np.testing.assert_array_equal(np.isnan(maps[0]), lost)
    pixels = da.transpose("y", "x", "band").values[~lost]
    plain = model().fit(pixels)
    np.testing.assert_allclose(maps.values[:, ~lost].T, plain.transform(pixels), atol=1e-5)
    assert fitted.score(da) == pytest.approx(plain.score(pixels), rel=1e-3)
    xr.testing.assert_allclose(model().fit_transform(da), fitted.transform(da))
    spectra = fitted.components(1)
    assert spectra.dims == ("component", "band")
    np.testing.assert_allclose(spectra.wavelength, WAVES)
    np.testing.assert_array_equal(spectra, fitted.factorization_.basis(1).T)
    np.testing.assert_array_equal(fitted.components_, fitted.components(2).values)
    assert fitted.transform(da.isel(y=slice(0, 2)), layer=1).sizes["component"] == 4


def test_bands_along_their_own_wavelengths():
    da = cube().swap_dims(band="wavelength")
    spectra = model().fit(da).components(2)
    assert spectra.dims == ("component", "wavelength")
    np.testing.assert_allclose(spectra.sel(component="deepmf1").wavelength, WAVES)


def test_other_bands_are_refused():
    da = cube()
    fitted = model().fit(da)
    with pytest.raises(ValueError, match="X has 5 features, but the model was fitted to 6"):
        fitted.transform(da.isel(band=slice(1, None)))
    moved = da.assign_coords(wavelength=("band", WAVES + 30, {"units": "nm"}))
    with pytest.raises(ValueError, match=r"6 of 6 differ, first band 1 at 430 nm, .* 400 nm"):
        fitted.transform(moved)
    with pytest.raises(TypeError, match=r"xarray Dataset.*X\['name'\]"):
        fitted.transform(da.to_dataset(name="r"))


def test_set_output_of_a_cube_is_a_table_of_pixels():
    table = model().set_output(transform="pandas").fit_transform(cube())
    assert table.shape == (18, 2)


def test_links_and_samples_are_of_the_kind_of_the_fit():
    frame = pd.DataFrame(COUNTS, index=CELLS, columns=GENES)
    for data in (frame, cells()):
        fitted = model().set_output(transform="pandas").fit(data)
        links = fitted.links(2)
        assert links.index.tolist() == NAMES
        assert links.columns.tolist() == [f"deepmf{k}" for k in range(4)]
        np.testing.assert_array_equal(links, fitted.factorization_.links(2))
        codes = fitted.transform(data)
        again = fitted.inverse_transform(codes)
        assert again.index.tolist() == CELLS
        assert again.columns.tolist() == GENES
        plain = fitted.inverse_transform(codes.to_numpy())
        assert type(plain) is type(fitted.components_) is np.ndarray
        np.testing.assert_array_equal(again, plain)
    links = model().fit(cube()).links()
    assert links.dims == ("component", "part")
    assert links.sel(component="deepmf1").sizes == {"part": 4}
    bare = model().fit(COUNTS)
    codes = pd.DataFrame(bare.transform(COUNTS))
    assert type(bare.links()) is type(bare.inverse_transform(codes)) is np.ndarray


# --- data sets -----------------------------------------------------------------------------------


def test_rows_of_an_array_without_telling_names_are_samples():
    """As those of every other matrix given to the estimator."""
    array = xr.DataArray(COUNTS, dims=("a", "b"))
    codes = model().fit_transform(array)
    assert codes.dims == ("a", "component")
    np.testing.assert_allclose(codes, model().fit_transform(COUNTS), rtol=1e-3, atol=1e-4)


def test_pixels_stacked_by_xarray():
    cube = xr.DataArray(RNG.random((3, 4, 6)), dims=("y", "x", "band"))
    stacked = cube.stack(pixel=("y", "x"))
    codes = model().fit_transform(stacked)
    assert codes.sizes == {"component": 2, "pixel": 12}
    maps = model().fit_transform(cube).values.reshape(12, 2)
    np.testing.assert_allclose(codes.transpose("pixel", "component"), maps, rtol=1e-6)


def test_maps_become_a_cube_again():
    cube = xr.DataArray(RNG.random((3, 4, 6)), dims=("y", "x", "band"))
    cube[1, 2, 3] = np.nan
    fitted = model().fit(cube)
    codes = fitted.transform(cube)
    again = fitted.inverse_transform(codes)
    assert again.dims == cube.dims
    assert np.isnan(again[1, 2]).all()
    np.testing.assert_allclose(again[0, 1], codes.values[0, 1] @ fitted.components_)


def test_maps_go_back_by_their_place_and_not_by_their_names():
    fitted = model().fit(cube(hole=False))
    maps = fitted.transform(cube(hole=False))
    again = fitted.inverse_transform(maps)
    for other in (
        maps.drop_vars("component"),
        maps.assign_coords(component=["a", "b"]),
        maps.assign_coords(component=maps.component.values[::-1]),
    ):
        np.testing.assert_array_equal(fitted.inverse_transform(other), again)
    for other in (fitted.transform(cube(hole=False), layer=1), maps[..., :1], maps[..., 0]):
        with pytest.raises(ValueError, match="layer 2 needs a dimension 'component' of size 2"):
            fitted.inverse_transform(other)


def test_maps_of_one_fit_are_data_of_another():
    maps = model().fit(cube(hole=False)).transform(cube(hole=False), layer=1)
    second = DeepMF(2, **SHORT).fit(maps)
    rows = second.components(1)
    assert rows.sizes == {"component": 2, "feature": 4}
    assert rows.feature.values.tolist() == maps.component.values.tolist()
    again = second.inverse_transform(second.transform(maps))
    np.testing.assert_allclose(again[0, 1], second.transform(maps)[0, 1].values @ rows.values)


def test_dataset():
    layout = Layout(features=np.array(GENES), samples=np.array(CELLS))
    data = Dataset("cells", COUNTS.T, layout)
    f = factorize(data, [4, 2], **SHORT)
    assert f.layout is layout
    fitted = model().fit(data)
    for layer in (1, 2):
        np.testing.assert_allclose(fitted.components(layer), f.basis(layer).T, atol=1e-5)
    assert fitted.factorization_.layout is layout
    codes = fitted.transform(data)
    assert type(codes) is np.ndarray
    np.testing.assert_array_equal(codes, fitted.transform(COUNTS))
    np.testing.assert_array_equal(codes, model().fit(data).transform(data))
    with pytest.raises(ValueError, match="another order"):
        fitted.transform(Dataset("turned", COUNTS.T[::-1], Layout(features=layout.features[::-1])))


def test_names_survive_saving(tmp_path):
    path = model().fit(cells()).factorization_.save(tmp_path / "f.npz")
    assert Factorization.load(path).layout.features.tolist() == GENES
    path = model().fit(cube()).factorization_.save(tmp_path / "g.npz")
    np.testing.assert_allclose(Factorization.load(path).layout.wavelengths, WAVES)


def test_libraries_are_loaded_only_for_their_objects():
    code = (
        "import sys, numpy as np, deepmf; X = np.eye(4) + 1\n"
        "deepmf.DeepMF(2, max_iter=1, tol=0).fit(X).transform(X)\n"
        "from deepmf.data.dataset import Dataset\n"
        "deepmf.factorize(Dataset('d', X), 2, max_iter=1, tol=0)\n"
        "print({'anndata', 'xarray', 'h5py', 'rasterio'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "set()"


# --- factorize and scan --------------------------------------------------------------------------


def test_factorize_takes_obs_for_columns():
    f, plain = factorize(cells(), [4, 2], **SHORT), factorize(COUNTS.T, [4, 2], **SHORT)
    assert f.layout.features.tolist() == GENES
    assert f.layout.samples.tolist() == CELLS
    np.testing.assert_allclose(f.W[0], plain.W[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("bands_first", [False, True])
def test_factorize_takes_pixels_for_columns(bands_first):
    da = cube(bands_first=bands_first)
    f = factorize(da, [4, 2], **SHORT)
    assert f.layout.kind == "scene"
    np.testing.assert_allclose(f.layout.wavelengths, WAVES)
    np.testing.assert_allclose(f.W[1].T, model().fit(da).components_)


def test_columns_of_an_array_without_telling_names_are_samples():
    """As those of every other matrix given to factorize."""
    f = factorize(xr.DataArray(COUNTS.T, dims=("a", "b")), [4, 2], **SHORT)
    np.testing.assert_allclose(f.W[0], factorize(COUNTS.T, [4, 2], **SHORT).W[0])


def test_scan_takes_the_same():
    settings = {"splits": 2, "max_iter": 2, "tol": 0}
    found = scan(cells(np.asarray), [1, 2], **settings)
    plain = scan(COUNTS.T, [1, 2], **settings)
    np.testing.assert_array_equal(found.candidates[1].errors, plain.candidates[1].errors)


def test_other_methods_say_what_to_pass_of_anndata():
    with pytest.raises(TypeError, match=r"AnnData object.*X\.X\.T"):
        factorize(COUNTS.T, 2, **SHORT).encode(cells())


TABLE = pd.DataFrame(COUNTS, columns=GENES)


@pytest.mark.parametrize("call", [factorize, scan])
def test_a_table_says_what_its_rows_were_taken_for(call):
    settings = {} if call is factorize else {"splits": 2}
    sentence = r"20 rows are taken as features.* use DeepMF or pass X\.T\.to_numpy\(\)"
    with pytest.warns(UserWarning, match=sentence) as caught:
        call(TABLE, [2, 1], max_iter=1, tol=0, **settings)
    assert [w.filename for w in caught] == [__file__]


def test_columns_without_numbers_are_named():
    day, kind = pd.Timestamp("2024-01-01"), pd.Categorical(CELLS)
    text = TABLE.assign(species="setosa", day=day, kind=kind)
    sentence = r"'species', 'day', 'kind'\. Leave them out, X\.select_dtypes\('number'\)"
    fitted = model().fit(TABLE)
    turned = [lambda X: factorize(X, 2), lambda X: scan(X, [1, 2])]
    for call in (model().fit, fitted.transform, *turned):
        with pytest.raises(ValueError, match=sentence):
            call(text)
    counted = TABLE.astype({"gene1": object, "gene2": "Int64", "gene3": "category"})
    np.testing.assert_allclose(model().fit(counted).components_, fitted.components_, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:X is a DataFrame")
def test_numbers_of_every_kind_of_column():
    kinds = {"gene1": object, "gene2": "Int64", "gene3": "category", "gene4": "Float32"}
    plain = factorize(COUNTS.astype(float), 2, **SHORT)
    np.testing.assert_allclose(factorize(TABLE.astype(kinds), 2, **SHORT).W[0], plain.W[0])
    gaps = TABLE.astype("Int64")
    gaps.iloc[3, 2] = pd.NA
    X = np.where(np.isnan(gaps.to_numpy(float, na_value=np.nan)), np.nan, COUNTS.astype(float))
    seen = [factorize(A, 2, weights="observed", **SHORT).W[0] for A in (gaps, X)]
    np.testing.assert_allclose(*seen)
    with pytest.raises(ValueError, match="NaN or infinite, the first nan at row 3, column 2"):
        factorize(gaps, 2, **SHORT)


# --- sparse matrices -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_samples(kind):
    X, plain = kind(COUNTS), model().fit(COUNTS)
    fitted = model().fit(X)
    np.testing.assert_allclose(fitted.components_, plain.components_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(fitted.transform(X), plain.transform(COUNTS), atol=1e-4)
    np.testing.assert_allclose(model().fit_transform(X), fitted.transform(X))
    assert fitted.score(X) == pytest.approx(plain.score(COUNTS), rel=1e-4)
    assert fitted.reconstruction_err_ == pytest.approx(plain.reconstruction_err_, rel=1e-4)
    with pytest.raises(ValueError, match=r"Negative .* at row 0, column 0"):
        fitted.transform(kind(COUNTS - 2 * (np.arange(140).reshape(20, 7) == 0) * (1 + COUNTS)))


@pytest.mark.parametrize("weights", [None, "observed"])
def test_pixels_of_a_cube_that_lack_some_bands(weights):
    da = xr.DataArray(np.random.default_rng(0).random((6, 4, 5)), dims=("band", "y", "x"))
    da[2, 1, 1] = da[:, 3, 3] = np.nan
    said = pytest.warns(UserWarning, match="1 of 20; weights='observed' keeps them")
    with nullcontext() if weights else said:
        maps = model(weights=weights).fit_transform(da)
    lost = np.argwhere(np.isnan(maps.to_numpy()[0])).tolist()
    assert lost == ([[3, 3]] if weights else [[1, 1], [3, 3]])
    said = pytest.warns(UserWarning, match="1 of 20; weights='observed' keeps them")
    with nullcontext() if weights else said:
        f = factorize(da, [2], weights=weights, **SHORT)
    assert f.layout.valid.sum() == 20 - len(lost)
    for fitted in (f, model(weights=weights).fit(da) if weights else f):
        assert relative_residual(fitted, da).shape == (20 - len(lost),)


@pytest.mark.parametrize("order", ["C", "F"])
def test_weights_of_a_whole_cube(order):
    cube = np.asarray(np.random.default_rng(0).random((4, 5, 6)), order=order)
    cube[1, 1, 2] = np.nan
    cube[3, 3] = cube[..., 4] = np.nan
    da = xr.DataArray(cube, dims=("y", "x", "band"))
    expected = factorize(da, [2], weights="observed", **SHORT)
    pixels = cube.reshape(-1, 6, order=expected.layout.order)
    weights = (~np.isnan(pixels)).astype(float)
    f = factorize(da, [2], weights=weights.T, **SHORT)
    np.testing.assert_allclose(f.W[0], expected.W[0])
    fitted = model().fit(da, weights=weights)
    maps = fitted.transform(da, weights=weights)
    assert np.argwhere(np.isnan(maps.isel(component=0).to_numpy())).tolist() == [[3, 3]]
    kept = expected.layout.valid.ravel(order=expected.layout.order)
    few = factorize(da, [2], weights=weights[kept].T[[0, 1, 2, 3, 5]], **SHORT)
    np.testing.assert_array_equal(few.W[0], f.W[0])


def test_bands_of_the_same_names_and_other_wavelengths():
    def cube(first):
        waves = ("band", first + 10.0 * np.arange(6), {"units": "nm"})
        names = [f"Band {k}" for k in range(1, 7)]
        coords = {"band": names, "wavelength": waves}
        return xr.DataArray(RNG.random((6, 4, 5)), dims=("band", "y", "x"), coords=coords)

    fitted = model().fit(cube(400))
    fitted.transform(cube(400))
    with pytest.raises(ValueError, match="6 of 6 differ, first band 1 at 900 nm"):
        fitted.transform(cube(900))
