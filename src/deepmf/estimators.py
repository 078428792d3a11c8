"""scikit-learn's face of the library, and the only file that turns the data: rows are samples."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from deepmf.checkpoint import Checkpoint
from deepmf.dataset import Dataset
from deepmf.factorization import Factorization, layer_number
from deepmf.factorize import factorize
from deepmf.fit import Callback
from deepmf.foreign import Foreign, as_foreign, as_numpy, times
from deepmf.history import History
from deepmf.io.arrange import names_array
from deepmf.io.containers import (
    Kind,
    as_dataset,
    check_same_features,
    codes_as,
    components_as,
    kind_of,
)
from deepmf.layout import Layout
from deepmf.names import resolve
from deepmf.observed import Observed
from deepmf.problem import check_ranks
from deepmf.quadratic import Array
from deepmf.stored import Stored
from deepmf.validation import check_matrix, check_sign, is_sparse

_MATRIX: dict[str, Any] = {"dtype": [np.float64, np.float32], "accept_sparse": ["csr", "csc"]}


class DeepMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Deep matrix factorization of samples x features data.

    ::

        X ~ codes_l @ components(l)     for every layer l,

    where layer l has ``ranks[l - 1]`` components and each component of layer l - 1 is itself a
    combination of those of layer l. Everything but the orientation is as in `deepmf.factorize`.

    Parameters
    ----------
    ranks : int or sequence of ints
        Number of components of each layer, normally decreasing.
    weights : None or "observed"
        ``"observed"``: NaN in X are missing entries, in `fit`, `transform` and `score`. For weights
        of their own, give `fit` an array.
    model : str or Loss
        ``"layer-centric"``, ``"data-centric"``, ``"multilayer"`` or ``"trigeorgis"``.
    constraint_W, constraint_H : None, str, Constraint, or a list with one per layer
        Sets for the components (W) and for the codes and links (H). Default: nonnegative.
    regularizer_W, regularizer_H : None, str, Regularizer, or a list with one per layer
        Penalties on the same.
    init : None, str, function, a list of these, or (Ws, Hs)
        Where to start. Factors are given in the paper's orientation.
    augment : int
        Sweeps of each layer alone before the next layer is started.
    solver : str or Solver
        How one block is decreased.
    max_iter, tol, max_time : int, float, float or None
        When to stop.
    inner_iter, inner_tol : int, float
        How hard to work on one block.
    extrapolate : bool
        Whether sweeps begin ahead of where the last one ended.
    layer : int
        The layer `transform` codes in and `components_` shows; -1 is the last.
    allow_negative : bool
        Accept negative data under nonnegative factors.
    random_state : None, int, RandomState or Generator
        Makes random starts reproducible.
    callbacks : callable or list of callables
        Called after every sweep; a true return value stops the fit.
    device : str or torch.device, optional
        ``"cuda"``: work there, for `fit`, `transform` and `score`.
    checkpoint : path or Checkpoint, optional
        A file from which the same `fit` goes on after it was stopped or killed.

    Attributes
    ----------
    factorization_ : Factorization
        The fitted factors, in the paper's orientation (columns are samples).
    components_ : array, ranks[layer - 1] x n_features
        Components of the chosen layer.
    history_ : History
        Per sweep: objective, errors of both kinds per layer, time.
    stop_reason_ : str
        Why the fit ended.
    n_iter_ : int
        Number of sweeps.
    reconstruction_err_ : float
        ||X - codes components|| of the chosen layer, on the training data.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from deepmf import DeepMF
    >>> X = load_digits().data
    >>> model = DeepMF([16, 8], constraint_W="simplex", tol=1e-3).fit(X)
    >>> model.transform(X).shape, model.components(1).shape, model.links(2).shape
    ((1797, 8), (16, 64), (8, 16))
    """

    def __init__(
        self,
        ranks: int | Sequence[int] = (8, 4, 2),
        *,
        weights: str | None = None,
        model: object = "layer-centric",
        constraint_W: object = None,
        constraint_H: object = None,
        regularizer_W: object = None,
        regularizer_H: object = None,
        init: object = None,
        augment: int = 0,
        solver: object = "fpgm",
        max_iter: int = 500,
        tol: float = 1e-4,
        max_time: float | None = None,
        inner_iter: int = 10,
        inner_tol: float = 0.01,
        extrapolate: bool = True,
        layer: int = -1,
        allow_negative: bool = False,
        random_state: Any = None,
        callbacks: Callback | Sequence[Callback] | None = None,
        device: Any = None,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> None:
        self.ranks = ranks
        self.weights = weights
        self.model = model
        self.constraint_W = constraint_W
        self.constraint_H = constraint_H
        self.regularizer_W = regularizer_W
        self.regularizer_H = regularizer_H
        self.init = init
        self.augment = augment
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.inner_iter = inner_iter
        self.inner_tol = inner_tol
        self.extrapolate = extrapolate
        self.layer = layer
        self.allow_negative = allow_negative
        self.random_state = random_state
        self.callbacks = callbacks
        self.device = device
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: object = None, weights: Any = None) -> Self:
        """Fit the layers; y is ignored.

        Parameters
        ----------
        X : matrix, n_samples x n_features, or AnnData, xarray.DataArray, deepmf Dataset
            Dense, sparse or a tensor, with names where X is a DataFrame. Of an AnnData object, obs
            are the samples and var the features; of an xarray cube, pixels with data are the
            samples and bands the features. Their names and coordinates go to
            ``factorization_.layout``.
        y : ignored
        weights : None, "observed", or array, n_samples x n_features
            How much each entry of X counts, see `factorize`. Default: as the estimator says.
        """
        kind, data = kind_of(X), as_dataset(X)
        given = X if data is None else _turned(data.X)
        weights = self._weights(weights)
        A = self._matrix(given, reset=True, missing=weights is not None)
        lazy = isinstance(A, Foreign) and A.lazy  # then it is loaded here, and only once
        device = self.device if lazy else None
        M = check_matrix(A, sparse_ok=True, device=device, weights=weights)
        # Clones: parameters set after the fit must not change what was fitted.
        settings = {
            name: value if name in ("init", "callbacks", "checkpoint") else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        self.layer_ = layer_number(settings.pop("layer"), len(check_ranks(self.ranks)))
        del settings["weights"]  # they go along with M
        if not self._accepts_negative():
            check_sign(M)  # here, where rows are samples, so that it names the right entry
        layout = self._layout_of_table(X) if data is None else data.layout
        f = factorize(Dataset("X", M.T, layout), settings.pop("ranks"), **settings)
        if kind == "anndata":
            self.feature_names_in_ = np.asarray(f.layout.features, dtype=object)
        self._fitted_kind: Kind = kind
        self.factorization_: Factorization = f
        self.history_: History = f.history
        self.stop_reason_ = f.stop_reason
        self.n_iter_ = f.n_iter
        error = float(f.history.data_errors[-1, self.layer_ - 1])
        self.reconstruction_err_ = _norm(M) * error**0.5
        self._n_features_out = f.ranks[self.layer_ - 1]
        return self

    def fit_transform(self, X: Any, y: object = None, weights: Any = None) -> Any:
        """The same as ``fit(X, weights=weights).transform(X, weights=weights)``."""
        return self.fit(X, weights=weights).transform(X, weights=weights)

    def transform(self, X: Any, layer: int | None = None, weights: Any = None) -> Any:
        """Codes of samples, new or old, in the given layer (default: the estimator's own).

        A sample's codes depend on the sample and the components alone (unless constraint_H ties
        samples together, as `GroupedSparse` does); ``fit_transform(X)`` and
        ``fit(X).transform(X)`` are equal. ``weights`` are as in `fit`.

        Returns
        -------
        array, n_samples x n_components
            For AnnData a DataFrame with its obs_names; for an xarray cube a DataArray of maps with
            its coordinates and a ``component`` dimension, NaN at pixels without data.
        """
        check_is_fitted(self)
        number = self._number(layer)
        output = self._check_container(number)
        M, data = self._samples(X, weights)
        if self.factorization_.problem.nonnegative and not self.allow_negative:
            M = _nonnegative(M)
        codes = self.factorization_.encode(M.T, number, self.device).T
        codes = np.ascontiguousarray(codes) if isinstance(codes, np.ndarray) else codes
        kind = kind_of(X)
        if data is None or output not in ("default", "pandas" if kind == "anndata" else "default"):
            return codes
        return codes_as(kind, codes, data.layout, self._names(number))

    def inverse_transform(self, codes: Any, layer: int | None = None) -> Any:
        """codes @ components(layer): back to features; maps of a cube become a cube again."""
        check_is_fitted(self)
        number = self._number(layer)
        if kind_of(codes) == self._fitted_kind == "xarray":
            return codes.dot(self.components(number), dim="component").rename(None)
        codes = check_matrix(_rows_are_samples(codes), "codes")
        rank = self.factorization_.ranks[number - 1]
        if codes.shape[1] != rank:
            raise ValueError(
                f"codes has shape {codes.shape}; layer {number} needs (n_samples, {rank})."
            )
        return times(codes, as_numpy(self.factorization_.basis(number)).T)

    def components(self, layer: int) -> Any:
        """The layer's components, one per row.

        A DataFrame after a fit to a DataFrame or AnnData, a DataArray after one to a cube.
        """
        check_is_fitted(self)
        number, f = self._number(layer), self.factorization_
        return components_as(self._fitted_kind, f.basis(number).T, f.layout, self._names(number))

    @property
    def components_(self) -> Any:
        """Components of the estimator's layer, one per row, as an array."""
        check_is_fitted(self)
        return self.factorization_.basis(self.layer_).T

    def links(self, layer: int) -> Array:
        """Share of each of the layer's components (rows) in those of the layer before (columns)."""
        check_is_fitted(self)
        return self.factorization_.links(self._number(layer))

    def score(self, X: Any, y: object = None, weights: Any = None) -> float:
        """Minus the mean squared error of X's approximation in the estimator's layer.

        ``weights`` are as in `fit`; the mean is then a weighted one, over what is observed.
        """
        check_is_fitted(self)
        M, _ = self._samples(X, weights)
        error = self.factorization_.squared_error(M.T, self.layer_, self.device)
        return -error / (M.total_weight if isinstance(M, Observed) else M.shape[0] * M.shape[1])

    def _weights(self, given: Any) -> Any:
        """What a method was given, or else what the estimator says."""
        if self.weights is not None and not isinstance(self.weights, str):
            raise ValueError(
                "DeepMF's own weights must be None or 'observed', got an array or the like: give "
                "it to the method instead, fit(X, weights=...)."
            )
        return self.weights if given is None else given

    def _samples(self, X: Any, weights: Any = None) -> tuple[Any, Dataset | None]:
        """X as a matrix with the features of the fit, and the data set it came from."""
        data, weights = as_dataset(X), self._weights(weights)
        missing = weights is not None
        if data is None:
            M = self._matrix(X, reset=False, missing=missing)
        else:
            fitted = self.factorization_.layout
            check_same_features(data.layout, fitted, data.X.shape, self.n_features_in_)
            M = _rows_are_samples(_turned(data.X))
            M = M if isinstance(M, Foreign) else check_array(M, **_MATRIX, **_finite(missing))
        return check_matrix(M, sparse_ok=True, weights=weights) if missing else M, data

    def _matrix(self, X: Any, reset: bool, missing: bool = False) -> Any:
        """X as scikit-learn takes it; of another library's array only the width is looked at."""
        A = _rows_are_samples(X)
        if not isinstance(A, Foreign):
            return validate_data(self, X, reset=reset, **_MATRIX, **_finite(missing))
        A = A.checked("X")
        if reset:
            self.n_features_in_ = A.shape[1]
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        elif A.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {A.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return A

    def _layout_of_table(self, X: Any) -> Layout:
        """Names of a DataFrame's columns and rows."""
        features = getattr(self, "feature_names_in_", None)
        index = X.index if kind_of(X) == "pandas" else None
        if type(index).__name__ == "RangeIndex":
            index = None
        return Layout(features=names_array(features), samples=names_array(index))

    def _names(self, number: int) -> list[str]:
        """Names of a layer's components, as `get_feature_names_out` has them."""
        prefix = type(self).__name__.lower()
        return [f"{prefix}{k}" for k in range(self.factorization_.ranks[number - 1])]

    def _number(self, layer: int | None) -> int:
        return self.layer_ if layer is None else layer_number(layer, self.factorization_.depth)

    def _check_container(self, number: int) -> str:
        """What set_output asks for; its column names belong to the estimator's own layer."""
        own = getattr(self, "_sklearn_output_config", {}).get("transform")
        container = own or get_config()["transform_output"]
        if container != "default" and number != self.layer_:
            raise ValueError(
                f"transform(layer={number}) cannot name its columns under set_output: the names "
                f"are those of layer {self.layer_}. Set the estimator's layer={number} instead."
            )
        return str(container)

    def _accepts_negative(self) -> bool:
        firsts = [
            given[0] if isinstance(given, list | tuple) and given else given
            for given in (self.constraint_W, self.constraint_H)
        ]
        try:
            sets = [resolve("constraint", given) for given in firsts if given is not None]
        except ValueError:  # fit will say what is wrong with it
            return False
        return bool(self.allow_negative) or not all(s.nonnegative for s in sets)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.weights is not None
        tags.input_tags.positive_only = not self._accepts_negative()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _finite(missing: bool) -> dict[str, Any]:
    """What scikit-learn is to look for: with entries missing, that is done elsewhere."""
    return {"ensure_all_finite": not missing}


def _rows_are_samples(X: Any) -> Any:
    """Another library's array as `Foreign`; a lazy one the way that `factorize` sees it."""
    A = as_foreign(X)
    return as_foreign(A.array.T).T if isinstance(A, Foreign) and A.lazy else A


def _turned(X: Any) -> Any:
    """The transpose; what is read in blocks of columns is taken into memory."""
    return (np.asarray(X) if isinstance(X, Stored) else X).T


def _nonnegative(M: Any) -> Any:
    """M, whose entries are not negative: a lazy matrix is looked at as it is computed."""
    if isinstance(M, Foreign) and M.lazy:
        return as_foreign(M.T.by_columns(_nonnegative)).T
    check_sign(M)
    return M


def _norm(M: Any) -> float:
    """||M||, of a matrix of any kind."""
    if isinstance(M, Foreign):
        return M.norm()
    if isinstance(M, Observed):
        return float(M.norm2**0.5)
    return float(np.linalg.norm(M.data if is_sparse(M) else M))
