"""Compiled kernels, imported on first use."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from deepmf._utils.warnings import warn


@cache
def load_kernels() -> ModuleType | None:
    """`kernels.descent`, or None for NumPy in its place: with a warning, unless JIT is disabled."""
    try:
        from numba import config

        if config.DISABLE_JIT:
            return None
        from deepmf.kernels import descent
    except Exception as error:  # a Numba that is missing, cannot write its cache, or has changed
        warn(
            f"The compiled kernels cannot be loaded ({type(error).__name__}: {error}). Fits run in "
            f"NumPy instead, to the same results but several times slower. If Numba cannot write "
            f"its cache, set NUMBA_CACHE_DIR to a folder that can be written to."
        )
        return None
    return descent
