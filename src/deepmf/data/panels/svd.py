"""Leading singular vectors of an X that is known through its products alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from deepmf.core.quadratic import Array

_LARGEST_GRAM = 1500
"""Up to this many rows, singular vectors come from the m x m Gram matrix; above, from Lanczos."""


def leading(
    m: int, k: int, gram: Callable[[], Array], gram_times: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """The k leading left singular vectors and values of X, from X X' or from X X' v."""
    if m <= max(_LARGEST_GRAM, k + 1):
        values, U = np.linalg.eigh(gram())
    else:
        XXt = LinearOperator((m, m), matvec=lambda v: gram_times(v.reshape(-1)), dtype=float)
        # positive, as the first vector mostly is, and orthogonal to no one's columns
        values, U = eigsh(XXt, k=k, v0=1 + np.random.default_rng(0).random(m))
    top = np.argsort(values)[::-1][:k]
    return U[:, top], np.sqrt(np.maximum(values[top], 0))
