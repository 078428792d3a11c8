"""Bad input gets a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from deepmf._utils.messages import SettingError, in_python, setting
from deepmf.data.matrix import Foreign, as_foreign, as_numpy, on_device
from deepmf.data.on_disk import Stored, as_stored
from deepmf.data.weighted import Observed

_SAFE = {np.dtype(np.float64): (1e-100, 1e100), np.dtype(np.float32): (1e-12, 1e12)}
"""Sizes of the largest entry between which no product of squares leaves the type's range."""


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse array or matrix of SciPy's."""
    return sparse.issparse(X)


def check_matrix(
    X: Any,
    name: str = "X",
    sparse_ok: bool = False,
    device: Any = None,
    weights: Any = None,
) -> Any:
    """X as a finite float32 or float64 matrix; copied only if it must be converted or sent.

    An array, a `Foreign` matrix for one of another library's or one sent to a device, or where
    ``sparse_ok`` also a sparse array of compressed rows or columns, or a `Stored` matrix for one
    on disk. With ``weights`` it is an `Observed` matrix, finite where it is observed.
    """
    X = as_foreign(X)
    X = as_stored(X) if sparse_ok else X
    if isinstance(X, Foreign):
        X = X.checked(name)
    elif not isinstance(X, Stored):
        X = check_array(X, name, sparse_ok)
    if weights is not None:
        X = _observed(X, weights, name)
    if device is not None:
        if isinstance(X, Observed):
            raise TypeError(
                f"weights are for arrays and data on disk, but {name} is to be worked on by "
                f"device={str(device)!r}. Leave device out, or weights."
            )
        X = on_device(X, device)
    if not isinstance(X, Foreign) or not X.lazy:
        check_finite(X, name)
    return X


def check_array(X: Any, name: str, sparse_ok: bool) -> Any:
    """The same for what NumPy or SciPy can hold, but that its entries may not be finite."""
    if is_sparse(X) and not sparse_ok:
        raise TypeError(f"{name} is sparse, but must be an array here: pass {name}.toarray().")
    if np.ma.is_masked(X):
        raise ValueError(
            f"{name} has masked entries; fill them first, for example {name}.filled(0)."
        )
    if type(X).__name__ == "AnnData":
        raise TypeError(f"{name} is an AnnData object, but must be a matrix here: {name}.X.T.")
    try:
        A = X if is_sparse(X) else np.asarray(X)
    except ValueError:
        raise ValueError(f"{name} is not a matrix: its rows differ in length.") from None
    dtype = check_dtype(A.dtype, name)
    if A.ndim != 2:
        raise ValueError(
            f"{name} must be a matrix (2-D), got shape {A.shape}; "
            f"reshape a cube to (bands, pixels) and a single column to (m, 1)."
        )
    if min(A.shape) == 0:
        raise ValueError(f"{name} is empty: its shape is {A.shape}.")
    if is_sparse(A):
        A = _compressed(A, name)
    if A.dtype != dtype:
        with np.errstate(over="ignore"):  # long doubles past float64 are not finite then
            A = A.astype(dtype)
    return A


def check_dtype(dtype: np.dtype, name: str) -> np.dtype:
    """The type in which numbers of this one are worked on: float32 if they are short floats."""
    if dtype.kind == "c":
        raise TypeError(f"{name} is complex ({dtype}); pass its real part or its modulus.")
    if dtype.kind not in "buif":
        raise TypeError(f"{name} must hold real numbers, got an array of dtype {dtype}.")
    short = dtype.kind == "f" and dtype.itemsize <= 4  # float16 too, in either byte order
    return np.dtype(np.float32 if short else np.float64)


def _compressed(A: Any, name: str) -> Any:
    """A in compressed rows or columns, each entry listed once and in order."""
    if A.format in ("csr", "csc"):
        try:
            A.check_format(full_check=True)  # products would reach outside
        except ValueError as error:
            raise ValueError(f"{name} is not a sound sparse matrix: {error}.") from None
    A = sparse.csr_array(A) if A.format == "csr" else sparse.csc_array(A)
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return A


def check_finite(A: Any, name: str) -> None:
    """Refuse entries that are NaN or infinite, saying which."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = A.sum()
    if np.isfinite(total):
        return
    found = _find(A, lambda values: ~np.isfinite(values))
    if found is not None:
        raise SettingError(
            f"{name} has {found.number} entries that are NaN or infinite, the first {found.value} "
            f"at row {found.row}, column {found.column}. Remove or fill them "
            f"first{_or_left_out(A)}."
        )


def _or_left_out(A: Any) -> str:
    """How to say that entries which are not finite are missing, where they may be."""
    if is_sparse(A):
        return ""
    way = f"{setting(weights='observed')} takes NaN for missing"
    if isinstance(A, Observed) and A.weights is not None:
        way = "give them weight 0"
    return f", or leave them out of the fit: {way}"


def _observed(X: Any, weights: Any, name: str) -> Any:
    """X with the entries that count: those that are not NaN, or those of a positive weight.

    An array of which nothing is missing is itself.
    """
    if is_sparse(X) or isinstance(X, Foreign):
        kind = "a sparse matrix, whose zeros are data" if is_sparse(X) else _kind_name(X)
        way = f"{name}.toarray()" if is_sparse(X) else f"np.asarray({name})"
        raise TypeError(
            f"weights are for arrays and data on disk, but {name} is {kind}. Pass {way} if it fits "
            f"in memory, or leave weights out."
        )
    if isinstance(weights, str):
        if weights != "observed":
            raise SettingError(
                f"{setting('weights')} must be 'observed' (NaN are missing)"
                f"{in_python(f' or an array of the shape of {name}')}, got {weights!r}."
            )
        complete = isinstance(X, np.ndarray) and not np.isnan(X.min())
        return X if complete else Observed(X)
    W = as_stored(as_numpy(weights))
    if not isinstance(W, Stored) and not (isinstance(W, np.ndarray) and W.dtype.kind == "b"):
        W = check_array(W, "weights", sparse_ok=False)
    if W.shape != X.shape:
        raise ValueError(
            f"weights has shape {W.shape}, but {name} has {X.shape}: give one weight per entry."
        )
    found = _find(W, lambda values: ~((values >= 0) & (values < np.inf)))
    if found is not None:
        raise ValueError(
            f"weights must be nonnegative and finite, but {found.number} are not, the first "
            f"{found.value} at row {found.row}, column {found.column}. Weight 0 leaves an entry "
            f"out."
        )
    if not W.max() > 0:
        raise ValueError(f"weights are all 0: every entry of {name} is left out.")
    return Observed(X, W)


def _kind_name(X: Foreign) -> str:
    return f"{type(X.array).__module__.partition('.')[0]}'s {type(X.array).__name__}"


def check_seen(A: Any, name: str = "X", rows: bool = True) -> None:
    """Refuse a matrix with a column, or a row, of which no entry is observed."""
    if not isinstance(A, Observed):
        return
    for number, what in ((1, "column"), (0, "row"))[: 1 + rows]:
        unseen = np.flatnonzero(A.sums[number] == 0)
        if len(unseen):
            raise ValueError(
                f"{len(unseen)} {what}s of {name} have no observed entry, the first {what} "
                f"{unseen[0]}: nothing can be said of them. Leave them out."
            )


class _Found(NamedTuple):
    """How many entries pass a test, and the first of them, reading along the rows."""

    number: int
    row: int
    column: int
    value: Any


def _find(A: Any, test: Callable[[Any], Any]) -> _Found | None:
    """The entries of a matrix of any kind for which the test holds; it fails for zero."""
    look = partial(_find_in, test=test)
    places: Iterable[tuple[int, int, _Found | None]]
    if isinstance(A, Foreign):
        places = A.search(look)
    else:
        blocks = A.blocks() if isinstance(A, Stored) else [(0, A)]
        places = ((0, start, look(block)) for start, block in blocks)
    count, first = 0, None
    for top, left, found in places:
        if found is not None:
            count += found.number
            here = (top + found.row, left + found.column, found.value)
            first = here if first is None else min(first, here, key=lambda place: place[:2])
    return None if first is None else _Found(count, *first)


def _find_in(block: Any, test: Callable[[Any], Any]) -> _Found | None:
    """The same for a matrix in memory."""
    if is_sparse(block):
        block = block.tocoo()
        hits = test(block.data)
        rows, cols, values = block.row[hits], block.col[hits], block.data[hits]
    else:
        rows, cols = np.nonzero(test(block))
        values = block[rows, cols]
    if not len(rows):
        return None
    k = np.lexsort((cols, rows))[0]
    return _Found(len(rows), int(rows[k]), int(cols[k]), values[k])


def check_scale(
    A: Any, name: str = "X", zero_ok: bool = False, dtype: np.dtype | None = None
) -> Any:
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


def check_whole(A: Any, constraint: Any, name: str = "X") -> None:
    """Refuse a matrix that is spread over workers, for a set that ties all columns of H_1."""
    if constraint.separable is None and isinstance(A, Foreign) and A.lazy:
        raise ValueError(
            f"{constraint!r} on H of layer 1 ties all its columns together, but those of a Dask "
            f"array are spread over workers. Use a constraint that separates over columns, or pass "
            f"{name}.compute() if it fits in memory."
        )


def check_sign(A: Any, name: str = "X", new: bool = False) -> None:
    """Refuse negative entries, saying which, of data to fit or of new samples of a fit."""
    if float(A.min()) >= 0:
        return
    found = _find(A, lambda values: values < 0)
    assert found is not None
    clip = f"np.maximum({name}, 0)"
    if is_sparse(A) or isinstance(A, Foreign):
        clip = f"{name}.maximum(0)" if is_sparse(A) else f"{name}.clip(0)"
    ways = (
        f"fit them as they are, as noise, with {setting(allow_negative=True)}, or if the data are "
        f"signed by nature allow signed components: {setting(constraint_W='none')}, "
        f"{setting(model='data-centric')}"
    )
    if new:
        ways = (
            f"scale them with MinMaxScaler(clip=True) if MinMaxScaler made them, or fit with "
            f"{setting(allow_negative=True)}"
        )
    least = float(A.min())
    mark = ""
    if least <= -99 and least.is_integer():
        mark = (
            f" If {least:.6g} marks missing data, use {setting(nodata=int(least))} where a scene "
            f"is read, or put NaN there and use {setting(weights='observed')}."
        )
    raise SettingError(
        f"Negative values in data: {name} has {found.number} negative entries (first "
        f"{found.value:.6g} at row {found.row}, column {found.column}; smallest {least:.6g}), but "
        f"both factors of layer 1 are nonnegative. Set them to zero first"
        f"{in_python(f', {clip}')}, {ways}.{mark}"
    )
