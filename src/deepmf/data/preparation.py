"""Preparation of X for a fit: samples are scaled, and the most variable features kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deepmf._utils.messages import SettingError, setting
from deepmf._utils.warnings import warn
from deepmf.core.arrays import real_matrix
from deepmf.data.containers import kind_of
from deepmf.data.features import ALL, check_max_features, most_variable, rows_of
from deepmf.data.layout import Layout
from deepmf.data.matrix import Matrix, as_numpy
from deepmf.data.on_disk import OnDisk, as_on_disk
from deepmf.data.scaling import are_counts, check_scaling, measured, scaled
from deepmf.data.validation import adapt, as_matrix

_LOOKED_AT = 32
"""Columns that show whether data that are not in memory are counts."""


@dataclass(frozen=True)
class Preparation:
    """Preparation that is asked for, and that of raw counts where none is.

    Attributes
    ----------
    scale : str, optional
        One of `deepmf.data.scaling.SCALES`, or "none".
    max_features : int or "all", optional
        Number of most variable features to keep after scaling.
    scale_of_counts : str, optional
        Scaling of raw counts where ``scale`` is None.
    features_of_counts : int, optional
        Number of features to keep where raw counts are scaled so and ``max_features`` is None.
    """

    scale: str | None = None
    max_features: int | str | None = None
    scale_of_counts: str | None = None
    features_of_counts: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that there are not."""
        check_scaling(self.scale)
        check_max_features(self.max_features)

    @property
    def none(self) -> bool:
        """Whether X stays as it is, whatever it holds."""
        asked = {self.scale, self.max_features} - {None, "none", ALL}
        return not asked and (self.scale is not None or self.scale_of_counts is None)

    def of(
        self,
        X: Any,
        layout: Layout,
        weights: Any = None,
        samples: Literal["columns", "rows"] = "columns",
    ) -> tuple[Any, Layout, Any]:
        """X prepared, a layout that says by what, and the weights of the features that are kept.

        Parameters
        ----------
        X : matrix, features x samples
        layout : Layout
            Of X.
        weights : None, "observed", or matrix
            As in `factorize`, with the samples where the user has them.
        samples : {"columns", "rows"}
            Where the user's matrix has the samples.
        """
        if self.none or getattr(X, "ndim", 2) != 2:
            return X, layout, weights
        X = _as_array(X)
        how, count = self._settings(X)
        if count is not None:
            _check_in_memory(X, count)
        if how is not None or count is not None:
            check_unprepared(X.T if samples == "rows" else X, weights, samples)
        if how is not None:
            by = measured(X, how)
            X, layout = scaled(X, how, by), replace(layout, scaling=by)
        if count is None or count >= X.shape[0]:
            return X, layout, weights
        kept = most_variable(X, count)
        weights = weights_of(weights, kept, samples)
        return rows_of(X, kept), layout.of_features(kept), weights

    def _settings(self, X: Any) -> tuple[str | None, int | None]:
        """The scaling of X and the number of features to keep."""
        how, count = self.scale, self.max_features
        if how is None and self.scale_of_counts is not None:
            if are_counts(X):
                how = self.scale_of_counts
                count = self.features_of_counts if count is None else count
            elif not _in_memory(X) and are_counts(_first_columns(X)):
                warn(
                    f"X ({type(X).__name__}) looks like raw counts, but a recipe scales these "
                    f"only in arrays and sparse matrices in memory: scale X first as "
                    f"{setting(scale=self.scale_of_counts)} would, convert it to a NumPy array or "
                    f"a SciPy sparse matrix, or fit it as it is with {setting(scale='none')}."
                )
        return (None if how == "none" else how), (None if isinstance(count, str) else count)


def check_unprepared(
    X: Any, weights: Any = None, samples: Literal["columns", "rows"] = "columns"
) -> None:
    """Refuse what is empty or not finite, before a scaling spreads it or its feature is left out.

    With weights or masked entries these may be missing; they are checked once X is prepared.
    """
    if weights is None and not np.ma.is_masked(X):
        as_matrix(X, samples=samples)


def prepared_alike(X: Any, fitted: Layout) -> Any:
    """New samples, features x samples, prepared as those of a fit were.

    They have all the features that the fit was given. Those alone that it kept will do where
    nothing was scaled: a scaling looks at all features.
    """
    by, kept = fitted.scaling, fitted.kept
    how = by.how if by is not None else ""
    if (not how and kept is None) or getattr(X, "ndim", 2) != 2:
        return X
    X = _as_array(X)
    if kept is None:
        known = len(by.row_weights) if by is not None else 0
        if known and known != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} features, but the model was fitted to {known}.")
        return scaled(X, how, by)
    given, left = np.shape(X)[0], int(kept.sum())
    if given == left and not how:
        return X
    if given != len(kept):
        why = f"; {setting(scale=how)} needs the others too" if given == left else ""
        raise SettingError(
            f"X has {given} features, but the model was fitted to {len(kept)}, of which it kept "
            f"the {left} most variable: give all {len(kept)}{why}."
        )
    if not how:
        _check_in_memory(X, left)
    return rows_of(scaled(X, how, by) if how else X, kept)


def weights_of(
    weights: Any, kept: NDArray[np.bool_] | None, samples: Literal["columns", "rows"] = "columns"
) -> Any:
    """Weights of the features that are kept, where they are of all."""
    axis = 0 if samples == "columns" else 1
    if kept is None or sparse.issparse(weights) or np.ndim(weights) != 2:
        return weights
    if np.shape(weights)[axis] != len(kept):
        return weights
    return np.compress(kept, as_numpy(weights), axis=axis)


def facts_of(layout: Layout) -> dict[str, str]:
    """The scaling and the features that were kept, in words; empty for data as they came."""
    by, kept = layout.scaling, layout.kept
    named = {
        "scale": by.how if by else "",
        "features": "" if kept is None else f"{kept.sum()} most variable of {len(kept)}",
    }
    return {name: said for name, said in named.items() if said}


def words_of(layout: Layout) -> str:
    """``scaled by log, 3000 most variable of 16791 features``; empty for data as they came."""
    said = facts_of(layout)
    parts = [
        f"scaled by {said['scale']}" if "scale" in said else "",
        f"{said['features']} features" if "features" in said else "",
    ]
    return ", ".join(filter(None, parts))


def _as_array(X: Any) -> Any:
    """A table, nested lists or a matrix of NumPy as an array; all else as it is."""
    if isinstance(X, list | tuple | np.matrix):
        return np.asarray(real_matrix(X, "X"))
    return X.to_numpy() if kind_of(X) == "pandas" else X


def _in_memory(X: Any) -> bool:
    """Whether X is an array or a sparse matrix in memory."""
    X = as_on_disk(X)
    return sparse.issparse(X) or isinstance(X, np.ndarray)


def _first_columns(X: Any) -> Any:
    """Some columns of what is not in memory; X itself where it is a `Matrix` of the user's."""
    adapt(X)  # what cannot be fitted is refused
    X = as_on_disk(X)
    own = isinstance(X, Matrix) and not isinstance(X, OnDisk)
    return X if own else as_numpy(X[:, :_LOOKED_AT])


def _check_in_memory(X: Any, count: int) -> None:
    """Refuse to choose features of what is neither an array nor a sparse matrix in memory."""
    if _in_memory(X):
        return
    what = "data on disk" if isinstance(as_on_disk(X), OnDisk) else f"a {type(X).__name__}"
    raise SettingError(
        f"{setting(max_features=count)} is for arrays and sparse matrices in memory, got {what}; "
        f"choose the features first, or convert the data."
    )
