"""Starts on published scenes; skipped where the data are not at hand."""

from __future__ import annotations

import os

import numpy as np
import pytest

from deepmf.data.panels import as_panels
from deepmf.datasets import load_jasper, load_moffett, load_samson, load_urban
from deepmf.init import mv_dual
from deepmf.init.outliers import usual_columns
from deepmf.metrics import match

pytestmark = pytest.mark.skipif("DEEPMF_DATA" not in os.environ, reason="DEEPMF_DATA is not set")


@pytest.mark.parametrize("load", [load_samson, load_jasper, load_urban, load_moffett])
def test_no_pixel_is_an_outlier(load):
    X = load().X
    assert usual_columns(as_panels(X)).all()
    X = np.array(X)
    X[:, 77] = 1e3 * np.random.default_rng(0).random(len(X))
    np.testing.assert_array_equal(np.flatnonzero(~usual_columns(as_panels(X))), [77])


@pytest.mark.parametrize(("load", "most"), [(load_samson, 3), (load_jasper, 9), (load_urban, 12)])
def test_angles_to_the_truth(load, most):
    scene = load()
    truth = scene.W[0]
    assert match(truth, mv_dual(as_panels(scene.X), truth.shape[1])).mean < most
