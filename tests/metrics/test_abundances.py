"""Errors of abundances against a search over all pairings."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from deepmf.metrics import abundance_rmse


@pytest.fixture
def fractions():
    return np.random.default_rng(0).dirichlet(np.ones(3), size=40).T


def test_pairs_have_the_least_total_squared_error(fractions):
    rng = np.random.default_rng(1)
    codes = np.vstack([fractions[[2, 0, 1]], rng.random((1, 40))]) + 0.3 * rng.random((4, 40))
    estimate = codes / codes.sum(axis=0)
    squares = {
        p: [((a - estimate[i]) ** 2).mean() for a, i in zip(fractions, p)]
        for p in permutations(range(4), 3)
    }
    best = min(squares, key=lambda p: sum(squares[p]))
    found = abundance_rmse(fractions, codes)
    assert tuple(found.order) == best
    np.testing.assert_allclose(found.components, np.sqrt(squares[best]), rtol=1e-12)
    assert found.overall == pytest.approx(np.sqrt(np.mean(squares[best])), rel=1e-12)
    given = abundance_rmse(fractions, codes, order=[0, 1, 3])
    np.testing.assert_allclose(given.components, np.sqrt(squares[0, 1, 3]), rtol=1e-12)


def test_scales_of_pixels_do_not_count(fractions):
    """Neither brightness nor the sum of a pixel's codes; empty pixels stay empty."""
    brightness = np.random.default_rng(2).uniform(0.2, 5, 40)
    brightness[7] = 0
    found = abundance_rmse(3 * fractions, (fractions * brightness)[::-1])
    assert found.order.tolist() == [2, 1, 0]
    expected = np.sqrt(fractions[:, 7] ** 2 / 40)
    np.testing.assert_allclose(found.components, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("true", "estimated", "order", "message"),
    [
        (np.ones((2, 5)), np.ones((2, 4)), None, "one column for each pixel"),
        (np.ones((3, 5)), np.ones((2, 5)), None, "as many rows as the truth"),
        (np.ones((2, 5)), -np.ones((2, 5)), None, "A_estimated.*signed codes"),
        (np.full((2, 5), np.nan), np.ones((2, 5)), None, "A_true.*finite"),
        (np.ones(5), np.ones((2, 5)), None, "A_true has shape"),
        (np.ones((2, 5)), np.ones((3, 5)), [1, 1], "none of them twice"),
        (np.ones((2, 5)), np.ones((3, 5)), [0, 3], "from 0 to 2"),
        (np.ones((2, 5)), np.ones((3, 5)), [0, -1], "from 0 to 2"),
    ],
)
def test_what_does_not_compare_is_refused(true, estimated, order, message):
    with pytest.raises(ValueError, match=message):
        abundance_rmse(true, estimated, order)
