"""Warnings that point at the user's own line."""

from __future__ import annotations

import sys
import warnings

from deepmf._utils.messages import Message

_PASSED_OVER = ("deepmf", "sklearn", "joblib", "contextlib")
"""Packages skipped when choosing the warning's stack level."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the innermost line outside this library and those around it.

    The message may name settings, see `Message`.
    """
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER and frame.f_back:
        level, frame = level + 1, frame.f_back
    warnings.warn(Message(message), category, stacklevel=level)
