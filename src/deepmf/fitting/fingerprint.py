"""What tells one fit from another: its data and its settings."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from deepmf.data.panels import Panels
from deepmf.fitting.add_layer import Given
from deepmf.fitting.problem import Problem
from deepmf.init import Start

_SAMPLES = 16
"""Columns of X that are looked at."""


def fingerprint(
    panels: Panels,
    problem: Problem,
    starts: Sequence[Start | Given],
    random_state: Any,
    **settings: Any,
) -> dict[str, Any]:
    """Plain data by name, the same for two fits only if one can go on where the other stopped.

    Of X the shape, the type, ``||X||^2`` to ten digits and the bits of some columns; of the
    settings all that decide where a sweep leads, not those that say when to stop.
    """
    n = panels.shape[1]
    some = np.unique(np.linspace(0, n - 1, min(n, _SAMPLES)).astype(np.intp))
    columns = np.ascontiguousarray(panels.columns(some), dtype=np.float64)
    return {
        "X's shape": list(panels.shape),
        "X's type": str(panels.dtype),
        "X's weights": None if panels.complete else "given",
        "X's squared norm": f"{panels.norm2:.10g}",
        "X's columns": _digest(columns),
        **{name: _plain(value) for name, value in {**problem.spec(), **settings}.items()},
        "init": [_start(start) for start in starts],
        "random_state": int(random_state) if isinstance(random_state, Integral) else None,
    }


def _start(start: Start | Given) -> str:
    if isinstance(start, Given):
        return "given " + _digest(*start.W, *start.H)
    return _name(start)


def _name(thing: Any) -> str:
    """Of a function or a class's instance, where it is from: the same in another process."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def _plain(value: Any) -> Any:
    """For JSON, which does not know what a user's own class may hold."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, str | int | float | None) else _name(value)


def _digest(*arrays: Any) -> str:
    seen = hashlib.sha256()
    for M in arrays:
        seen.update(np.ascontiguousarray(M).tobytes())
    return seen.hexdigest()[:16]
