"""One way from whatever a user calls a random state to a numpy Generator, and the paper's noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RandomState", "gaussian_noise", "generator"]

RandomState = None | int | np.random.Generator | np.random.RandomState


def generator(random_state: RandomState) -> np.random.Generator:
    """A Generator from None (fresh), a seed, a Generator (itself) or a RandomState.

    A RandomState is asked for one number, which seeds the Generator: it advances, so two calls with
    the same object differ, and two objects in the same state agree.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state={random_state!r} is not a seed; give None, a non-negative integer, a "
            "numpy Generator or a numpy RandomState."
        ) from error


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
