"""Layouts in saved files: everything comes back, from files of older versions too."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest

from deepmf.data.layout import Layout
from deepmf.data.provenance import Dimensions, Georeference, Scaling, Source

UTM = Georeference(crs='PROJCS["UTM 10N"]', transform=(30.0, 0.0, 5e5, 0.0, -30.0, 4e6))
MAP = {"map info": "{UTM, 1, 1, 5, 6, 30, 30, 10, North}"}
FULL = Layout(
    features=np.array(["b1", "b3"]),
    samples=np.array(["p", "q", "r"]),
    wavelengths=np.array([400.0, 500.0]),
    bands=np.array([1, 3]),
    total_bands=3,
    image_shape=(2, 2),
    order="F",
    valid=np.array([[True, True], [False, True]]),
    y=np.array([1.5, 2.5]),
    x=np.array([7, 8]),
    source=Source("NetCDF", "/data/a.nc", {"title": "scene", "version": 2}),
    georeference=UTM,
    dimensions=Dimensions(("y", "band", "x"), ("y", "x"), {"y": {"units": "m"}}, "<f8"),
    scaling=Scaling(7.5, (1.0, 2.0)),
    spectra_totals=((1.0, 2.5), (3.0,)),
)


def saved(layout: Layout) -> Layout:
    """What comes back from a file."""
    return Layout.from_arrays(layout.to_arrays())


@pytest.mark.parametrize("layout", [FULL, Layout()], ids=["full", "empty"])
def test_everything_comes_back(layout):
    back = saved(layout)
    for part in fields(Layout):
        given, found = getattr(layout, part.name), getattr(back, part.name)
        if isinstance(given, np.ndarray):
            np.testing.assert_array_equal(found, given)
            assert found.dtype == given.dtype
        else:
            assert found == given, part.name
            assert type(found) is type(given), part.name


OLD = {
    "no metadata": ({}, {}),
    "ENVI": (
        {"format": "ENVI", "envi": MAP, "all_bands": 3},
        {"source": Source("ENVI"), "georeference": Georeference(envi=MAP), "total_bands": 3},
    ),
    "GeoTIFF": (
        {"format": "GeoTIFF", "crs": UTM.crs, "transform": list(UTM.transform or ())},
        {"source": Source("GeoTIFF"), "georeference": UTM},
    ),
    "MATLAB": ({"format": "MATLAB", "max_value": 7.0}, {"source": Source("MATLAB")}),
    "AnnData": (
        {"format": "AnnData", "path": "/a.h5ad", "scaled_by": {"middle": 3.5}},
        {"source": Source("AnnData", "/a.h5ad"), "scaling": Scaling(3.5)},
    ),
    "tfidf": (
        {"format": "CSV table", "scaled_by": {"rows": [1.0, 2.0]}},
        {"source": Source("CSV table"), "scaling": Scaling(row_weights=(1.0, 2.0))},
    ),
    "unit": ({"scaled_by": {}}, {"scaling": Scaling()}),
    "NetCDF": (
        {
            "format": "NetCDF",
            "attrs": {"title": "scene"},
            "dims": ["band", "y", "x"],
            "samples": ["y", "x"],
            "coords": {"y": {"units": "m"}},
            "crs_variable": {"spatial_ref": {"crs_wkt": "WKT"}},
        },
        {
            "source": Source("NetCDF", attrs={"title": "scene"}),
            "georeference": Georeference(grid_mapping={"spatial_ref": {"crs_wkt": "WKT"}}),
            "dimensions": Dimensions(("band", "y", "x"), ("y", "x"), {"y": {"units": "m"}}),
        },
    ),
    "xarray matrix": (
        {
            "format": "xarray",
            "dims": ["time", "gene"],
            "samples": ["time"],
            "coords": {},
            "crs_variable": {},
            "type": "<M8[ns]",
        },
        {
            "source": Source("xarray"),
            "dimensions": Dimensions(("time", "gene"), ("time",), label_type="<M8[ns]"),
        },
    ),
    "applied": (
        {"format": "ENVI", "spectra": [[1.0, 2.0], [3.0]]},
        {"source": Source("ENVI"), "spectra_totals": ((1.0, 2.0), (3.0,))},
    ),
}


@pytest.mark.parametrize("name", OLD)
def test_files_of_older_versions_are_read(name):
    """They hold all metadata in one mapping, ``header``."""
    header, expected = OLD[name]
    rest = {"image_shape": [2, 3], "order": "F", "pixels": "columns", "header": header}
    layout = Layout.from_arrays({"layout": np.array(json.dumps(rest))})
    wanted = Layout(image_shape=(2, 3), order="F", **expected)
    assert {f.name: getattr(layout, f.name) for f in fields(Layout)} == vars(wanted)
    assert vars(saved(layout)) == vars(wanted)
