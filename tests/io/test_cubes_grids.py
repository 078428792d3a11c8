"""Named dimensions: NetCDF, Zarr, and xarray's arrays themselves."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from deepmf import DeepMF, Factorization, factorize
from deepmf.io import Reading, UnreadableError, format_of, read
from deepmf.io.xarray_files import codes_to_dataarray, from_dataarray
from deepmf.unmixing import mixture

ROWS, COLS, BANDS = 4, 5, 6
WAVES = np.array([450.0, 500.0, 600.0, 700.5, 850.0, 2100.0])
CUBE = np.random.default_rng(0).random((BANDS, ROWS, COLS)).astype(np.float32) + 0.1
Y, X = np.linspace(50, 49, ROWS), np.linspace(10, 12, COLS)
NAMES = [["soil", "tree", "water"], ["ground", "wet"]]


def scene(**coords):
    da = xr.DataArray(
        CUBE,
        dims=("wavelength", "lat", "lon"),
        coords={"wavelength": WAVES, "lat": Y, "lon": X, **coords},
        name="reflectance",
    )
    da.wavelength.attrs["units"] = "nm"
    da.lat.attrs["units"] = "degrees_north"
    return da


def save(da, path):
    ds = da if isinstance(da, xr.Dataset) else da.to_dataset()
    if path.suffix == ".zarr":
        ds.to_zarr(path, mode="w", zarr_format=2)
    elif path.stem == "classic":
        ds.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")
    else:
        ds.to_netcdf(path, engine="h5netcdf")
    return path


def fitted(data):
    f = factorize(np.asarray(data.X), [3, 2], max_iter=3, tol=0, random_state=0)
    return replace(f, layout=data.layout)


def same(data, cube):
    pictures = np.stack([data.image(band) for band in data.X])
    np.testing.assert_allclose(pictures, cube, rtol=1e-6)


FILES = ["a.nc", "a.nc4", "classic.nc", "a.zarr"]


@pytest.mark.parametrize("name", FILES)
def test_read(tmp_path, name):
    data = read(save(scene(), tmp_path / name))
    same(data, CUBE)
    np.testing.assert_array_equal(data.layout.wavelengths, WAVES)
    np.testing.assert_array_equal(data.layout.y, Y)
    np.testing.assert_array_equal(data.layout.x, X)
    assert data.name == name.partition(".")[0]


@pytest.mark.parametrize("order", [("lat", "lon", "wavelength"), ("lon", "wavelength", "lat")])
def test_dimensions_in_any_order(tmp_path, order):
    data = read(save(scene().transpose(*order), tmp_path / "a.nc"))
    same(data, CUBE)  # y down, x across
    codes = codes_to_dataarray(fitted(data).codes(1), data.layout, NAMES[0])
    assert codes.dims == tuple("component" if d == "wavelength" else d for d in order)


def test_fill_values_become_pixels_without_data(tmp_path):
    da = scene().copy()
    da[:, 1, 2] = np.nan
    da[3, 0, 4] = np.nan
    whole = (da * 100).round().fillna(-1).astype(np.int16).assign_attrs(_FillValue=np.int16(-1))
    whole = whole.rename("counts")
    for name in FILES:
        data = read(save(whole, tmp_path / name))
        lost = [tuple(at) for at in np.argwhere(~data.layout.valid)]
        assert lost == [(0, 4), (1, 2)]
        np.testing.assert_array_equal(data.X[2], whole.values[2][data.layout.valid])


@pytest.mark.parametrize(
    ("dim", "attrs"),
    [("band", {}), ("Channel", {}), ("wl", {}), ("spec", {}), ("odd", {"units": "um"})],
)
def test_the_spectral_dimension(dim, attrs):
    spectral = xr.DataArray(WAVES / 1000, dims=dim, attrs=attrs)
    da = xr.DataArray(np.moveaxis(CUBE, 0, 1), dims=("row", dim, "column"), coords={dim: spectral})
    data = from_dataarray(da)
    same(data, CUBE)
    known = dim in ("wl", "odd")
    assert (data.layout.wavelengths is not None) == known
    if known:
        np.testing.assert_allclose(data.layout.wavelengths, WAVES)


def test_microscopes_have_lengths_along_x_too():
    da = xr.DataArray(CUBE, dims=("emission", "y", "x"), coords={"y": Y, "x": X, "emission": WAVES})
    for name, unit in (("y", "um"), ("x", "um"), ("emission", "nm")):
        da[name].attrs["units"] = unit
    np.testing.assert_array_equal(from_dataarray(da).layout.wavelengths, WAVES)


def test_unknown_names_go_by_place():
    da = xr.DataArray(np.moveaxis(CUBE, 0, 2), dims=("a", "b", "c"))
    same(from_dataarray(da), CUBE)
    first = xr.DataArray(CUBE, dims=("a", "b", "c"))
    same(from_dataarray(first, Reading(bands="first")), CUBE)
    square = xr.DataArray(CUBE[:, :, :4], dims=("a", "b", "c"))
    with pytest.raises(UnreadableError, match="does not look like rows x cols x bands"):
        from_dataarray(square)


def test_bad_bands_and_groups_as_emit_has_them(tmp_path):
    h5netcdf = pytest.importorskip("h5netcdf")
    path = tmp_path / "emit.nc"
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"downtrack": ROWS, "crosstrack": COLS, "bands": BANDS}
        cube = file.create_variable(
            "reflectance", ("downtrack", "crosstrack", "bands"), data=np.moveaxis(CUBE, 0, 2)
        )
        cube.attrs["_FillValue"] = np.float32(-9999)
        group = file.create_group("sensor_band_parameters")
        waves = group.create_variable("wavelengths", ("bands",), data=WAVES)
        waves.attrs["units"] = "nm"
        group.create_variable("good_wavelengths", ("bands",), data=np.array([1, 1, 0, 1, 1, 1.0]))
    data = read(path)
    np.testing.assert_array_equal(data.layout.bands, [1, 2, 4, 5, 6])
    np.testing.assert_array_equal(data.layout.wavelengths, WAVES[data.layout.bands - 1])
    same(data, CUBE[data.layout.bands - 1])


def test_matrices(tmp_path):
    values = CUBE.reshape(BANDS, -1)
    stations = np.arange(values.shape[1]) * 10
    da = xr.DataArray(values, dims=("feature", "sample"), coords={"sample": stations}, name="v")
    da = da.assign_coords(feature=list("abcdef"))
    for order in (("feature", "sample"), ("sample", "feature")):
        data = read(save(da.transpose(*order), tmp_path / "a.nc"))
        np.testing.assert_array_equal(data.X, values)
        assert data.layout.features.tolist() == list("abcdef")
        assert data.layout.samples[:2].tolist() == ["0", "10"]
        codes = codes_to_dataarray(fitted(data).codes(2), data.layout, NAMES[1])
        assert codes.dims == tuple("component" if d == "feature" else d for d in order)
        np.testing.assert_array_equal(codes["sample"], stations)
    plain = xr.DataArray(values, dims=("p", "q"))
    assert from_dataarray(plain).X.shape == values.shape
    assert from_dataarray(plain, Reading(rows="samples")).X.shape == values.shape[::-1]
    shaped = from_dataarray(plain, Reading(image=(ROWS, COLS)))
    assert codes_to_dataarray(shaped.X[:2], shaped.layout, ["1", "2"]).shape == (2, ROWS, COLS)


def test_a_lone_time_step_is_dropped(tmp_path):
    data = read(save(scene().expand_dims(time=[0.0]), tmp_path / "a.nc"))
    same(data, CUBE)


@pytest.mark.parametrize("name", FILES)
def test_maps(tmp_path, name):
    da = scene(spatial_ref=((), 0, {"crs_wkt": "GEOGCS[]", "grid_mapping_name": "latitude"}))
    da[:, 1, 2] = np.nan
    da.encoding["grid_mapping"] = "spatial_ref"
    ds = da.to_dataset().assign_attrs(title="a scene", version=3)
    f = fitted(read(save(ds, tmp_path / name)))
    f = Factorization.load(f.save(tmp_path / "f"))  # metadata survives a file
    folder = tmp_path / "out"
    folder.mkdir()
    format_of(tmp_path / name).write(folder, f, NAMES)
    for layer in (1, 2):
        suffix = ".zarr" if name == "a.zarr" else ".nc"
        engine = {"engine": "zarr"} if name == "a.zarr" else {"engine": "h5netcdf"}
        with xr.open_dataset(
            folder / f"fractions-layer-{layer}{suffix}", decode_coords="all", **engine
        ) as back:
            codes = back["fractions"].load()
        assert "fractions of each pixel" in codes.attrs["long_name"]
        assert codes.dims == ("component", "lat", "lon")
        assert codes["component"].values.tolist() == NAMES[layer - 1]
        np.testing.assert_array_equal(codes["lat"], Y)
        np.testing.assert_array_equal(codes["lon"], X)
        assert codes["lat"].attrs["units"] == "degrees_north"
        assert codes["spatial_ref"].attrs["crs_wkt"] == "GEOGCS[]"
        assert codes.encoding["grid_mapping"] == "spatial_ref"
        assert back.attrs["title"] == "a scene"
        fractions = mixture(f.basis(layer), f.codes(layer)).fractions
        wanted = np.stack([f.layout.image(row) for row in fractions])
        np.testing.assert_allclose(codes, wanted, rtol=1e-6)
        assert np.isnan(codes[:, 1, 2]).all()


def test_codes_of_any_scene_have_pictures():
    from deepmf.data.layout import Layout

    layout = Layout(image_shape=(2, 3), order="F")
    codes = np.arange(12.0).reshape(2, 6)
    da = codes_to_dataarray(codes, layout, ["a", "b"])
    assert da.dims == ("component", "y", "x")
    np.testing.assert_array_equal(da.sel(component="b"), layout.image(codes[1]))
    table = codes_to_dataarray(codes, Layout(), ["a", "b"])
    assert table.dims == ("component", "sample")


def test_metadata_are_plain_data():
    da = scene(spatial_ref=((), 0, {"crs_wkt": "x", "array": np.arange(2), "n": np.float32(1)}))
    json.loads(str(from_dataarray(da).layout.to_arrays()["layout"]))


def test_several_variables(tmp_path):
    ds = xr.Dataset({"a": scene(), "b": scene()})
    path = save(ds, tmp_path / "a.nc")
    with pytest.raises(UnreadableError, match=r"several matrices: a \(6 x 4 x 5 float32\), b"):
        read(path)
    same(read(path, Reading(variable="b")), CUBE)
    with pytest.raises(UnreadableError, match="no variable 'c'; it has a"):
        read(path, Reading(variable="c"))
    with pytest.raises(UnreadableError, match="no matrix or cube of numbers, only t"):
        read(save(xr.Dataset({"t": ("n", np.arange(3.0))}), tmp_path / "t.nc"))


NDVI = np.moveaxis(CUBE, 0, 2).reshape(COLS, ROWS, BANDS)  # no axis looks like another


@pytest.mark.parametrize(
    "dims",
    [("time", "y", "x"), ("y", "time", "x"), ("lat", "lon", "time"), ("level", "row", "col"),
     ("easting", "band", "northing"), ("sample", "lines", "columns")],
)  # fmt: skip
def test_pictures_are_never_features(tmp_path, dims):
    data = read(save(xr.DataArray(NDVI, dims=dims, name="ndvi"), tmp_path / "a.nc"))
    (feature,) = {"time", "level", "band", "sample"} & set(dims)
    assert len(data.X) == NDVI.shape[dims.index(feature)]
    assert data.layout.kind == "scene"
    assert f"Features are along {feature} of ndvi, pixels along" in data.notes[0]


def test_coordinates_tell_of_pictures():
    da = xr.DataArray(NDVI, dims=("t", "u", "v"), coords={"u": np.arange(ROWS), "v": range(BANDS)})
    da["u"].attrs["standard_name"] = "projection_y_coordinate"
    da["v"].attrs["units"] = "degrees_east"
    assert len(from_dataarray(da).X) == len(NDVI)


def test_times_have_dates_for_names(tmp_path):
    da = xr.DataArray(CUBE, dims=("time", "y", "x"), name="ndvi")
    days = np.datetime64("2020-01-01", "ns") + np.arange(BANDS) * np.timedelta64(16, "D")
    da = da.assign_coords(time=days)
    wanted = ["2020-01-01", "2020-01-17"]
    assert from_dataarray(da).layout.features[:2].tolist() == wanted
    assert read(save(da, tmp_path / "a.nc")).layout.features[:2].tolist() == wanted
    hours = da.assign_coords(time=days[0] + np.arange(BANDS) * np.timedelta64(1, "h"))
    assert from_dataarray(hours).layout.features[1] == "2020-01-01T01:00:00"
    odd = da.assign_coords(time=("time", np.arange(BANDS), {"units": "months since then"}))
    assert from_dataarray(odd).layout.features[:2].tolist() == ["0", "1"]


def test_times_and_bands_are_stacked(tmp_path):
    values = np.stack([CUBE, 2 * CUBE, 3 * CUBE], axis=1)
    da = xr.DataArray(values, dims=("band", "time", "y", "x"), name="r")
    da = da.assign_coords(band=np.arange(BANDS), y=Y, x=X).transpose("time", "band", "y", "x")
    data = read(save(da, tmp_path / "a.nc"))
    same(data, np.concatenate([CUBE, 2 * CUBE, 3 * CUBE]))
    assert data.layout.features[[0, 1, BANDS]].tolist() == ["t0 b0", "t0 b1", "t1 b0"]
    assert "Features are along time, band of r, pixels along y, x." in data.notes
    codes = codes_to_dataarray(fitted(data).codes(1), data.layout, NAMES[0])
    assert codes.dims == ("component", "y", "x")
    model = DeepMF([2], max_iter=2, tol=0, random_state=0).fit(da)
    assert model.components(1).dims == ("component", "time_band")
    assert model.transform(da).dims == ("component", "y", "x")


@pytest.mark.parametrize("dims", [("y", "x"), ("lat", "lon"), ("x", "y", "line"), ("a", "b", "x")])
def test_arrays_without_features_are_refused(tmp_path, dims):
    da = xr.DataArray(NDVI if len(dims) == 3 else NDVI[0], dims=dims, name="ndvi")
    with pytest.raises(UnreadableError, match=f"dimensions {', '.join(dims)}"):
        read(save(da, tmp_path / "a.nc"))


def test_the_variable_is_never_a_mask(tmp_path):
    cube = scene()
    mask = xr.ones_like(cube).astype(np.uint8)
    flags = mask.assign_attrs(flag_meanings="cloud shadow")
    big = xr.DataArray(np.ones((40, ROWS, COLS)), dims=("view", "lat", "lon"))
    small = cube[:3].drop_vars("wavelength").rename(wavelength="channel")
    parts = {"cloud_mask": mask, "state": flags, "elevation": cube[0], "r": cube, "few": small}
    ds = xr.Dataset({**parts, "angles_mask": big})
    data = read(save(ds, tmp_path / "a.nc"))
    same(data, CUBE)
    assert "Features are along wavelength of r, pixels along lat, lon." in data.notes
    assert len(read(tmp_path / "a.nc", Reading(variable="angles_mask")).X) == 40


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_cut_files(tmp_path, share):
    for name in ("a.nc", "classic.nc"):
        path = save(scene(), tmp_path / name)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(UnreadableError) as error:
            read(path)
        assert str(error.value).endswith(".")


def test_stores_that_are_none(tmp_path):
    (tmp_path / "a.zarr").mkdir()
    with pytest.raises(UnreadableError):
        read(tmp_path / "a.zarr")
    (tmp_path / "b.zarr").write_text("x")
    with pytest.raises(UnreadableError, match="that is a folder"):
        read(tmp_path / "b.zarr")
    path = save(scene(), tmp_path / "c.zarr")
    (path / "reflectance" / ".zarray").write_text("{")
    with pytest.raises(UnreadableError):
        read(path)


def test_arrays_without_names_of_dimensions(tmp_path):
    import zarr

    zarr.save(tmp_path / "a.zarr", CUBE)
    zarr.open_group(tmp_path / "b.zarr", mode="w")["X"] = CUBE
    for name in ("a.zarr", "b.zarr"):
        with pytest.raises(UnreadableError, match="named dimensions"):
            read(tmp_path / name)


def test_absurd_sizes(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file.create_dataset("X", shape=(10**6, 10**6, 10**6), dtype="f8", chunks=(10, 10, 10))
    with pytest.raises(UnreadableError, match="does not fit in memory"):
        read(tmp_path / "a.mat")
    (tmp_path / "a.mat").rename(tmp_path / "a.nc")
    with pytest.raises(UnreadableError):
        read(tmp_path / "a.nc")
