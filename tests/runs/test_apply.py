"""A second scene in the terms of a run: files, figures and pages agree."""

from __future__ import annotations

from base64 import b64decode

import numpy as np
import pytest

from deepmf import Factorization
from deepmf.datasets import simulated_scene
from deepmf.plots import plot_hierarchy, plot_maps, plot_spectra
from deepmf.report.content import report_content
from deepmf.runs import Config, apply, execute, save_applied, save_run
from deepmf.unmixing import mixture

pytest.importorskip("tomli_w")

SHAPE = (16, 32)
SETTINGS = {"ranks": [6, 4], "max_iter": 3, "tol": 0.0, "init": "random"}


@pytest.fixture(scope="module")
def applied(tmp_path_factory):
    """Two halves of a scene, the second without its brightest pixels: its mean spectra differ."""
    folder = tmp_path_factory.mktemp("apply")
    scene = simulated_scene(rows=32, cols=32, bands=15)
    cube = np.stack([scene.image(band) for band in scene.X], axis=-1)
    np.save(folder / "first.npy", cube[:16])
    np.save(folder / "second.npy", np.minimum(cube[16:], np.median(cube)))
    (folder / "run").mkdir()
    (folder / "out").mkdir()
    save_run(folder / "run", execute(Config(str(folder / "first.npy"), fit=SETTINGS)))
    done = apply(folder / "run", str(folder / "second.npy"))
    save_applied(folder / "out", done)
    return folder, done.run


def pictures(fig):
    drawn = [image for ax in fig.axes if ax.get_label() != "<colorbar>" for image in ax.images]
    return {image.get_gid(): np.ma.filled(image.get_array(), np.nan) for image in drawn}, drawn


@pytest.mark.parametrize("layer", [1, 2])
def test_files_figures_and_pages_show_the_same_fractions(applied, layer):
    folder, run = applied
    files = np.load(folder / "out" / f"fractions-layer-{layer}.npy")
    alone = mixture(run.f.basis(layer), run.f.codes(layer)).fractions.reshape(files.shape)
    assert np.abs(files - alone).max() > 0.01  # other spectra would give other fractions
    _, maps = pictures(plot_maps(run.f, layer))
    np.testing.assert_allclose([image.get_array() for image in maps], files, rtol=1e-6)
    thumbnails, _ = pictures(plot_hierarchy(run.f))
    for k, picture in enumerate(files):
        np.testing.assert_allclose(thumbnails[f"layer-{layer}-{k + 1}"], picture, rtol=1e-6)
    for shown, picture in zip(page_layer(run, layer)["maps"], files):
        codes = np.frombuffer(b64decode(shown["codes"]), np.uint8).reshape(SHAPE)
        step = (shown["hi"] - shown["lo"]) / 254
        np.testing.assert_allclose(shown["lo"] + codes * step, picture, atol=step)


@pytest.mark.parametrize("layer", [1, 2])
def test_spectra_are_those_of_the_run(applied, layer):
    folder, run = applied
    f = Factorization.load(folder / "run" / "factors.npz")
    spectra = mixture(f.basis(layer), f.codes(layer)).spectra
    lines = [ax.lines[0].get_ydata() for ax in plot_spectra(run.f, layer).axes]
    np.testing.assert_allclose(lines, spectra.T, rtol=1e-6)
    np.testing.assert_allclose(page_layer(run, layer)["curves"], spectra.T, rtol=1e-4)


def page_layer(run, layer):
    return report_content([run], ["run"])["runs"][0]["layers"][layer - 1]


def test_fractions_outlive_a_file(applied, tmp_path):
    _, run = applied
    back = Factorization.load(run.f.save(tmp_path / "f"))
    for layer in (1, 2):
        np.testing.assert_array_equal(
            back.view(layer).amounts.values, run.f.view(layer).amounts.values
        )
