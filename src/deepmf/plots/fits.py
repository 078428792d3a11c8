"""The factorization to draw, from a result or a fitted estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepmf.data.assemble import Rows
from deepmf.data.containers import as_dataset
from deepmf.data.on_disk import OnDisk, as_on_disk
from deepmf.data.validation import masked_to_nan
from deepmf.factorization import Factorization

if TYPE_CHECKING:
    from deepmf.estimator import DeepMF


def fit_of(given: Factorization | DeepMF) -> Factorization:
    """The factorization itself, or that of a fitted `DeepMF`."""
    f = getattr(given, "factorization_", given)
    if isinstance(f, Factorization):
        return f
    kind = type(given).__name__
    raise TypeError(
        f"The {kind} is not fitted yet; call its fit first."
        if hasattr(given, "fit")
        else f"Expected a Factorization or a fitted DeepMF, got {kind}."
    )


def data_of(given: Factorization | DeepMF, X: Any) -> Any:
    """X as the factorization sees it, columns being samples; an estimator is given them as rows."""
    columns = isinstance(given, Factorization)
    rows: Rows = "features" if columns else "samples"
    data = as_dataset(X, rows, "observed")
    if data is not None and data.X.shape[1] != fit_of(given).H[0].shape[1]:
        data = as_dataset(X, rows)  # the fit left out pixels of which some bands are missing
    if data is not None:
        return data.X
    X = masked_to_nan(X)
    M: Any = as_on_disk(X) if columns else X
    if not (M is None or sparse.issparse(M) or isinstance(M, OnDisk)):
        M = np.asarray(M)
    return M if columns or M is None else M.T
