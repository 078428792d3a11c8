"""Bad input gets a sentence."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from deepmf.data.layout import Layout
from deepmf.plots import (
    plot_errors,
    plot_hierarchy,
    plot_maps,
    plot_pictures,
    plot_residual,
    plot_spectra,
    plot_words,
    top_features,
)


def says(sentence):
    return pytest.raises(ValueError, match=sentence)


@pytest.mark.parametrize("draw", [plot_maps, plot_pictures])
def test_no_shape(bare, draw):
    with says(r"pass image=\(rows, cols\)"):
        draw(bare[1], 1)


@pytest.mark.parametrize("draw", [plot_maps, plot_pictures])
def test_a_shape_that_does_not_fit(bare, draw):
    with says(r"image=\(3, 3\) does not hold (40|12) pixels"):
        draw(bare[1], 1, image=(3, 3))
    with says("pass \\(rows, cols\\)"):
        draw(bare[1], 1, image=(2, 2, 10))


def test_the_other_kind_of_picture(of_scene, faces):
    with says("see plot_maps"):
        plot_pictures(of_scene, 1)
    with says("see plot_pictures"):
        plot_maps(faces[1], 1)


@pytest.mark.parametrize("draw", [plot_maps, plot_spectra, plot_words])
def test_names(of_scene, draw):
    with says("2 names were given for 6 components"):
        draw(of_scene, 1, names=["a", "b"])


def test_names_of_pictures_and_layers(of_scene, faces):
    with says("2 names were given for 9 components"):
        plot_pictures(faces[1], 1, names=["a", "b"])
    with says("1 names were given for 4 components"):
        plot_hierarchy(of_scene, names=[None, ["a"]])
    with says("4 lists of names were given for 3 layers"):
        plot_hierarchy(of_scene, names=[None] * 4)


@pytest.mark.parametrize("layer", [0, 4, 1.5, "1"])
@pytest.mark.parametrize("draw", [plot_maps, plot_spectra, plot_words, top_features])
def test_layers(of_scene, draw, layer):
    with says("layer must be between 1 and 3"):
        draw(of_scene, layer)


def test_layers_of_pictures_and_residuals(scene, of_scene, faces):
    with says("layer must be between 1 and 2"):
        plot_pictures(faces[1], 3)
    with says("layer must be between 1 and 3"):
        plot_residual(of_scene, scene.X, 4)


def test_truth(scene, of_scene):
    with says(r"truth has shape \(20, 4\), but layer 1 has 6 components of 20 bands"):
        plot_spectra(of_scene, 1, truth=scene.W[1])


def test_wavelengths(of_scene):
    with says(r"wavelengths has shape \(3,\), but the spectra have 20 bands"):
        plot_spectra(of_scene, 1, wavelengths=[1, 2, 3])


def test_features_and_samples(bare):
    X, f = bare
    with says(r"1 names were given for 12 features \(rows of X\)"):
        plot_words(f, 1, features=["a"])
    with says(r"1 names were given for 40 samples \(columns of X\)"):
        plot_residual(f, X, samples=["a"])


@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_numbers_of_words(bare, n):
    with says("n must be an integer of at least 1"):
        plot_words(bare[1], 1, n)


def test_scales(of_scene):
    with says("scale must be 'own' or 'shared', got 'log'"):
        plot_maps(of_scene, 1, scale="log")


def test_residual_of_nothing(bare):
    _, f = bare
    with says("Pass X, the data of the fit"):
        plot_residual(f)
    with says(r"residual has shape \(3,\), but the fit has 40 samples"):
        plot_residual(f, residual=np.ones(3))


def test_no_fits():
    with says("fits is empty"):
        plot_errors({})


def test_a_layout_of_other_data(of_scene):
    f = dataclasses.replace(of_scene, layout=Layout(image_shape=(3, 3)))
    with says("a picture needs 9 values"):
        plot_maps(f, 1)
