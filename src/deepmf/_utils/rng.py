"""One way from whatever a user calls a random state to a NumPy generator."""

from __future__ import annotations

import numpy as np

from deepmf._utils.messages import SettingError, setting

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
        raise SettingError(
            f"{setting(random_state=random_state)} is not a seed; give None, a non-negative "
            f"integer, a numpy Generator or a numpy RandomState."
        ) from error
