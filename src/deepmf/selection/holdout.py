"""What the fits of a scan do not see, and how far they are from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf.core.quadratic import Array
from deepmf.data.in_memory import Sparse
from deepmf.data.panels import SparsePanels
from deepmf.data.validation import adapt, check_finite, masked_to_nan
from deepmf.factorization import Factorization

PARTS = 10
"""Parts that entries or samples are dealt out to; a fold holds out one of them."""

ROWS = 5
"""Parts of the features of samples held out; each is told from the others."""


class Split(NamedTuple):
    """What a fit sees, and how it is judged."""

    X: Any
    weights: str | None
    """As in `factorize`."""
    errors: Callable[[Factorization], Array]
    """||X - W_l H_l...H_1|| / ||X|| per layer."""


@dataclass(frozen=True, eq=False)
class HeldOut(ABC):
    """Data, and a way to hold out a tenth of them."""

    X: Any
    words: ClassVar[str]
    """What errors are measured on, in a sentence."""

    def whole(self) -> Split:
        """Everything is seen, and judged."""
        return Split(self.X, self.weights, lambda f: np.sqrt(f.history.data_errors[-1]))

    @property
    def weights(self) -> str | None:
        """Of a fit that sees everything."""
        return None

    @abstractmethod
    def without(self, part: int, seed: int) -> Split:
        """All but one of ten parts is seen, and that one is judged."""


class Entries(HeldOut):
    """A tenth of the entries of an array, as Wold did."""

    words = "held-out entries"

    @property
    def weights(self) -> str | None:
        """See `HeldOut.weights`; NaN are missing."""
        return "observed" if np.isnan(self.X).any() else None

    def without(self, part: int, seed: int) -> Split:
        """See `HeldOut.without`."""
        held = self.parts(seed) == part
        true = self.X[held].astype(float)

        def errors(f: Factorization) -> Array:
            layers = range(1, f.depth + 1)
            missed = [np.linalg.norm(true - f.reconstruct(layer)[held]) for layer in layers]
            return np.array(missed) / np.linalg.norm(true)

        return Split(np.where(held, np.nan, self.X), "observed", errors)

    def parts(self, seed: int) -> NDArray[np.int8]:
        """Each entry's part; those that are missing, or always seen, are in none, -1.

        No part has all that is observed of a row or column, and each has an entry other than zero
        if that can be.
        """
        rng = np.random.default_rng(seed)
        observed = ~np.isnan(self.X)
        dealt = rng.integers(PARTS, size=self.X.shape).astype(np.int8)
        dealt[~observed] = -1
        for lines, seen in ((dealt, observed), (dealt.T, observed.T)):
            alone = np.flatnonzero(_in_one_part(lines, seen))
            keys = np.where(seen[alone], rng.random((len(alone), lines.shape[1])), -1)
            lines[alone, keys.argmax(axis=1)] = -1
        filled = observed & (self.X != 0) & (dealt >= 0)
        counts = np.bincount(dealt[filled], minlength=PARTS)
        for part in np.flatnonzero(counts == 0):
            for i, j in rng.permutation(np.argwhere(filled & (counts > 1)[dealt])):
                before, dealt[i, j] = dealt[i, j], part
                row, column = np.s_[i : i + 1], np.s_[:, j : j + 1]
                if not (
                    _in_one_part(dealt[row], observed[row]).any()
                    or _in_one_part(dealt[column].T, observed[column].T).any()
                ):
                    counts[[before, part]] += (-1, 1)
                    break
                dealt[i, j] = before
        return dealt


class Samples(HeldOut):
    """A tenth of the samples of a sparse matrix, each coded from part of its features.

    Entries cannot be held out of a matrix whose zeros are data but are not there; and whole samples
    could be coded by any basis. See `completion_errors`.
    """

    words = "hidden features of held-out samples"

    def without(self, part: int, seed: int) -> Split:
        """See `HeldOut.without`."""
        rows, columns = self.parts(seed)
        new = self.X[:, columns == part]
        return Split(self.X[:, columns != part], None, lambda f: completion_errors(f, new, rows))

    def parts(self, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Each row's part and each column's; columns without entries are in none, -1."""
        rng = np.random.default_rng(seed)
        rows = rng.permutation(self.X.shape[0]) % ROWS
        columns = np.full(self.X.shape[1], -1)
        dealt = rng.permutation(np.flatnonzero(self.X.count_nonzero(axis=0)))
        columns[dealt] = np.arange(len(dealt)) % PARTS
        return rows, columns


def completion_errors(f: Factorization, X: Any, parts: NDArray[np.intp]) -> Array:
    """How far a fit's layers are from features of new samples that did not code them.

    ::

        sum over parts P of the rows of ||X_P - B_P H||^2,   B = W_l H_l...H_2,
        H the codes, under H_1's constraint, of what the other rows of X hold

    as a root, and relative to ||X||. The cost is that of X's nonzeros.

    Parameters
    ----------
    f : Factorization
        With NumPy's arrays.
    X : csc_array, m x k
        Samples that the fit has not seen.
    parts : array of m ints
        The part, from 0, that each row belongs to.
    """
    if not all(np.isfinite(M).all() for M in (*f.W, *f.H[1:])):  # the fit diverged
        return np.full(f.depth, np.inf)
    composed = replace(f, H=[np.eye(f.ranks[0]), *f.H[1:]])
    bases = [composed.reconstruct(layer) for layer in range(1, f.depth + 1)]
    missed = np.zeros(f.depth)
    for part in range(parts.max() + 1):
        hidden = parts == part
        with SparsePanels(X[hidden]) as panels:
            panels.codes.set(f.of_rows(~hidden).encode(X[~hidden]))
            missed += panels.residuals2([B[hidden] for B in bases])
    return np.sqrt(missed) / np.linalg.norm(X.data.astype(float))


def _in_one_part(parts: NDArray[np.int8], observed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows of which all that is observed is in the same part."""
    last = parts.max(axis=1)
    return (last >= 0) & (np.where(observed, parts, last[:, None]).min(axis=1) == last)


def held_out(X: Any) -> HeldOut:
    """The data of a scan, in memory, and the way to hold out some of their kind."""
    data = adapt(masked_to_nan(X))
    if isinstance(data, Sparse):
        check_finite(data, "X")
        samples = int(np.count_nonzero(data.array.count_nonzero(axis=0)))
        _check_number(samples, PARTS, "samples that are not all zeros", "tenths")
        _check_number(data.shape[0], ROWS, "features", "fifths")
        return Samples(sparse.csc_array(data.array))
    A = data.numpy()
    if np.isinf(A).any():
        raise ValueError("X has infinite entries; give NaN for those that are missing.")
    filled = int(np.count_nonzero(A[~np.isnan(A)]))
    _check_number(filled, PARTS, "entries other than zero", "tenths")
    if min(A.shape) == 1:
        raise ValueError(
            f"X has shape {A.shape}, and an entry alone in its row or column cannot be held out; "
            f"give at least two rows and two columns."
        )
    return Entries(A)


def _check_number(number: int, parts: int, what: str, share: str) -> None:
    if number < 2 * parts:
        raise ValueError(
            f"X has only {number} {what}, too few to hold out {share} of them; give more data."
        )
