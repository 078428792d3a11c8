"""What is drawn is the data: artists' values, labels, gaps and colors."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from deepmf import factorize, scan
from deepmf.data.layout import Layout
from deepmf.plots import (
    plot_errors,
    plot_maps,
    plot_pictures,
    plot_residual,
    plot_scan,
    plot_spectra,
    plot_words,
    relative_residual,
    top_features,
)
from deepmf.plots.style import NO_DATA


def fitted(X, ranks, layout):
    return dataclasses.replace(factorize(X, ranks, max_iter=3, tol=0), layout=layout)


def shown(fig):
    """Panels that are seen, without color bars."""
    return [ax for ax in fig.axes if ax.get_visible() and ax.get_label() != "<colorbar>"]


def values(image):
    return np.ma.filled(image.get_array().astype(float), np.nan)


# --- spectra -------------------------------------------------------------------------------------


def test_spectra_stand_at_the_layouts_wavelengths(scene, of_scene):
    fig = plot_spectra(of_scene, 2, truth=scene.W[1], names=scene.names[1])
    panels = shown(fig)
    assert [ax.get_title() for ax in panels] == scene.names[1]
    for k, ax in enumerate(panels):
        estimate, truth = ax.lines
        w, t = of_scene.W[1][:, k], scene.W[1][:, k]
        np.testing.assert_allclose(estimate.get_xdata(), scene.wavelengths)
        np.testing.assert_allclose(estimate.get_ydata(), w / w.mean())
        np.testing.assert_allclose(truth.get_ydata(), t / t.mean())
    assert fig.get_supxlabel() == "wavelength (nm)"
    assert fig.get_suptitle() == "Layer 2"


def test_lines_break_at_bad_bands(holed):
    _, f = holed
    line, dot = shown(plot_spectra(f, 1))[0].lines
    x, y = line.get_data()
    holes = np.flatnonzero(np.isnan(x))
    np.testing.assert_array_equal(holes, np.flatnonzero(np.isnan(y)))
    np.testing.assert_array_equal(holes, [5, 10, 12])  # after bands 1-5, 9-12 and the lone 14
    np.testing.assert_allclose(np.delete(x, holes), f.layout.wavelengths)
    np.testing.assert_allclose(dot.get_xdata(), f.layout.wavelengths[[9]])


def test_bands_are_numbered_as_in_the_file(holed):
    _, f = holed
    f = dataclasses.replace(f, layout=dataclasses.replace(f.layout, wavelengths=None))
    fig = plot_spectra(f, 1)
    x = shown(fig)[0].lines[0].get_xdata()
    np.testing.assert_array_equal(x[~np.isnan(x)], f.layout.bands)
    assert fig.get_supxlabel() == "band"


def test_given_wavelengths_win(holed):
    _, f = holed
    micro = np.linspace(1, 2, len(f.W[0]))
    x = shown(plot_spectra(f, 1, wavelengths=micro))[0].lines[0].get_xdata()
    np.testing.assert_allclose(x[~np.isnan(x)], micro)


def test_every_column_of_panels_has_its_ticks(holed):
    """Three panels in two columns: the upper right one is the last of its column."""
    panels = shown(plot_spectra(holed[1], 1, width=3.5))
    labeled = [bool(ax.xaxis.get_tick_params()["labelbottom"]) for ax in panels]
    assert labeled == [False, True, True]


# --- maps ----------------------------------------------------------------------------------------


def test_maps_are_fractions_or_codes(scene, of_scene):
    fig = plot_maps(of_scene, 2, names=scene.names[1])
    assert [ax.get_title() for ax in shown(fig)] == scene.names[1]
    drawn = np.array([values(ax.images[0]) for ax in shown(fig)])
    np.testing.assert_allclose(drawn.sum(axis=0), 1)
    assert fig.get_supxlabel().startswith("fractions of each pixel")
    fig = plot_maps(of_scene, 2, show="codes")
    assert [ax.get_title() for ax in shown(fig)] == ["L2-1", "L2-2", "L2-3", "L2-4"]
    for k, ax in enumerate(shown(fig)):
        np.testing.assert_allclose(values(ax.images[0]), scene.image(of_scene.codes(2)[k]))


def test_color_bars_are_as_tall_as_their_maps(of_scene):
    fig = plot_maps(of_scene, 1)
    fig.savefig(io.BytesIO(), dpi=100)
    for ax in shown(fig):
        (bar,) = ax.child_axes
        a, b = ax.get_window_extent(), bar.get_window_extent()
        assert b.y0 == pytest.approx(a.y0, abs=0.5)
        assert a.y1 - 0.06 * a.height < b.y1 < a.y1 + 0.5  # a pointed end is above the bar


def test_bands_stand_under_their_names(scene, of_scene):
    few = fitted(scene.X[:4], [3, 2], Layout(features=np.array(["B02", "B03", "B04", "$B"]),
                                             image_shape=(36, 32)))  # fmt: skip
    panel = shown(plot_spectra(few, 1))[0]
    assert [t.get_text() for t in panel.get_xticklabels()] == ["B02", "B03", "B04", "$B"]


def test_spectra_are_in_the_units_of_the_data(scene, of_scene):
    fig = plot_spectra(of_scene, 1)
    assert "data's units" in fig.get_supylabel()
    largest = max(ax.lines[0].get_ydata().max() for ax in shown(fig))
    assert 0.3 < largest / scene.X.max() < 1.2


def test_no_data_is_gray(holed):
    _, f = holed
    image = shown(plot_maps(f, 1))[0].images[0]
    np.testing.assert_array_equal(np.isnan(values(image)), ~f.layout.valid)
    np.testing.assert_allclose(image.cmap(np.nan), to_rgba(NO_DATA))


def test_the_scale_is_stated_and_kept(of_scene):
    own, shared = (plot_maps(of_scene, 1, show="codes", scale=s) for s in ("own", "shared"))
    assert "its own color scale" in own.get_supxlabel()
    assert "one color scale" in shared.get_supxlabel()
    limits = {ax.images[0].get_clim() for ax in shown(shared)}
    assert len(limits) == 1
    assert len({ax.images[0].get_clim() for ax in shown(own)}) == 6
    bars = [ax for ax in shared.axes if ax.get_label() == "<colorbar>"]
    assert len(bars) == 1


def test_a_given_shape_wins(bare):
    _, f = bare
    image = shown(plot_maps(f, 1, image=(8, 5), show="codes"))[0].images[0]
    np.testing.assert_allclose(values(image), f.codes(1)[0].reshape(8, 5))


def test_signed_codes_have_white_at_zero(bare):
    X, _ = bare
    f = factorize(X - X.mean(), 3, constraint_H="none", constraint_W="none", max_iter=3, tol=0,
                  init="random", random_state=0)  # fmt: skip
    image = shown(plot_maps(f, 1, image=(8, 5)))[0].images[0]
    low, high = image.get_clim()
    assert low == -high < 0
    assert min(image.cmap(0.5)) > 0.9


# --- pictures ------------------------------------------------------------------------------------


def test_pictures_are_the_columns_of_w(faces):
    _, f = faces
    fig = plot_pictures(f, 1)
    images = fig.axes[0].images
    assert len(images) == 9
    for w, image in zip(f.W[0].T, images):
        np.testing.assert_allclose(values(image), f.layout.image(w) / w.max())
        assert image.get_clim() == (0, 1)
    boxes = np.array([image.get_extent() for image in images])
    assert len(np.unique(boxes[:, 0].round(6))) == len(np.unique(boxes[:, 2].round(6))) == 3
    width, height = fig.get_size_inches()
    assert boxes.min() > 0
    assert boxes[:, 1].max() < width
    assert boxes[:, 3].max() < height


def test_signed_pictures_diverge(signed_faces):
    _, f = signed_faces
    fig = plot_pictures(f, -1, names=["a", "b", "$c$"])
    for image in fig.axes[0].images:
        assert image.get_clim() == (-1, 1)
        assert image.cmap.name == "RdBu_r"
    words = [text.get_text() for text in fig.axes[0].texts]
    assert words[:3] == ["a", "b", "$c$"]
    assert "Layer 2" in words
    assert any("blue: negative" in word for word in words)


# --- words ---------------------------------------------------------------------------------------


def test_top_features_are_the_largest(topics):
    _, f = topics
    for k, top in enumerate(top_features(f, 2, 4)):
        w = f.W[1][:, k]
        order = np.argsort(-w)[:4]
        assert [name for name, _ in top] == f.layout.features[order].tolist()
        assert [value for _, value in top] == pytest.approx(w[order])


def test_top_features_of_signed_components_go_by_size(signed_faces):
    _, f = signed_faces
    for k, top in enumerate(top_features(f, 1, 20)):
        sizes = [abs(value) for _, value in top]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] == np.abs(f.W[0][:, k]).max()
        assert min(value for _, value in top) < 0


def test_features_without_a_weight_are_left_out(topics):
    _, f = topics
    W = [M.copy() for M in f.W]
    W[0][:3, 0], W[0][3:, 0] = 1, 0
    W[0][:, 1] = 0
    tops = top_features(dataclasses.replace(f, W=W), 1, 10)
    assert [len(top) for top in tops] == [3, 0, 10, 10, 10]
    assert len(shown(plot_words(dataclasses.replace(f, W=W), 1))) == 5


def test_bars_that_no_one_would_see_are_left_out(topics):
    _, f = topics
    W = [M.copy() for M in f.W]
    W[0][:, 0] = 1e-4
    W[0][[4, 9], 0] = 1, 0.5
    bars = shown(plot_words(dataclasses.replace(f, W=W), 1))[0].patches
    assert len(bars) == 2


def test_features_are_named_by_what_is_known(holed, bare, faces):
    _, f = holed
    assert top_features(f, 1, 1)[0][0][0].endswith(" nm")
    no_nm = dataclasses.replace(f, layout=dataclasses.replace(f.layout, wavelengths=None))
    assert top_features(no_nm, 1, 1)[0][0][0].startswith("band ")
    _, g = bare
    assert top_features(g, 1, 1)[0][0][0] == f"X[{np.argmax(g.W[0][:, 0])}]"
    mine = [f"gene {i}" for i in range(12)]
    assert top_features(g, 1, 1, mine)[0][0][0] == f"gene {np.argmax(g.W[0][:, 0])}"


def test_bars_are_shares_in_percent(topics):
    _, f = topics
    for k, ax in enumerate(shown(plot_words(f, 1, 6))):
        lengths = [bar.get_width() for bar in ax.patches]
        w = f.W[0][:, k]
        np.testing.assert_allclose(lengths, 100 * np.sort(w)[::-1][:6] / w.sum())
        words = [text.get_text() for text in ax.texts]
        for word, (name, _) in zip(words, top_features(f, 1, 6)[k]):
            front, _, end = word.partition("…")
            assert word == name or (name.startswith(front) and name.endswith(end))


# --- errors --------------------------------------------------------------------------------------


def test_error_curves_are_the_history(of_scene, holed):
    fig = plot_errors({"a": of_scene, "b": holed[1]})
    panels = {(k, layer): fig.axes[3 * k + layer] for k in range(2) for layer in range(3)}
    for (k, layer), ax in panels.items():
        history = (of_scene.history.layer_errors, of_scene.history.data_errors)[k]
        np.testing.assert_allclose(ax.lines[0].get_ydata(), 100 * np.sqrt(history[:, layer]))
        assert ax.get_yscale() == "log"
        assert len(ax.lines) == (2 if layer < 2 else 1)
    np.testing.assert_allclose(fig.axes[6].lines[1].get_ydata(), holed[1].history.objective)
    assert [t.get_text() for t in fig.legends[0].get_texts()] == ["a", "b"]
    styles = {line.get_linestyle() for line in fig.axes[6].lines}
    assert len(styles) == 2


def test_errors_that_diverged_do_not_flatten_the_others(of_scene):
    h = of_scene.history
    lost = dataclasses.replace(h, layer_errors=h.layer_errors * [1, 1e12, 1])
    fig = plot_errors({"a": of_scene, "b": dataclasses.replace(of_scene, history=lost)})
    assert np.isnan(fig.axes[1].lines[1].get_ydata()).all()
    assert fig.axes[1].get_ylim()[1] < 1000


def test_large_objectives_have_their_power_in_the_title(of_scene):
    h = of_scene.history
    large = dataclasses.replace(h, objective=-3e11 - 1e10 * np.arange(len(h)))
    ax = plot_errors(dataclasses.replace(of_scene, history=large)).axes[6]
    assert "10^{11}" in ax.get_title()
    assert all(-3.5 < float(t.get_text()) < -2.8 for t in ax.get_yticklabels())


def test_one_sweep_is_marked(bare):
    f = factorize(bare[0], 2, max_iter=1, tol=0)
    line = plot_errors(f).axes[0].lines[0]
    assert len(line.get_xdata()) == 2
    assert line.get_marker() == "o"


def test_negative_and_missing_values_have_a_picture(of_scene):
    h = of_scene.history
    odd = dataclasses.replace(
        h,
        objective=h.objective - h.objective.mean(),
        layer_errors=np.zeros_like(h.layer_errors),
        data_errors=np.where(np.arange(len(h))[:, None] == 1, np.inf, h.data_errors),
    )
    fig = plot_errors(dataclasses.replace(of_scene, history=odd))
    assert fig.axes[6].get_yscale() == "linear"
    np.testing.assert_allclose(fig.axes[6].lines[0].get_ydata(), odd.objective)
    assert np.isnan(fig.axes[3].lines[0].get_ydata()[1])


# --- residual ------------------------------------------------------------------------------------


def test_the_residual_of_a_scene_is_a_map(holed):
    X, f = holed
    fig = plot_residual(f, X, 2)
    residual = np.linalg.norm(X - f.reconstruct(2), axis=0) / np.linalg.norm(X, axis=0)
    np.testing.assert_allclose(values(fig.axes[0].images[0]), f.layout.image(residual))
    assert "relative residual" in fig.axes[0].child_axes[0].get_ylabel()


def test_the_worst_samples_are_named(topics):
    X, f = topics
    residual = relative_residual(f, X)
    fig = plot_residual(f, residual=residual)
    left, right = fig.axes
    assert sum(bar.get_height() for bar in left.patches) == X.shape[1]
    worst = np.argsort(-residual)[:10]
    np.testing.assert_allclose([bar.get_width() for bar in right.patches], residual[worst])
    assert [t.get_text() for t in right.get_yticklabels()] == f.layout.samples[worst].tolist()


def test_an_empty_sample_has_a_picture(bare):
    X, f = bare
    X = X.copy()
    X[:, 3] = 0
    fig = plot_residual(f, X)
    assert fig.axes[1].get_yticklabels()[0].get_text() == "X[:, 3]"


def test_pictures_have_a_histogram(faces):
    X, f = faces
    assert len(plot_residual(f, X).axes) == 2


def test_a_table_of_one_feature_and_sample():
    f = dataclasses.replace(factorize(np.ones((2, 1)), 1, max_iter=1, tol=0), layout=Layout())
    for fig in (plot_spectra(f, 1), plot_words(f, 1), plot_residual(f, np.ones((2, 1)))):
        assert fig.axes


# --- scans ---------------------------------------------------------------------------------------


def test_scans_show_every_candidate_with_its_spread():
    X = np.random.default_rng(0).random((12, 30))
    done = scan(X, [[3, 2], 3, 2], splits=3, max_iter=3, tol=0)
    done.candidates[0] = dataclasses.replace(done.candidates[0], empty=1)
    fig = plot_scan(done)
    errors, agreement, volume = shown(fig)
    order = [done.candidates[k] for k in (2, 1, 0)]
    assert [t.get_text() for t in volume.get_xticklabels()] == ["2", "3", "3,2"]
    marks, bars = errors.collections[-1], errors.containers[0].lines[2][0]
    np.testing.assert_allclose(marks.get_offsets()[:, 1], [100 * c.error for c in order])
    spans = [np.ptp(segment[:, 1]) for segment in bars.get_segments()]
    np.testing.assert_allclose(spans, [200 * c.spread for c in order])
    assert volume.get_ylim() == (0, pytest.approx(1.1 * max(c.smallest for c in order)))
    faces = marks.get_facecolors()
    assert (faces[2] == to_rgba("white")).all()
    assert (faces[:2] == to_rgba(marks.get_edgecolors()[0])).all()
    np.testing.assert_allclose(
        agreement.collections[-1].get_offsets()[:, 1], [c.agreement for c in order]
    )
    about = {
        done.choice.ranks,
        *((r,) for r in range(done.choice.between[0], done.choice.between[-1] + 1)),
    }
    places = [k - 0.4 for k, c in enumerate(order) if c.ranks in about]
    for ax in (errors, agreement, volume):
        np.testing.assert_allclose([p.get_x() for p in ax.patches], places)
    said = [text.get_text() for text in fig.legends[0].get_texts()]
    assert said[0] == "ranks to take, or to choose between"
    assert said[1] == "agreement that counts as reproduced"
    assert "duplicate or empty" in said[2]


def test_shares_of_a_deviance_are_lines_between_those_measured():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.3, 1, (15, 4)) @ rng.gamma(0.5, 8, (4, 60))).astype(float)
    f = factorize(X, [4, 2], beta_loss="kullback-leibler", max_iter=9, tol=0)
    fig = plot_errors(f)
    assert "unexplained" in fig.axes[0].get_ylabel()
    (layer,), (data,) = fig.axes[1].lines, fig.axes[3].lines
    left = f.history.data_errors[:, 1]
    assert np.isnan(left[1:-1]).all()
    np.testing.assert_array_equal(data.get_xdata(), [0, 9])
    np.testing.assert_allclose(data.get_ydata(), 100 * left[[0, -1]])
    assert len(layer.get_xdata()) == 10
