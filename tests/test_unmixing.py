"""Fractions and spectra: the same product, in units that people measure in."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf.datasets import simulated_scene
from deepmf.unmixing import mixture

rng = np.random.default_rng(0)


def factors(dtype=float):
    W, A = rng.random((9, 4)) ** 2, rng.random((4, 50)) ** 3
    A[2, ::3] = 0
    return W.astype(dtype), (1e5 * A).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_product_is_the_same(dtype):
    W, A = factors(dtype)
    S, F, b = mixture(W, A)
    np.testing.assert_allclose(S @ (F * b), W @ A, rtol=1e-5 if dtype == np.float32 else 1e-12)
    np.testing.assert_allclose(F.sum(axis=0), 1, rtol=1e-5)
    assert S.dtype == F.dtype == dtype
    assert 0.5 < b.mean() < 2


def test_the_scale_of_components_does_not_matter():
    W, A = factors()
    s = np.array([1e-6, 1.0, 7.0, 1e4])
    for one, other in zip(mixture(W, A), mixture(W * s, A / s[:, None])):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_the_truth_of_a_scene_comes_out():
    """From spectra on the simplex, as fits have them: area fractions, and units of the data."""
    scene = simulated_scene(rows=40, cols=40)
    W, A = scene.W[0], scene.H[0]
    sums = W.sum(axis=0)
    found = mixture(W / sums, A * sums[:, None])
    assert np.abs(found.fractions - A / A.sum(axis=0)).mean() < 0.02
    ratios = found.spectra.mean(axis=0) / W.mean(axis=0)
    assert np.median(np.abs(ratios - 1)) < 0.1
    assert np.abs(ratios - 1).max() < 0.4  # of a dark material among bright ones


def test_codes_that_sum_to_one_are_fractions_already():
    W, A = factors()
    A /= A.sum(axis=0)
    S, F, b = mixture(W, A)
    assert S is W
    assert F is A
    assert (b == 1).all()


def test_empty_components_and_pixels():
    W, A = factors()
    A[1] = 0
    A[:, 7] = 0
    W[:, 3] = 0
    S, F, b = mixture(W, A)
    assert np.isfinite(S).all()
    assert (F[[1, 3]] == 0).all()
    assert (F[:, 7] == 0).all()
    assert b[7] == 0
    np.testing.assert_allclose(S @ (F * b), W @ A)
    assert S[:, 1].mean() == pytest.approx(S[:, 0].mean(), rel=2)  # as bright as the others


@pytest.mark.parametrize("value", [-1e-9, np.nan, np.inf])
def test_what_mixes_nothing(value):
    for k in range(2):
        given = factors()
        given[k][1, 2] = value
        assert mixture(*given) is None
