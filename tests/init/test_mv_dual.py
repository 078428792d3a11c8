"""MV-Dual: vertices that are in no column."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf.data.panels import DensePanels
from deepmf.init import StartError, mv_dual, snpa
from deepmf.init.mv_dual import _change
from deepmf.metrics import match


def mixtures(rank, seed=0, m=30, n=1500, purest=0.8):
    """Vertices, and mixtures in which none of them has a share above some bound."""
    rng = np.random.default_rng(seed)
    codes = rng.dirichlet(np.full(rank, 0.5), 8 * n).T
    codes = codes[:, codes.max(axis=0) <= purest][:, :n]
    assert codes.shape[1] == n
    vertices = rng.random((m, rank))
    return vertices, vertices @ codes


@pytest.mark.parametrize("rank", [3, 4, 6, 8])
@pytest.mark.parametrize("seed", range(2))
def test_vertices_without_pure_columns(rank, seed):
    vertices, X = mixtures(rank, seed)
    assert match(vertices, mv_dual(DensePanels(X), rank)).mean < 0.02
    assert match(vertices, snpa(DensePanels(X), rank)).mean > 4


def test_brightness_of_columns_does_not_matter():
    vertices, X = mixtures(4)
    X *= np.random.default_rng(1).uniform(0.3, 1, X.shape[1])
    assert match(vertices, mv_dual(DensePanels(X), 4)).mean < 0.02


def test_dark_columns_with_noise_do_little_harm():
    vertices, X = mixtures(4)
    rng = np.random.default_rng(1)
    X[:, :300] *= 1e-3
    X = np.maximum(X + 1e-3 * rng.standard_normal(X.shape), 0)
    assert match(vertices, mv_dual(DensePanels(X), 4)).mean < 1.5


@pytest.mark.parametrize("noise", [1e-3, 1e-2])
def test_slack_for_noise(noise):
    vertices, X = mixtures(4, n=3000)
    X = np.maximum(X + noise * np.random.default_rng(1).standard_normal(X.shape), 0)
    W = mv_dual(DensePanels(X), 4)
    assert match(vertices, W).mean < 30 * noise + 0.015
    assert match(vertices, W).mean < 0.1 * match(vertices, snpa(DensePanels(X), 4)).mean


def test_pure_columns_are_found_too():
    vertices, X = mixtures(5, purest=1)
    X[:, :5] = vertices
    assert match(vertices, mv_dual(DensePanels(X), 5)).mean < 0.02


@pytest.mark.parametrize("width", [None, 13])
def test_vertices_have_the_scale_of_the_data(width):
    vertices, X = mixtures(4, purest=0.9)
    codes = np.linalg.lstsq(vertices, X, rcond=None)[0]
    vertices = vertices * [1, 1.4, 0.8, 1]
    X = vertices @ codes
    W = mv_dual(DensePanels(X, width), 4)
    W = W[:, match(vertices, W).order]
    np.testing.assert_allclose(W, vertices, atol=1e-2 * vertices.max())
    for scale in (2.0**-300, 2.0**300):
        again = mv_dual(DensePanels(scale * X), 4) / scale
        np.testing.assert_allclose(again[:, match(vertices, again).order], W, rtol=1e-4, atol=1e-6)


def test_a_single_vertex_is_the_direction_of_the_data():
    _, X = mixtures(4, n=200)
    W = mv_dual(DensePanels(X), 1)
    u = np.linalg.svd(X)[0][:, :1]
    np.testing.assert_allclose(W / np.linalg.norm(W), u * np.sign(u.sum()), atol=1e-10)


def test_clipped_only_where_the_data_are_nonnegative():
    vertices, X = mixtures(3, m=8)
    signed = vertices.copy()
    signed[0] -= 2
    signed[1] += 3
    W = mv_dual(DensePanels(signed @ np.linalg.lstsq(vertices, X, rcond=None)[0]), 3)
    assert match(signed, W).mean < 0.02
    assert W.min() < 0
    rng = np.random.default_rng(0)
    sparse = np.where(rng.random((8, 3)) < 0.5, 0, vertices)
    noisy = sparse @ rng.dirichlet(np.ones(3), 400).T + 0.05 * rng.standard_normal((8, 400))
    assert mv_dual(DensePanels(np.maximum(noisy, 0)), 3).min() == 0


def test_what_it_cannot_do():
    rng = np.random.default_rng(0)
    _, X = mixtures(3, m=9, n=100)
    with pytest.raises(StartError, match=r"MV-Dual can find at most 3 vertices .* rank 4"):
        mv_dual(DensePanels(X), 4)
    with pytest.raises(StartError, match="at most 9 vertices"):
        mv_dual(DensePanels(rng.random((9, 60))), 10)
    with pytest.raises(StartError, match=r"sum of an extreme column is not positive"):
        mv_dual(DensePanels(rng.standard_normal((9, 60))), 3)


# --- one stage -----------------------------------------------------------------------------------


def objective(G, H, slacks):
    t = np.maximum(-(G @ H) / slacks[:, None], 0)
    rho = np.where(t <= 1, t**2 / 2, t - 0.5)
    return np.log(np.abs(np.linalg.det(G))) - rho.sum() / H.shape[1]


def test_no_small_change_improves_the_answer_of_a_stage():
    rng = np.random.default_rng(0)
    H = rng.dirichlet(np.ones(4), 300).T + 0.02 * rng.standard_normal((4, 300))
    slacks = np.array([0.02, 0.05, 0.03, 0.01])
    G = _change(H, slacks)
    np.testing.assert_allclose(G.sum(axis=0), 1, atol=1e-12)
    best = objective(G, H, slacks)
    assert best > objective(np.eye(4), H, slacks)
    for _ in range(200):
        D = rng.standard_normal((4, 4))
        D -= D.mean(axis=0)
        for step in (1e-2, 1e-4):
            assert objective(G + step * D, H, slacks) < best + 1e-9
