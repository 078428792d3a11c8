"""Input validation with actionable error messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf._utils.messages import SettingError, counted, in_python, setting
from deepmf.core.arrays import dense_matrix, real_matrix
from deepmf.data.in_memory import Dense, Sparse
from deepmf.data.matrix import Matrix, adapted, as_numpy, working_dtype
from deepmf.data.on_disk import OnDisk, as_on_disk
from deepmf.data.weighted import Weighted

_SAFE = {np.dtype(np.float64): (1e-100, 1e100), np.dtype(np.float32): (1e-12, 1e12)}
"""Sizes of the largest entry between which no product of squares leaves the type's range."""


def as_matrix(
    X: Any,
    name: str = "X",
    *,
    weights: Any = None,
    device: Any = None,
    samples: Literal["columns", "rows"] = "columns",
) -> Matrix:
    """X as a finite `Matrix` whose columns are samples, copied only if converted or sent.

    Entries of a lazy matrix are checked when it is loaded.

    Parameters
    ----------
    X : array, sparse matrix, tensor, Dask array, memory map, HDF5 or Zarr array, or Matrix
        Masked entries of a `numpy.ma` array are missing: they have weight 0.
    name : str
        The matrix in messages.
    weights : None, "observed", or matrix
        As in `factorize`.
    device : str or torch.device, optional
        A device that X is sent to.
    samples : {"columns", "rows"}
        Where X and its weights have the samples; rows become columns.
    """
    seen = None
    if np.ma.is_masked(X):
        seen, X = ~np.ma.getmaskarray(X), X.data
    A = adapt(X, name)
    turn = samples == "rows"
    if weights is None and seen is None:
        A = A.T if turn else A
    else:
        A = _weighted(A, weights, seen, name, turn)
    if device is not None:
        A = A.on(device)
    if not A.lazy:
        check_finite(A, name)
    return A


def adapt(X: Any, name: str = "X") -> Matrix:
    """X as the `Matrix` of its kind, in float32 or float64; its entries may not be finite."""
    A = adapted(X)
    if A is not None:
        return A.checked(name)
    stored = as_on_disk(X)
    return stored if isinstance(stored, OnDisk) else in_memory(X, name)


def in_memory(X: Any, name: str = "X") -> Dense | Sparse:
    """X as a matrix of float32 or float64 in memory; its entries may not be finite."""
    A = real_matrix(X, name)
    if sparse.issparse(A):
        return Sparse(_in_working_dtype(_compressed(A, name)))
    return Dense(_in_working_dtype(A))


def dense(X: Any, name: str) -> Dense:
    """X as a finite matrix in memory that is not sparse: a factor, say, that a user gives."""
    A = Dense(_in_working_dtype(dense_matrix(X, name)))
    check_finite(A, name)
    return A


def masked_to_nan(X: Any) -> Any:
    """X with NaN for masked entries."""
    return X.astype(working_dtype(X.dtype)).filled(np.nan) if np.ma.is_masked(X) else X


def _in_working_dtype(A: Any) -> Any:
    with np.errstate(over="ignore"):  # long doubles beyond float64 become infinite
        dtype = working_dtype(A.dtype)
        return A if A.dtype == dtype else A.astype(dtype)


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


def check_finite(A: Matrix, name: str) -> None:
    """Refuse entries that are NaN or infinite, saying which."""
    if not np.isfinite(A.stats.total):
        refuse_not_finite(A, name)


def refuse_not_finite(A: Matrix, name: str) -> None:
    """Raise an error that says which entries are NaN or infinite, if there are any."""
    found = A.find(lambda values: ~np.isfinite(values))
    if found is None:  # the sum overflows
        return
    way = ""
    if isinstance(A, Weighted) and A.weights is not None:
        way = ", or leave them out of the fit: give them weight 0"
    elif A.weightable:
        way = f", or leave them out of the fit: {setting(weights='observed')} takes NaN for missing"
    bad = counted(found.number, "entry that is", "entries that are")
    raise SettingError(
        f"{name} has {bad} NaN or infinite, the first {found.value} at row {found.row}, column "
        f"{found.column}. Remove or fill them first{way}."
    )


def _weighted(
    X: Matrix, weights: Any, seen: NDArray[np.bool_] | None, name: str, turn: bool
) -> Matrix:
    """X, transposed if asked, with weights; without them if all entries are observed.

    Entries that are not ``seen`` have weight 0.
    """
    if not isinstance(X, Dense | OnDisk):
        way, what = f"np.asarray({name})", X.description
        if isinstance(X, Sparse):
            way, what = f"{name}.toarray()", "a sparse matrix, whose zeros are data"
        raise TypeError(
            f"weights are for arrays and data on disk, but {name} is {what}. Pass {way} if it "
            f"fits in memory, or leave weights out."
        )
    if isinstance(weights, str) and weights != "observed":
        raise SettingError(
            f"{setting('weights')} must be 'observed' (NaN are missing)"
            f"{in_python(f' or an array of the shape of {name}')}, got {weights!r}."
        )
    if turn:
        X, seen = X.T, None if seen is None else seen.T
    if isinstance(weights, str) and seen is None:
        complete = not X.on_disk and not np.isnan(X.stats.smallest)
        return X if complete else Weighted(X)
    if weights is None:
        V: Dense | OnDisk = Dense(np.asarray(seen))
    elif isinstance(weights, str):
        V = Dense(seen & ~np.isnan(X.numpy()))
    else:
        V = _weights(weights, X, name)
        V = V if seen is None else Dense(np.where(seen, V.numpy(), V.dtype.type(0)))
    if not V.stats.largest > 0:
        why = "weights are all 0" if seen is None else "all that is not masked is missing"
        raise ValueError(f"{why}: every entry of {name} is left out.")
    return Weighted(X, V)


def _weights(given: Any, X: Matrix, name: str) -> Dense | OnDisk:
    """Nonnegative, finite weights of the entries of X, transposed where X is."""
    W = as_on_disk(as_numpy(given))
    if isinstance(W, np.ndarray) and W.dtype == bool and W.ndim == 2:
        V: Dense | OnDisk | Sparse = Dense(W)
    else:
        V = W if isinstance(W, OnDisk) else in_memory(W, "weights")
    if isinstance(V, Sparse):
        raise TypeError("weights is sparse, but must be an array here: pass weights.toarray().")
    shape = X.shape[::-1] if X.transposed else X.shape
    if V.shape != shape:
        raise ValueError(
            f"weights has shape {V.shape}, but {name} has {shape}: give one weight per entry."
        )
    V = V.T if X.transposed else V
    if not (V.stats.smallest >= 0 and V.stats.largest < np.inf):
        found = V.find(lambda values: ~((values >= 0) & (values < np.inf)))
        assert found is not None
        raise ValueError(
            f"weights must be nonnegative and finite, but {found.number} are not, the first "
            f"{found.value} at row {found.row}, column {found.column}. Weight 0 leaves an entry "
            f"out."
        )
    return V


def check_seen(A: Matrix, name: str = "X", features: bool = True) -> None:
    """Refuse a matrix with a sample, or if ``features`` a feature, without any observed entry."""
    if not isinstance(A, Weighted):
        return
    names = ("row", "column") if A.transposed else ("column", "row")
    for what, sums in list(zip(names, (A.sums.columns, A.sums.rows)))[: 1 + features]:
        unseen = np.flatnonzero(sums == 0)
        if len(unseen):
            raise ValueError(
                f"{len(unseen)} {what}s of {name} have no observed entry, the first {what} "
                f"{unseen[0]}: they cannot be fitted. Leave them out."
            )


def check_scale(
    A: Matrix, name: str = "X", zero_ok: bool = False, dtype: np.dtype | None = None
) -> None:
    """Refuse a matrix whose squares overflow or vanish in its own or the given type."""
    dtype = dtype or A.dtype
    largest = max(A.stats.largest, -A.stats.smallest)
    if largest == 0 and zero_ok:
        return
    if largest == 0:
        raise ValueError(f"{name} is all zeros: there is nothing to work with.")
    low, high = _SAFE[dtype]
    if not low <= largest <= high:
        raise ValueError(
            f"{name}'s largest entry is {largest:.3g}, outside [{low:g}, {high:g}] where {dtype} "
            f"squares are safe. Divide {name} by {largest:.3g} first; the factors scale with it."
        )


def check_whole(A: Matrix, constraint: Any, name: str = "X") -> None:
    """Refuse a matrix that is spread over workers, for a set that ties all columns of H_1."""
    if constraint.separable is None and A.lazy:
        raise ValueError(
            f"{constraint!r} on H of layer 1 ties all its columns together, but those of a Dask "
            f"array are spread over workers. Use a constraint that separates over columns, or pass "
            f"{name}.compute() if it fits in memory."
        )


def check_divergence(
    A: Matrix, beta_loss: str | float | Sequence[str | float], new: bool = False
) -> None:
    """Refuse data, to fit or ``new`` of a fit, that distances of layers are not defined for."""
    least = A.stats.smallest
    names = beta_loss if isinstance(beta_loss, list | tuple) else [beta_loss]
    smallest_allowed = "positive" if "itakura-saito" in names else "nonnegative"
    if least > 0 or (least == 0 and smallest_allowed == "nonnegative"):
        return
    found = A.find((lambda v: v < 0) if least < 0 else (lambda v: v == 0))
    assert found is not None
    one, many = ("negative entry", "negative entries") if least < 0 else ("zero", "zeros")
    what = f"{found.number} {one if found.number == 1 else many}"
    remedy = "Set them to zero if they are noise"
    if smallest_allowed == "positive":
        remedy = "Add a small constant, such as a thousandth of the mean"
    raise SettingError(
        f"{setting(beta_loss=beta_loss)} needs {smallest_allowed} data, but X has {what} "
        f"(first {found.value:.6g} at row {found.row}, column {found.column}). {remedy}, "
        f"or {'fit with' if new else 'use'} {setting(beta_loss='frobenius')}."
    )


def check_sign(A: Matrix, name: str = "X", new: bool = False) -> None:
    """Refuse negative entries, saying which, of data to fit or of ``new`` samples of a fit."""
    least = A.stats.smallest
    if least >= 0:
        return
    found = A.find(lambda values: values < 0)
    assert found is not None
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
    mark = ""
    if least <= -99 and least.is_integer():
        mark = (
            f" If {least:.6g} marks missing data, use {setting(nodata=int(least))} where a scene "
            f"is read, or put NaN there and use {setting(weights='observed')}."
        )
    bad = counted(found.number, "negative entry", "negative entries")
    raise SettingError(
        f"Negative values in data: {name} has {bad} (first {found.value:.6g} at row {found.row}, "
        f"column {found.column}; smallest {least:.6g}), but both factors of layer 1 are "
        f"nonnegative. Set them to zero first{in_python(f', {A.clipped.format(name)}')}, "
        f"{ways}.{mark}"
    )
