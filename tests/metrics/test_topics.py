"""Coherence and diversity against loops over documents."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from deepmf.metrics import npmi_coherence, topic_diversity


def brute_npmi(counts, v, w):
    has_v, has_w = counts[v] > 0, counts[w] > 0
    p_v, p_w, p = np.mean(has_v), np.mean(has_w), np.mean(has_v & has_w)
    if p == 0:
        return -1.0
    return 1.0 if p == 1 else np.log(p / (p_v * p_w)) / -np.log(p)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array, sparse.csr_matrix])
def test_coherence_is_a_mean_over_pairs(kind):
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.5, (30, 25))
    counts[4] = 0
    counts[5:7] = 1  # two words in all documents, one in none
    W = rng.random((30, 3))
    W[4:7, 0] = 2
    expected = [
        np.mean([brute_npmi(counts, v, w) for v, w in combinations(np.argsort(-column)[:6], 2)])
        for column in W.T
    ]
    found = npmi_coherence(W, kind(counts), top=6)
    np.testing.assert_allclose(found.topics, expected, rtol=1e-12)
    assert found.mean == pytest.approx(np.mean(expected))
    weights = rng.uniform(0.1, 3, (30, 1))  # tf-idf has the same zeros
    np.testing.assert_array_equal(npmi_coherence(W, kind(counts * weights), 6).topics, found.topics)


def test_coherence_at_its_ends():
    """Words that always, never or independently occur together."""
    counts = np.array([[1, 1, 0, 0], [2, 3, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])
    pairs = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(npmi_coherence(pairs, counts, 2).topics, [1, -1, 0], atol=1e-15)


def test_diversity():
    W = np.array([[3, 3, 0], [2, 2, 0], [1, 0, 1], [0, 1, 2]])
    assert topic_diversity(W, 2) == pytest.approx(4 / 6)
    assert topic_diversity(W[:, [0, 0, 0]], 2) == pytest.approx(1 / 3)
    assert topic_diversity(W, 1) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("shape", "top", "message"),
    [
        ((4, 5), 1, "top is 1, but it must be from 2 to the number of words, 4"),
        ((4, 5), 5, "top is 5"),
        ((5, 4), 2, r"counts have shape \(5, 4\), but the components have 4 words"),
    ],
)
def test_what_does_not_fit_is_refused(shape, top, message):
    with pytest.raises(ValueError, match=message):
        npmi_coherence(np.ones((4, 2)), np.ones(shape), top)
    with pytest.raises(ValueError, match="words x topics"):
        topic_diversity(np.ones(4), 2)
