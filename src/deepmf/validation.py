"""Bad input gets a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from deepmf.quadratic import Array

_SAFE = {np.dtype(np.float64): (1e-100, 1e100), np.dtype(np.float32): (1e-12, 1e12)}
"""Sizes of the largest entry between which no product of squares leaves the type's range."""


def check_matrix(X: Any, name: str = "X") -> Array:
    """X as a finite 2-D float32 or float64 array; copied only if it must be converted."""
    if sparse.issparse(X):
        raise TypeError(
            f"{name} is sparse; this version needs a dense array: pass {name}.toarray()."
        )
    if np.ma.is_masked(X):
        raise ValueError(
            f"{name} has masked entries; fill them first, for example {name}.filled(0)."
        )
    try:
        A = np.asarray(X)
    except ValueError:
        raise ValueError(f"{name} is not a matrix: its rows differ in length.") from None
    if np.iscomplexobj(A):
        raise TypeError(f"{name} is complex ({A.dtype}); pass its real part or its modulus.")
    if A.dtype.kind not in "buif":
        raise TypeError(f"{name} must hold real numbers, got an array of dtype {A.dtype}.")
    if A.ndim != 2:
        raise ValueError(
            f"{name} must be a matrix (2-D), got shape {A.shape}; "
            f"reshape a cube to (bands, pixels) and a single column to (m, 1)."
        )
    if A.size == 0:
        raise ValueError(f"{name} is empty: its shape is {A.shape}.")
    if A.dtype not in _SAFE:
        with np.errstate(over="ignore"):  # long doubles past float64 are named just below
            short = (
                A.dtype.kind == "f" and A.dtype.itemsize <= 4
            )  # float16, or the other byte order
            A = A.astype(np.float32 if short else np.float64)
    _check_finite(A, name)
    return A


def _check_finite(A: Array, name: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        total = A.sum()
    if np.isfinite(total):
        return
    bad = ~np.isfinite(A)
    if bad.any():
        i, j = (int(k) for k in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} has {int(bad.sum())} entries that are NaN or infinite, the first {A[i, j]} at "
            f"row {i}, column {j}. Remove or fill them first."
        )


def check_scale(
    A: Array, name: str = "X", zero_ok: bool = False, dtype: np.dtype | None = None
) -> Array:
    """A itself, if its squares neither overflow nor vanish in its own or the given type."""
    dtype = dtype or A.dtype
    largest = max(float(A.max()), -float(A.min()))
    if largest == 0 and zero_ok:
        return A
    if largest == 0:
        raise ValueError(f"{name} is all zeros: there is nothing to work with.")
    low, high = _SAFE[dtype]
    if not low <= largest <= high:
        raise ValueError(
            f"{name}'s largest entry is {largest:.3g}, outside [{low:g}, {high:g}] where {dtype} "
            f"squares are safe. Divide {name} by {largest:.3g} first; the factors scale with it."
        )
    return A


def check_sign(A: Array, name: str = "X") -> None:
    """Refuse negative entries, saying which."""
    if float(A.min()) >= 0:
        return
    negative = A < 0
    i, j = (int(k) for k in np.argwhere(negative)[0])
    raise ValueError(
        f"Negative values in data: {name} has {int(negative.sum())} negative entries (first "
        f"{A[i, j]:.3g} at row {i}, column {j}; smallest {float(A.min()):.3g}), but both factors "
        f"of layer 1 are nonnegative. Clip them with np.maximum({name}, 0), allow a signed factor "
        f"with constraint_W='none', or fit them as they are with allow_negative=True."
    )
