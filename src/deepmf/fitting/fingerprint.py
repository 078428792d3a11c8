"""The identity of a fit: its data and the settings that decide where its sweeps lead."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from deepmf._utils.digests import digest, qualified_name
from deepmf._utils.warnings import warn
from deepmf.data.panels import Panels
from deepmf.fitting.add_layer import Given
from deepmf.fitting.problem import Problem
from deepmf.init import Start


def fingerprint(
    panels: Panels,
    problem: Problem,
    starts: Sequence[Start | Given],
    random_state: Any,
    **settings: Any,
) -> dict[str, Any]:
    """Plain data by name, equal for two fits only if one can resume where the other stopped.

    X and its weights are read once, to the last bit of every column. Settings that only say when
    to stop are left out.
    """
    weights = panels.weight_hashes()
    other: list[Any] = []
    plain = {name: _plain(value, other) for name, value in {**problem.spec(), **settings}.items()}
    return {
        "X's shape": list(panels.shape),
        "X's type": str(panels.dtype),
        "X's weights": None if weights is None else "given",
        "X's squared norm": f"{panels.norm2:.10g}",
        "X's digest": digest(panels.column_hashes()),
        "weights' digest": None if weights is None else digest(weights),
        **plain,
        "settings' digest": _identity("A setting", other) if other else None,
        "init": [_name(start) for start in starts],
        "init's digest": [_start_digest(start) for start in starts],
        "random_state": int(random_state) if isinstance(random_state, Integral) else None,
    }


def _name(start: Start | Given) -> str:
    if isinstance(start, Given):
        return f"given {digest(start.W, start.H)}"
    return qualified_name(start)


def _start_digest(start: Start | Given) -> str | None:
    """The code and the state of a user's own start; None for those that their name identifies."""
    if isinstance(start, Given) or qualified_name(start).split(".")[0] == "deepmf":
        return None
    return _identity("init", start)


def _identity(what: str, value: Any) -> str:
    unknown: set[str] = set()
    found = digest(value, unknown=unknown)
    if unknown:
        warn(
            f"{what} holds a {' and a '.join(sorted(unknown))}, which cannot be compared with "
            f"that of a checkpoint: the fit resumes even if it has changed. Delete the checkpoint "
            f"when you change it."
        )
    return found


def _plain(value: Any, other: list[Any]) -> Any:
    """A setting as JSON data; what JSON cannot hold is named, and added to ``other``."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): _plain(part, other) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, other) for part in value]
    if isinstance(value, str | int | float | None):
        return value
    other.append(value)
    return qualified_name(value)
