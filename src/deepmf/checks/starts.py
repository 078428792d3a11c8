"""A start gives a basis of the right shape, the same for the same seed and data."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from deepmf.checks.promise import close, promise
from deepmf.data.panels import as_panels
from deepmf.fitting.registry import resolve_start
from deepmf.init import Start


def check_start(
    start: Start | str, shape: tuple[int, int] = (12, 40), random_state: int = 0
) -> None:
    """Check a start on random mixtures of columns.

    It gives one column per component, finite and not all zero; the same ones for the same seed,
    for any size of panels, and for the same data in a sparse matrix.

    Parameters
    ----------
    start : callable or str
        ``start(panels, rank, rng) -> W``, or the name of one of deepmf's own.
    shape : (int, int)
        Of the data.
    random_state : int
        Seed of the data and of the start.

    Raises
    ------
    AssertionError
        The first promise that is broken.

    Examples
    --------
    >>> from deepmf.checks import check_start
    >>> from deepmf.init import snpa
    >>> check_start(snpa)
    """
    start = resolve_start(start)
    rng = np.random.default_rng(random_state)
    m, n = shape
    X = rng.random((m, 5)) @ rng.dirichlet(np.full(5, 0.3), n).T + 0.01 * rng.random(shape)
    X[rng.random(shape) < 0.2] = 0
    for rank in (1, 3, 5):
        W = start(as_panels(X), rank, np.random.default_rng(random_state))
        promise(W.shape == (m, rank), start, f"for rank {rank} of {m} rows it gives {W.shape}.")
        promise(np.isfinite(W).all(), start, "an entry is NaN or infinite.")
        promise(np.abs(W).max(axis=0).all(), start, "a component is all zero.")
        for data, what in (
            (as_panels(X), "the same seed"),
            (as_panels(X, 7), "panels of 7 columns"),
            (as_panels(sparse.csc_array(X)), "the same data in a sparse matrix"),
        ):
            other = start(data, rank, np.random.default_rng(random_state))
            promise(close(other, W, 1e-6), start, f"{what} gives another basis.")
