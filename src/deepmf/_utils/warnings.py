"""Warnings that point at the user's own line."""

from __future__ import annotations

import sys
import warnings

_PASSED_OVER = ("deepmf", "sklearn", "joblib", "contextlib")
"""Packages whose lines say nothing to a user: ours, and what stands between two of ours."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """`warnings.warn`, at the innermost line that is not of this library or of one around it."""
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER and frame.f_back:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
