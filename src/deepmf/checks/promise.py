"""Errors for broken promises of a user's class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepmf.core.parameters import Parametrized


def kind_of(what: str, thing: Any, kind: type) -> None:
    """Refuse what is not an object of the kind that is checked, such as a name or a class."""
    if not isinstance(thing, kind):
        raise TypeError(
            f"{what} must be an object of a subclass of deepmf's {kind.__name__}, got {thing!r}."
        )


def promise(kept: Any, thing: Any, said: str) -> None:
    """Raise an AssertionError that begins with the thing's name, unless the promise is kept."""
    if not kept:
        raise AssertionError(f"{name(thing)}: {said}")


def name(thing: Any) -> str:
    """A function's name, how an object with parameters writes itself, or its class."""
    if isinstance(thing, Parametrized):
        return repr(thing)
    return str(getattr(thing, "__name__", type(thing).__name__))


def close(a: ArrayLike, b: ArrayLike, rtol: float) -> bool:
    """Whether two arrays of one shape differ by at most a fraction of their largest entry."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    largest = max(np.max(np.abs(a), initial=0.0), np.max(np.abs(b), initial=0.0))
    return bool(np.max(np.abs(a - b), initial=0.0) <= rtol * largest)


def untouched(M: NDArray) -> NDArray:
    """A copy that raises when someone writes to it."""
    M = M.copy()
    M.flags.writeable = False
    return M
