import numpy as np
import pytest

from deepmf.data.layout import Layout
from deepmf.datasets import Dataset, simulated_scene
from deepmf.datasets.spectra import MATERIALS, material_spectra
from deepmf.metrics import data_errors, layer_errors, links, mrsa

SEEDS = range(4)


@pytest.fixture(scope="module")
def scene():
    return simulated_scene(48, 40, 60)


def test_shapes_and_names(scene):
    assert scene.X.shape == (60, 48 * 40)
    assert [W.shape for W in scene.W] == [(60, 6), (60, 4), (60, 2)]
    assert [H.shape for H in scene.H] == [(6, 48 * 40), (4, 6), (2, 4)]
    assert scene.names[0] == list(MATERIALS)
    assert scene.names[1:] == [["forest", "grass", "soil", "built"], ["vegetation", "mineral"]]
    assert scene.wavelengths[[0, -1]].tolist() == [400, 2500]


def test_data_are_the_first_layer_plus_the_noise_asked_for(scene):
    clean = scene.W[0] @ scene.H[0]
    assert scene.X.min() >= 0
    # a few negative entries were clipped, which removes a little of the noise
    ratio = np.linalg.norm(scene.X - clean) / np.linalg.norm(clean)
    assert 0.0095 < ratio <= 0.01 + 1e-12
    silent = simulated_scene(48, 40, 60, noise=0)
    np.testing.assert_allclose(silent.X, silent.W[0] @ silent.H[0], atol=1e-15)
    loud = simulated_scene(48, 40, 60, noise=0.5)
    assert loud.X.min() == 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [32, 64])
def test_every_material_has_pure_pixels_and_few_pixels_mix_many(size, seed):
    A = links(simulated_scene(size, size, 10, random_state=seed).H[0])
    np.testing.assert_allclose(A.sum(axis=0), 1)
    assert ((A > 0.95).sum(axis=1) >= 8).all()
    two_largest = np.sort(A, axis=0)[-2:].sum(axis=0)
    assert (two_largest > 0.9).mean() > 0.75
    assert (A.max(axis=0) < 0.9).mean() > 0.1  # and mixed pixels there are


@pytest.mark.parametrize("seed", SEEDS)
def test_brightness_varies_within_bounds(seed):
    brightness = simulated_scene(32, 32, 10, random_state=seed).H[0].sum(axis=0)
    assert 0.63 < brightness.min() < 0.9
    assert 1.1 < brightness.max() < 1.58


def test_abundances_are_spatially_smooth(scene):
    for row in links(scene.H[0]):
        picture = scene.image(row)
        neighbours = np.corrcoef(picture[:, :-1].ravel(), picture[:, 1:].ravel())[0, 1]
        assert neighbours > 0.6  # independent pixels, or pixels read in the wrong order, give ~0


def test_groups_are_closer_within_than_between():
    S = material_spectra(np.linspace(400, 2500, 120))
    d = dict(zip(MATERIALS, mrsa(S, S)))
    at = {name: i for i, name in enumerate(MATERIALS)}
    built = d["asphalt"][at["roof"]]
    forest = d["conifer"][at["broadleaf"]]
    vegetation = [d[k][at["grass"]] for k in ("conifer", "broadleaf")]
    mineral = [d[k][at["soil"]] for k in ("asphalt", "roof")]
    across = [d[a][at[b]] for a in MATERIALS[:3] for b in MATERIALS[3:]]
    assert 4 < forest < 0.6 * min(vegetation)
    assert 4 < built < 0.6 * min(mineral)
    assert max(vegetation + mineral) < min(across)


def test_spectra_have_the_features_they_are_known_by():
    w = np.arange(400.0, 2501.0)
    S = dict(zip(MATERIALS, material_spectra(w).T))

    def at(name, nm):
        return S[name][int(nm) - 400]

    for leaf in MATERIALS[:3]:
        assert at(leaf, 553) > 1.2 * at(leaf, 490)  # green peak
        assert at(leaf, 553) > 1.2 * at(leaf, 670)  # chlorophyll's dip
        assert at(leaf, 800) > 4 * at(leaf, 670)  # red edge
        for water in (970, 1190, 1450, 1940):
            assert at(leaf, water) < min(at(leaf, water - 110), at(leaf, water + 100))
    for rock, centre in (("soil", 2205), ("asphalt", 2310), ("roof", 2340)):
        assert at(rock, centre) < min(at(rock, centre - 90), at(rock, centre + 90))
    assert S["asphalt"].max() < 0.2
    assert all(s.min() > 0.01 and s.max() < 0.6 for s in S.values())


def test_upper_layers_are_mean_spectra_and_best_brightness(scene):
    weights = links(scene.H[0]).sum(axis=1)
    W1, W2, W3 = scene.W
    forest = (weights[0] * W1[:, 0] + weights[1] * W1[:, 1]) / (weights[0] + weights[1])
    np.testing.assert_allclose(W2[:, 0], forest)
    np.testing.assert_allclose(W2[:, 1], W1[:, 2])
    np.testing.assert_allclose(W3[:, 0], W1[:, :3] @ weights[:3] / weights[:3].sum())
    np.testing.assert_array_equal(scene.H[1] > 0, np.eye(4)[:, [0, 0, 1, 2, 3, 3]] > 0)
    np.testing.assert_array_equal(scene.H[2] > 0, [[1, 1, 0, 0], [0, 0, 1, 1]])
    for upper, lower, H in ((W2, W1, scene.H[1]), (W3, W2, scene.H[2])):
        # least squares along each group's spectrum: the residual is orthogonal to it
        residual = lower - upper @ H
        inner = np.abs(upper.T @ residual)[H > 0]
        assert inner.max() < 1e-12


def test_layers_lose_more_the_higher_they_are(scene):
    for errors in (layer_errors, data_errors):
        first, second, third = errors(scene.X, scene.W, scene.H)
        assert first == pytest.approx(1e-4, rel=0.05)
        assert 5 * first < second < third / 5
        assert third < 0.03


def test_random_state():
    def draw(state):
        return simulated_scene(32, 32, 10, random_state=state).X

    np.testing.assert_array_equal(draw(0), draw(np.random.default_rng(0)))
    assert not np.array_equal(draw(0), draw(1))
    np.testing.assert_array_equal(draw(0), simulated_scene(32, 32, 10).X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 31}, "31 x 64"),
        ({"cols": 10}, "64 x 10"),
        ({"bands": 7}, "bands=7"),
        ({"noise": -1}, "noise=-1"),
    ],
)
def test_refusals_name_the_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulated_scene(**arguments)


# --- the bundle itself ---------------------------------------------------------------------------


def test_image_follows_the_order():
    X = np.zeros((2, 6))
    by_row = Dataset("d", X, Layout(image_shape=(2, 3), order="C"))
    by_column = Dataset("d", X, Layout(image_shape=(2, 3), order="F"))
    np.testing.assert_array_equal(by_row.image(np.arange(6)), [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(by_column.image(np.arange(6)), [[0, 2, 4], [1, 3, 5]])


def test_image_refuses_other_lengths_and_data_without_pictures():
    data = Dataset("faces", np.zeros((6, 9)), Layout(image_shape=(2, 3), pixels="rows"))
    with pytest.raises(ValueError, match=r"shape \(9,\).*6 values, one for each of the rows"):
        data.image(np.zeros(9))
    with pytest.raises(ValueError, match="no image_shape"):
        Dataset("points", np.zeros((3, 4))).image(np.zeros(4))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"W": [np.ones((3, 2))]}, "1 bases come with 0 lists of names"),
        ({"H": [np.ones((2, 4))]}, "and 1 factors"),
        ({"W": [np.ones((5, 2))], "names": [["a", "b"]]}, r"W\[0\] has shape \(5, 2\)"),
        ({"W": [np.ones((3, 2))], "names": [["a"]]}, r"it must be \(3, 1\)"),
        (
            {"W": [np.ones((3, 2))], "names": [["a", "b"]], "H": [np.ones((2, 5))]},
            r"H\[0\] has shape \(2, 5\).*\(2, 4\)",
        ),
        (
            {"W": [np.ones((3, 2))], "names": [["a", "b"]], "A": [np.ones((2, 5))]},
            r"A\[0\] has shape \(2, 5\).*\(2, 4\)",
        ),
        ({"W": [np.ones((3, 1))], "names": [["a"]], "A": [None] * 2}, "with 2 abundances"),
        ({"layout": Layout(image_shape=(3, 3))}, "does not hold the 4 columns"),
        ({"layout": Layout(image_shape=(2, 2), pixels="rows")}, "does not hold the 3 rows"),
        ({"layout": Layout(wavelengths=np.ones(4))}, "X has 3 bands"),
    ],
)
def test_bundle_refuses_parts_that_do_not_fit(parts, message):
    with pytest.raises(ValueError, match=message):
        Dataset("d", np.zeros((3, 4)), **parts)
