import numpy as np
import pytest

from deepmf.datasets import synthetic


def test_the_papers_constants():
    data = synthetic(random_state=0)
    W1, W2 = data.W
    H1, H2 = data.H
    np.testing.assert_array_equal(W1[:, 0], [0.1, 0.4, 0.5])
    np.testing.assert_array_equal(W1[:, 5], [0.5, 0.4, 0.1])
    np.testing.assert_array_equal(2 * W2, [[1, 0, 1], [0, 1, 1], [1, 1, 0]])
    np.testing.assert_allclose(W2 @ H2, W1, atol=1e-16)
    assert data.X.shape == (3, 1000)
    assert H1.shape == (6, 1000)
    assert [len(names) for names in data.names] == [6, 3]


def test_codes_are_dirichlet():
    H1 = synthetic(20_000, random_state=1).H[0]
    np.testing.assert_allclose(H1.sum(axis=0), 1)
    assert H1.min() >= 0
    np.testing.assert_allclose(H1.mean(axis=1), 1 / 6, atol=0.02)
    # variance of a Dirichlet(a, ..., a) entry over k = 6: (k - 1) / (k^2 (k a + 1))
    np.testing.assert_allclose(H1.var(axis=1), 5 / (36 * 1.3), rtol=0.05)
    even = synthetic(20_000, concentration=100, random_state=1).H[0]
    np.testing.assert_allclose(even.var(axis=1), 5 / (36 * 601), rtol=0.05)


@pytest.mark.parametrize("noise", [0, 0.01, 1.0])
def test_noise_has_exactly_the_ratio_asked_for(noise):
    data = synthetic(noise=noise, random_state=0)
    clean = data.W[0] @ data.H[0]
    ratio = np.linalg.norm(data.X - clean) / np.linalg.norm(clean)
    assert ratio == pytest.approx(noise, rel=1e-12, abs=1e-15)


def test_negative_entries_stay_unless_clipped():
    raw = synthetic(noise=1, random_state=0).X
    assert raw.min() < 0
    np.testing.assert_array_equal(
        synthetic(noise=1, random_state=0, clip=True).X, np.where(raw < 0, 0, raw)
    )


def test_points_do_not_depend_on_the_noise_level():
    low, high = (synthetic(noise=noise, random_state=3).H[0] for noise in (0.01, 0.1))
    np.testing.assert_array_equal(low, high)


def test_random_states():
    def draw(state):
        return synthetic(20, random_state=state).X

    np.testing.assert_array_equal(draw(5), draw(5))
    np.testing.assert_array_equal(draw(5), draw(np.random.default_rng(5)))
    np.testing.assert_array_equal(draw(np.random.RandomState(5)), draw(np.random.RandomState(5)))
    legacy = np.random.RandomState(5)
    assert not np.array_equal(draw(legacy), draw(legacy))
    assert not np.array_equal(draw(5), draw(6))
    assert not np.array_equal(draw(None), draw(None))


def test_the_constants_are_not_shared():
    synthetic(5, random_state=0).W[0][:] = 7
    assert synthetic(5, random_state=0).W[0].max() == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_points": 0}, "n_points=0"),
        ({"noise": -0.1}, "noise=-0.1"),
        ({"noise": np.nan}, "noise=nan"),
        ({"concentration": 0}, "concentration=0"),
        ({"random_state": "seed"}, "random_state='seed'"),
        ({"random_state": -1}, "random_state=-1"),
    ],
)
def test_refusals_name_the_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        synthetic(**arguments)
