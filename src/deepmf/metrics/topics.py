"""Coherence and diversity of topics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from deepmf.metrics.arrays import Array, real


class Coherence(NamedTuple):
    """Coherence of topics.

    Attributes
    ----------
    topics : ndarray, shape (r,)
        Coherence of each topic.
    mean : float
        Their mean.
    """

    topics: Array
    mean: float


def npmi_coherence(components: ArrayLike, counts: Any, top: int = 10) -> Coherence:
    """Normalized pointwise mutual information of the top words of each topic, in [-1, 1].

    ``npmi(v, w) = log(p(v, w) / (p(v) p(w))) / -log p(v, w)``, where p is the share of documents
    that contain a word, or both. A topic's coherence is the mean over all pairs of its top words:
    1 for words that always occur together, 0 for independent ones, -1 for words that never do.
    Words that occur in all documents count as occurring always together.

    Parameters
    ----------
    components : array_like, m x r
        Words x topics.
    counts : array or SciPy sparse matrix, m x n
        Words x documents. A document contains a word where its entry is positive, so that counts
        and tf-idf give the same result.
    top : int, default 10
        Number of largest entries of a topic that are its top words, from 2 to m.

    Returns
    -------
    Coherence
    """
    words, m = _top_words(components, top, 2), len(np.asarray(components))
    if counts.shape[0] != m:
        raise ValueError(
            f"counts have shape {counts.shape}, but the components have {m} words: give a matrix "
            "of words x documents."
        )
    used, place = np.unique(words, return_inverse=True)
    rows = counts.tocsr()[used] if sparse.issparse(counts) else np.asarray(counts)[used]
    holds: Any = sparse.csr_array(rows > 0, dtype=np.float64)
    together = (holds @ holds.T).toarray() / counts.shape[1]
    npmi = _npmi(together)
    pairs = np.triu_indices(top, 1)
    values = [npmi[np.ix_(own, own)][pairs].mean() for own in place.reshape(words.shape).T]
    return Coherence(np.array(values), float(np.mean(values)))


def topic_diversity(components: ArrayLike, top: int = 25) -> float:
    """Share of different words among the top words of all topics, in (0, 1].

    1 where no two topics share a top word, 1/r where all r topics have the same.

    Parameters
    ----------
    components : array_like, m x r
        Words x topics.
    top : int, default 25
        Number of largest entries of a topic that are its top words, from 1 to m.
    """
    words = _top_words(components, top, 1)
    return len(np.unique(words)) / words.size


def _top_words(components: ArrayLike, top: int, least: int) -> NDArray[np.intp]:
    """Rows of the largest entries of each column, top x r; the first of equal ones."""
    W = real(components, "components")
    if W.ndim != 2 or W.shape[1] == 0 or not np.isfinite(W).all():
        raise ValueError(
            f"components have shape {W.shape}, but they must be a matrix of words x topics with "
            "finite entries."
        )
    if not least <= top <= len(W):
        raise ValueError(
            f"top is {top}, but it must be from {least} to the number of words, {len(W)}."
        )
    return np.argsort(-W, axis=0, kind="stable")[:top]


def _npmi(together: Array) -> Array:
    """NPMI of pairs of words from shares of documents with both; with one, on the diagonal."""
    alone = np.diag(together)
    out = np.full(together.shape, -1.0)
    some = (together > 0) & (together < 1)
    p = together[some]
    out[some] = np.log(p / np.outer(alone, alone)[some]) / -np.log(p)
    out[together == 1] = 1
    return out
