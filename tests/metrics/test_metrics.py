import numpy as np
import pytest
from scipy import sparse

from deepmf.metrics import arrays, data_errors, hoyer, layer_errors, links, match, mrsa, sad


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# --- angles --------------------------------------------------------------------------------------


def test_sad_of_known_angles():
    assert sad([1, 0], [3, 0]) == 0
    assert sad([1, 0], [1, 1]) == pytest.approx(np.pi / 4, abs=1e-15)
    assert sad([1, 0], [0, 2]) == pytest.approx(np.pi / 2, abs=1e-15)
    assert sad([1, 0], [-5, 0]) == pytest.approx(np.pi, abs=1e-15)


def test_mrsa_is_the_papers_formula(rng):
    a, b = rng.random(50), rng.random(50)
    u, v = a - a.mean(), b - b.mean()
    expected = 100 / np.pi * np.arccos(u @ v / np.sqrt((u @ u) * (v @ v)))
    assert mrsa(a, b) == pytest.approx(expected, rel=1e-12)
    assert isinstance(mrsa(a, b), float)


def test_mrsa_ignores_scale_and_offset_and_reaches_100(rng):
    a = rng.random(30)
    assert mrsa(a, a) == 0
    assert mrsa(a, 3 * a + 7) < 1e-12
    assert mrsa(a, -a) == pytest.approx(100, abs=1e-12)


def test_small_angles_keep_their_digits():
    assert sad([1.0, 0.0], [1.0, 1e-9]) == pytest.approx(1e-9, rel=1e-12)


def test_matrices_give_all_pairs(rng):
    A, B = rng.random((20, 3)), rng.random((20, 4))
    for distance in (mrsa, sad):
        pairs = distance(A, B)
        assert pairs.shape == (3, 4)
        expected = [[distance(a, b) for b in B.T] for a in A.T]
        np.testing.assert_allclose(pairs, expected, rtol=1e-13)


def test_constant_column_is_at_a_right_angle_in_mrsa():
    constant = np.full(7, 0.1)  # 0.1 is not exact in binary: its mean differs by rounding
    assert mrsa(constant, np.arange(7)) == pytest.approx(50, abs=1e-13)
    assert mrsa(constant * (1 + 1e-16), np.zeros(7)) == 0
    assert mrsa(np.full(7, 0.1) + 1e-17 * np.arange(7), np.arange(7)) == pytest.approx(50)


def test_a_nearly_constant_column_still_has_its_shape():
    assert mrsa(1 + 1e-6 * np.arange(5), np.arange(5)) < 1e-6


def test_zero_column_is_at_a_right_angle_in_sad():
    assert sad(np.zeros(3), np.arange(3)) == pytest.approx(np.pi / 2, abs=1e-15)
    assert sad(np.zeros(3), np.zeros(3)) == 0


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_extreme_values_neither_overflow_nor_vanish(scale):
    assert sad([scale, 0], [1, 1]) == pytest.approx(np.pi / 4, abs=1e-15)


def test_float32_is_computed_in_double(rng):
    a, b = rng.random((2, 40)).astype(np.float32)
    assert mrsa(a, b) == pytest.approx(mrsa(a.astype(float), b.astype(float)), rel=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.ones(3), np.ones(4), "length 3 and b has length 4"),
        (np.ones((3, 2)), np.ones((4, 2)), "length 3 and b has length 4"),
        (np.ones(3), np.ones((3, 1)), "both must be vectors or both matrices"),
        (np.ones(0), np.ones(0), "at least 1"),
        (sparse.eye(3), sparse.eye(3), "toarray"),
    ],
)
def test_angles_refuse_shapes_that_do_not_compare(a, b, message):
    with pytest.raises(ValueError, match=message):
        mrsa(a, b)


# --- matching ------------------------------------------------------------------------------------


def test_match_undoes_a_permutation(rng):
    truth = rng.random((12, 5))
    order = np.array([3, 0, 4, 1, 2])
    estimate = np.empty_like(truth)
    estimate[:, order] = 2 * truth  # the estimate of truth column i is column order[i]
    found = match(truth, estimate)
    np.testing.assert_array_equal(found.order, order)
    assert found.mean < 1e-12
    noisy = match(truth, estimate + 0.1 * rng.random((12, 5)))
    np.testing.assert_array_equal(noisy.order, order)
    assert noisy.mean == pytest.approx(noisy.distances.mean())
    assert noisy.distances.min() > 0.1


def test_match_is_optimal_where_greedy_is_not():
    # greedy takes (0, 0) at 1 and is left with (1, 1) at 10: 11 instead of 2 + 2
    costs = np.array([[1.0, 2.0], [2.0, 10.0]])
    found = match(np.eye(2), np.eye(2), distance=lambda a, b: costs)
    np.testing.assert_array_equal(found.order, [1, 0])
    np.testing.assert_array_equal(found.distances, [2, 2])
    assert found.mean == 2


def test_match_leaves_extra_estimates_unpaired(rng):
    truth = rng.random((12, 2))
    estimate = np.column_stack([rng.random(12), truth[:, 1], rng.random(12), truth[:, 0]])
    found = match(truth, estimate, distance=sad)
    np.testing.assert_array_equal(found.order, [3, 1])


@pytest.mark.parametrize(
    ("truth", "estimate", "message"),
    [
        (np.eye(3), np.eye(3)[:, :2], "estimate has 2 columns for 3 true ones"),
        (np.eye(3), np.eye(4), r"truth has shape \(3, 3\) and estimate has shape \(4, 4\)"),
        (np.eye(3)[:, :0], np.eye(3), "3 columns for 0 true ones"),
        (np.ones(3), np.ones(3), "matrices"),
        (np.eye(3), np.full((3, 3), np.nan), "not finite"),
    ],
)
def test_match_refuses(truth, estimate, message):
    with pytest.raises(ValueError, match=message):
        match(truth, estimate)


# --- sparsity and links --------------------------------------------------------------------------


def test_hoyer_of_known_columns():
    M = np.array([[1, 1, 0, 3], [1, 0, 0, -4], [1, 0, 0, 0], [-1, 0, 0, 0]], float)
    # sqrt(4) = 2; the last column has ||.||_1 / ||.||_2 = 7/5
    np.testing.assert_allclose(hoyer(M), [0, 1, 1, 0.6], atol=1e-15)


def test_hoyer_of_a_vector_of_one_row_and_of_tiny_numbers():
    assert hoyer([3.0, 4.0, 0.0, 0.0]) == pytest.approx(0.6)
    np.testing.assert_array_equal(hoyer([[2.0, 0.0, -1.0]]), [1, 1, 1])
    assert hoyer([3e-200, 4e-200, 0.0, 0.0]) == pytest.approx(0.6)


@pytest.mark.parametrize("M", [np.ones((0, 3)), np.ones((2, 2, 2)), 3.0])
def test_hoyer_refuses_what_has_no_columns(M):
    with pytest.raises(ValueError, match="at least one row"):
        hoyer(M)


def test_links_are_shares():
    H = np.array([[1.0, 0.0, -2.0], [3.0, 0.0, 2.0]])
    np.testing.assert_array_equal(links(H), [[0.25, 0, 0.5], [0.75, 0, 0.5]])
    with pytest.raises(ValueError, match="matrix"):
        links([1.0, 2.0])


# --- errors --------------------------------------------------------------------------------------


@pytest.fixture
def factors(rng):
    W = [rng.random((8, 5)), rng.random((8, 3)), rng.random((8, 2))]
    H = [rng.random((5, 30)), rng.random((3, 5)), rng.random((2, 3))]
    return rng.random((8, 30)), W, H


@pytest.mark.parametrize("block", [2**22, 7 * 8])
def test_layer_errors_are_section_8(factors, block, monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK", block)
    X, W, H = factors
    expected = [
        ((X - W[0] @ H[0]) ** 2).sum() / (X**2).sum(),
        ((W[0] - W[1] @ H[1]) ** 2).sum() / (W[0] ** 2).sum(),
        ((W[1] - W[2] @ H[2]) ** 2).sum() / (W[1] ** 2).sum(),
    ]
    np.testing.assert_allclose(layer_errors(X, W, H), expected, rtol=1e-13)


@pytest.mark.parametrize("block", [2**22, 7 * 8])
def test_data_errors_are_section_8(factors, block, monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK", block)
    X, W, H = factors
    approximations = [W[0] @ H[0], W[1] @ H[1] @ H[0], W[2] @ H[2] @ H[1] @ H[0]]
    expected = [((X - Y) ** 2).sum() / (X**2).sum() for Y in approximations]
    np.testing.assert_allclose(data_errors(X, W, H), expected, rtol=1e-13)


def test_reference_norms_replace_those_of_the_current_bases(factors):
    X, W, H = factors
    own = layer_errors(X, W, H)
    norms = [np.linalg.norm(W[0]), 2 * np.linalg.norm(W[1])]
    np.testing.assert_allclose(layer_errors(X, W, H, norms), own / [1, 1, 4], rtol=1e-13)
    with pytest.raises(ValueError, match="reference has 3 norms for 3 layers"):
        layer_errors(X, W, H, [1, 1, 1])


def test_tiny_errors_are_not_lost(rng):
    W, H = rng.random((6, 2)), rng.random((2, 40))
    N = rng.standard_normal((6, 40))
    X = W @ H + 1e-9 * N
    expected = 1e-18 * (N**2).sum() / (X**2).sum()
    np.testing.assert_allclose(data_errors(X, [W], [H]), [expected], rtol=1e-5)


def test_zero_denominators():
    zero = np.zeros((2, 3))
    one = ([np.ones((2, 1))], [np.ones((1, 3))])
    assert layer_errors(zero, *one) == np.inf
    assert data_errors(zero, [np.zeros((2, 1))], [np.ones((1, 3))]) == 0


@pytest.mark.parametrize("errors", [layer_errors, data_errors])
def test_errors_name_the_layer_that_does_not_chain(factors, errors):
    X, W, H = factors
    with pytest.raises(ValueError, match=r"W\[1\].*shape \(8, 5\) of W\[0\]"):
        errors(X, W, [H[0], H[1].T, H[2]])
    with pytest.raises(ValueError, match=r"W\[0\].*shape \(30, 8\) of X"):
        errors(X.T, W, H)
    with pytest.raises(ValueError, match="W has 3 factors and H has 2"):
        errors(X, W, H[:2])
    with pytest.raises(ValueError, match="one matrix per layer"):
        errors(X, [], [])
