"""The layer graph: components, links, and that nothing lies upon anything else."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch

from deepmf import factorize
from deepmf.plots import plot_hierarchy, top_features
from deepmf.plots.arrows import Arrow, Spot, percentages
from deepmf.plots.graph import Link
from deepmf.unmixing import mixture


def images(fig):
    return {
        image.get_gid(): np.ma.filled(image.get_array(), np.nan) for image in fig.axes[0].images
    }


def arrows(fig):
    return {p.get_gid(): p for p in fig.axes[0].patches if isinstance(p, FancyArrowPatch)}


def words(fig):
    return [text.get_text() for text in fig.axes[0].texts]


def test_a_scene_is_shown_by_its_maps(scene, of_scene):
    fig = plot_hierarchy(of_scene, names=scene.names, title="village")
    drawn = images(fig)
    assert len(drawn) == 12
    for layer in (1, 2, 3):
        fractions = mixture(of_scene.basis(layer), of_scene.codes(layer)).fractions
        for k, part in enumerate(fractions):
            np.testing.assert_allclose(drawn[f"layer-{layer}-{k + 1}"], scene.image(part))
    assert {name for names in scene.names for name in names} <= set(words(fig))
    assert {"village", "layer 1", "layer 2", "layer 3"} <= set(words(fig))


def test_arrows_are_the_links_of_ten_percent(of_scene):
    drawn = arrows(plot_hierarchy(of_scene))
    expected = {
        f"link-{layer - 1}-{j + 1}-{layer}-{i + 1}": share
        for layer in (2, 3)
        for (i, j), share in np.ndenumerate(of_scene.links(layer))
        if share >= 0.1
    }
    assert set(drawn) == set(expected)
    widths = {gid: arrow.get_linewidth() for gid, arrow in drawn.items()}
    ratio = [widths[gid] / share for gid, share in expected.items()]
    np.testing.assert_allclose(ratio, ratio[0])


def test_arrows_join_their_components(of_scene):
    fig = plot_hierarchy(of_scene)
    boxes = {image.get_gid(): image.get_extent() for image in fig.axes[0].images}
    for gid, arrow in arrows(fig).items():
        _, layer, j, deeper, i = gid.split("-")
        (x0, y0), (x1, y1) = arrow._posA_posB
        left, right, bottom, _ = boxes[f"layer-{layer}-{j}"]
        assert (x0, y0) == pytest.approx(((left + right) / 2, bottom))
        left, right, _, top = boxes[f"layer-{deeper}-{i}"]
        assert x1 == pytest.approx((left + right) / 2)
        assert top < y1 < top + 0.2


def test_percentages_are_shares(of_scene):
    shown = {word for word in words(plot_hierarchy(of_scene)) if word.endswith("%")}
    shares = {f"{s:.0%}" for layer in (2, 3) for s in of_scene.links(layer).flat if s >= 0.1}
    assert shown
    assert shown <= shares


def test_pictures_show_themselves(faces):
    _, f = faces
    drawn = images(plot_hierarchy(f))
    for k, w in enumerate(f.W[1].T):
        np.testing.assert_allclose(drawn[f"layer-2-{k + 1}"], f.layout.image(w))


def test_tables_show_their_words(topics):
    _, f = topics
    drawn = words(plot_hierarchy(f))
    for top in top_features(f, 2, 4):
        assert all(
            any(name.startswith(w.partition("…")[0]) for w in drawn if w[:1] == name[:1])
            for name, _ in top
        )


def test_tables_without_names_show_curves(bare):
    _, f = bare
    lines = {line.get_gid(): line for line in plot_hierarchy(f).axes[0].lines}
    for k, w in enumerate(f.W[0].T):
        y = lines[f"layer-1-{k + 1}"].get_ydata()
        assert np.corrcoef(y, w)[0, 1] == pytest.approx(1)


def test_no_data_is_nan(holed):
    _, f = holed
    for drawn in images(plot_hierarchy(f)).values():
        np.testing.assert_array_equal(np.isnan(drawn), ~f.layout.valid)


def test_one_layer(scene):
    f = dataclasses.replace(factorize(scene.X, 4, max_iter=2, tol=0), layout=scene.layout)
    fig = plot_hierarchy(f)
    assert len(images(fig)) == 4
    assert not arrows(fig)


def test_many_components_stand_with_their_strongest_link(many):
    fig = plot_hierarchy(many)
    assert len(images(fig)) == 60 + 30 + 12
    drawn = arrows(fig)
    assert len(drawn) == 60 + 30
    for layer in (2, 3):
        for j, i in enumerate(np.argmax(many.links(layer), axis=0)):
            assert f"link-{layer - 1}-{j + 1}-{layer}-{i + 1}" in drawn
    assert "largest share" in words(fig)[-1]


def test_a_component_without_links_is_there(many):
    H = [M.copy() for M in many.H]
    H[1][:, 5] = 0
    fig = plot_hierarchy(dataclasses.replace(many, H=H))
    assert "layer-1-6" in images(fig)
    assert not any(gid.startswith("link-1-6-") for gid in arrows(fig))


@pytest.mark.parametrize("width", [7.2, 3.5])
@pytest.mark.parametrize("which", ["of_scene", "faces", "topics", "bare", "many", "holed"])
def test_nothing_overlaps(request, which, width):
    f = request.getfixturevalue(which)
    fig = plot_hierarchy(f[1] if isinstance(f, tuple) else f, title="A title", width=width)
    assert fig.get_size_inches()[0] <= width + 1e-9
    boxes = [text.get_window_extent() for text in fig.axes[0].texts if text.get_text()]
    frames = [image.get_window_extent() for image in fig.axes[0].images]
    for a, b in combinations(boxes + frames, 2):
        assert min(a.x1, b.x1) - max(a.x0, b.x0) <= 1 or min(a.y1, b.y1) - max(a.y0, b.y0) <= 1
    for box in boxes + frames:
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= fig.bbox.x1
        assert box.y1 <= fig.bbox.y1


@pytest.mark.filterwarnings("ignore:The first rank")
def test_a_family_wider_than_a_line_goes_on_below():
    X = np.random.default_rng(0).random((20, 150))
    f = factorize(X, [60, 1], max_iter=1, tol=0, init="random", random_state=0)
    fig = plot_hierarchy(f, image=(5, 4))
    drawn = [image.get_gid() for image in fig.axes[0].images]
    assert drawn.count("layer-2-1") > 1
    assert sum(gid.startswith("layer-1-") for gid in drawn) == 60
    assert min(image.get_extent()[1] - image.get_extent()[0] for image in fig.axes[0].images) > 0.2
    assert sum(isinstance(p, FancyArrowPatch) for p in fig.axes[0].patches) == 60
    assert "repeated" in words(fig)[-1]


def test_a_given_shape_is_of_samples_or_of_features(bare):
    _, f = bare
    np.testing.assert_allclose(
        images(plot_hierarchy(f, image=(8, 5)))["layer-1-1"],
        mixture(f.basis(1), f.codes(1)).fractions[0].reshape(8, 5),
    )
    np.testing.assert_allclose(
        images(plot_hierarchy(f, image=(4, 3)))["layer-1-1"], f.W[0][:, 0].reshape(4, 3)
    )


def test_percentages_keep_clear_of_each_other():
    def arrow(x0, x1):
        return Arrow(Spot(x0, 1.0), Spot(x1, 0.0), Link((1, 0), (2, 0), 0.5))

    beside = [arrow(0, 0), arrow(0.25, 0.25), arrow(0.5, 0.5)]
    spots = [spot for _, spot in percentages(beside)]
    assert len(spots) == 3
    assert all(abs(a.x - b.x) > 0.28 or abs(a.y - b.y) > 0.1 for a, b in combinations(spots, 2))
    crossing = [arrow(0, 1), arrow(0.3, 0.4)]
    for own, spot in percentages(crossing):
        others = [other for other in crossing if other is not own]
        ends = [Spot(spot.x + dx, spot.y) for dx in (-0.14, 0, 0.14)]  # of the number's own box
        assert all(other.distance(end) > 0.03 for other in others for end in ends)
    assert not percentages([arrow(0, 0), arrow(0.1, 0.1)])
