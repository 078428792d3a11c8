"""Imports of optional libraries."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, extra: str, purpose: str) -> Any:
    """Import an optional library, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).split(".")[0]
        raise ImportError(
            f"{purpose} needs {missing}, which is not installed: pip install 'deepmf[{extra}]'.",
            name=missing,
        ) from None
