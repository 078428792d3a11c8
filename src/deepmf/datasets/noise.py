"""The paper's noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def gaussian_noise(
    X: NDArray[np.float64], noise: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """``N = noise * ||X||_F * Y / ||Y||_F`` with the entries of Y standard normal.

    So ``||N||_F / ||X||_F`` is exactly ``noise``, which is ``-20 log10(noise)`` dB.
    """
    if not 0 <= noise < np.inf:
        raise ValueError(
            f"noise={noise!r} is not a noise level; give the finite ratio ||N|| / ||X|| >= 0, "
            "such as 0.01."
        )
    Y = rng.standard_normal(X.shape)
    return Y * (noise * np.linalg.norm(X) / np.linalg.norm(Y))
