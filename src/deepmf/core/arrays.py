"""Array-likes as real matrices, with error messages that name them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def real_matrix(X: Any, name: str) -> Any:
    """X as a NumPy array or a SciPy sparse matrix of real numbers, which may not be finite."""
    if np.ma.is_masked(X):
        raise ValueError(
            f"{name} has masked entries; fill them first, for example {name}.filled(0)."
        )
    if type(X).__name__ == "AnnData":
        raise TypeError(f"{name} is an AnnData object, but must be a matrix here: {name}.X.T.")
    try:
        A = X if sparse.issparse(X) else np.asarray(X)
    except ValueError:
        raise ValueError(f"{name} is not a matrix: its rows differ in length.") from None
    check_real(A.dtype, name)
    if A.ndim != 2:
        raise ValueError(
            f"{name} must be a matrix (2-D), got shape {A.shape}; "
            f"reshape a cube to (bands, pixels) and a single column to (m, 1)."
        )
    if min(A.shape) == 0:
        raise ValueError(f"{name} is empty: its shape is {A.shape}.")
    return A


def dense_matrix(X: Any, name: str) -> NDArray:
    """X as a NumPy array of real numbers; sparse matrices are refused."""
    A = real_matrix(X, name)
    if sparse.issparse(A):
        raise TypeError(f"{name} is sparse, but must be an array here: pass {name}.toarray().")
    return np.asarray(A)


def check_real(dtype: np.dtype, name: str) -> None:
    """Refuse entries that are not real numbers."""
    if dtype.kind == "c":
        raise TypeError(f"{name} is complex ({dtype}); pass its real part or its modulus.")
    if dtype.kind not in "buif":
        raise TypeError(f"{name} must hold real numbers, got an array of dtype {dtype}.")
