"""The interface of starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deepmf._utils.messages import SettingError
from deepmf.core.quadratic import Array
from deepmf.data.panels.base import Panels

Start = Callable[[Panels, int, np.random.Generator], Array]
"""A function ``start(panels, rank, rng) -> W``: one layer's first basis, m x rank, in float64.

The codes that go with it, rescaling and projection onto the constraint follow for all starts
alike. Layer l starts from ``W_{l-1}`` as its data.
"""


class StartError(SettingError):
    """A start cannot give what was asked for."""
