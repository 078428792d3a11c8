"""The scikit-learn estimator `DeepMF`, whose rows are samples."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from deepmf._factorize import Plan, run
from deepmf.data.assemble import names_array, only_counts
from deepmf.data.containers import (
    Kind,
    as_dataset,
    check_same_features,
    check_table,
    codes_as,
    components_as,
    kind_of,
    links_as,
    samples_as,
    say_left_out,
    weights_within,
)
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.matrix import Matrix, adapted, as_numpy
from deepmf.data.preparation import check_unprepared, prepared_alike, weights_of
from deepmf.data.validation import adapt, as_matrix, check_finite, check_sign
from deepmf.factorization import Factorization, layer_number
from deepmf.fitting.checkpoint import Checkpoint
from deepmf.fitting.control import Callback
from deepmf.fitting.history import History
from deepmf.fitting.recipes import DEFAULTS, RECIPES
from deepmf.fitting.registry import SETTINGS, resolve

_MATRIX: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "accept_sparse": ["csr", "csc"],
    "ensure_all_finite": False,
}
"""Checks left to scikit-learn; `as_matrix` says more about entries that are not finite."""


class DeepMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Deep matrix factorization of samples x features data.

    ::

        X ~ codes_l @ components(l)     for every layer l,

    where layer l has ``ranks[l - 1]`` components and each component of layer l - 1 is itself a
    combination of those of layer l. Parameters speak of the factors as the paper and
    `deepmf.factorize` write them, with samples as columns: W_l are the components of layer l,
    ``components(l).T``; H_1 are the codes of layer 1, ``transform(X, layer=1).T``, and H_l for
    l > 1 makes components of layer l - 1 from those of layer l: ``X.T ~ W_1 H_1, W_1 ~ W_2 H_2``.

    Parameters
    ----------
    ranks : int or sequence of ints, default (8, 4, 2)
        Number of components of each layer, normally decreasing. One number is NMF with a single
        layer.
    weights : None or "observed"
        ``"observed"``: NaN in X are missing entries and the others are fitted, in `fit`,
        `transform` and `score`. ``None`` (default): NaN are refused. For a weight of each entry
        give an array to `fit`.
    recipe : {"scene", "topics", "cells", "images"}, optional
        Settings measured to give good answers for a kind of data: model, constraints, penalties,
        start, direction of depth, stopping, and for raw counts how to scale them and how many
        features to keep. Arguments that are given win; those left out are the recipe's. ``None``
        (default) and ``"none"``: the defaults below.
    scale : {"tfidf", "sublinear-tfidf", "log", "unit", "none"}, optional
        How samples are scaled first: counts of words by their rarity, counts of genes by the
        logarithm of their share, all to norm one. The result keeps what X was scaled by, and scales
        new samples alike. ``None`` (default): not at all, or as the recipe has it for raw counts
        under squared errors.
    max_features : int or "all", optional
        Number of features to keep: those of largest variance over the samples, once these are
        scaled. For arrays and sparse matrices in memory. The result keeps which these are, and new
        samples, which have all features, are reduced to them. ``None`` (default): all, or as the
        recipe has it for raw counts that it scales, 3000 in ``"cells"``; ``"all"``: all.
    model : str or Loss
        What is minimized, over all layers at once unless said otherwise; W_0 is X.T:

        ``"layer-centric"`` (default)
            ``1/2 sum_l lam_l ||W_{l-1} - W_l H_l||^2``: each layer fits the components of the one
            before, and is fitted by the next.
        ``"data-centric"``
            ``1/2 sum_l mu_l ||W_0 - W_l H_l ... H_1||^2``: each layer fits the data.
        ``"multilayer"``
            ``1/2 ||W_{l-1} - W_l H_l||^2``, one layer after the other, each to its end.
        ``"trigeorgis"``
            The updates of Trigeorgis et al., which share no loss: a baseline.

        An object has its own weights, ``LayerCentric(lam=1)`` or ``DataCentric(mu=0.5)``; a
        subclass of `Loss` is a model of your own.
    constraint_W, constraint_H : None, str, Constraint, or a list with one per layer
        Sets that W_l and H_l must lie in: ``"nonnegative"``, ``"none"`` (signed), ``"simplex"``
        (nonnegative, columns sum to 1), ``"capped-simplex"`` (at most 1), ``"box"`` (0 to 1),
        ``"one-parent"`` for H_l with l >= 2 (one nonzero entry per column: a tree), or objects
        such as ``Box(0, 5)``, ``GroupedSparse(0.8)`` (average sparsity of the columns) and
        ``Fixed(values)`` (known components). ``None`` (default): nonnegative, with columns that
        sum to 1 where the model or the penalty needs a W of fixed scale.
    regularizer_W, regularizer_H : None, str, Regularizer, or a list with one per layer
        Penalties added to the loss: ``MinVolume()``, ``1/2 logdet(W'W + delta I)`` for W
        (components close to the data), ``Ridge(weight)``, ``1/2 ||M||^2``, ``L1(weight)``,
        ``||M||_1`` (sparse), or their names ``"min-volume"``, ``"ridge"``, ``"l1"``. A weight is
        relative to the error of the layer's own fit, and so free of the data's units; the
        minimum volume's follows from a likelihood and needs no tuning. ``"none"``, or ``None``
        without a recipe: no penalty.
    hierarchy : {"components", "codes"}, default "components"
        What each layer factors of the one before: its components, ``W_{l-1} ~ W_l H_l``, so that
        those with similar features join, or its codes, ``H_{l-1} ~ W_l H_l``, so that those that
        occur together join.
    normalize : {"sum", "norm", "codes"}, default "sum"
        What is one in the result, where the model leaves scales open: the sum of a component's
        entries, so that codes are shares of mass; its norm; or the mean square of its codes.
    beta_loss : str, float or a list with one per layer, default "frobenius"
        How far a product is from what it fits: ``"frobenius"``, half the squared error;
        ``"kullback-leibler"``, for counts; ``"itakura-saito"``, for powers, as in spectra of sound;
        or a number b from 0 (Itakura-Saito) over 1 (Kullback-Leibler) to 2 (squared error). X and
        all factors are then nonnegative. A list may mix them:
        ``["kullback-leibler", "frobenius"]`` fits counts, and squared errors below.
    init : None, str, function, a list of these, or (Ws, Hs)
        Where to start. ``"k-means"``: from centers of clusters; ``"snpa"``: from extreme samples,
        where some are nearly pure; ``"vca"`` and ``"nfindr"``: likewise; ``"mv-dual"``: from a
        simplex around the samples, where none is pure; ``"hierarchical"``: from representatives
        of clusters; ``"nndsvd"``: from singular vectors; ``"merged"``: from merged components of
        the layer before; ``"random"``; a function ``start(panels, rank, rng) -> W``; or feasible
        factors, (Ws, Hs) as above. ``None`` (default): ``"k-means"``, with
        a seed of its own; ``"snpa"`` where there are fewer clusters than components; ``"random"``
        where W may be negative, or entries are missing or weighted. A list such as
        ``["snpa", "k-means"]`` fits each layer alone from each, and keeps the fit with the lowest
        objective; ``"default"`` in it is used only where all others fail.
    augment : int, optional
        Sweeps of each layer alone before the next is started from its components; 0: all layers
        are started first and then swept together, as in the paper. ``None`` (default): each layer
        is first fitted alone until it settles. ``"multilayer"`` always runs ``max_iter`` here.
    solver : str or Solver
        How one factor is improved while the others stay: ``"fpgm"`` (default), fast projected
        gradients with restarts, for all constraints; ``"pg"``, without acceleration; ``"hals"``,
        row by row; ``"mu"``, multiplicative updates, for nonnegative factors.
    max_iter : int, default 500
        Largest number of sweeps, each of which updates all factors once (per layer for
        ``"multilayer"``). Reaching it gives a ``ConvergenceWarning``.
    tol : float, default 1e-4, or the recipe's
        Stop when a sweep decreases the objective by less than this fraction of the loss; with
        a minimum volume, when several sweeps do. 0 disables the test: exactly ``max_iter`` sweeps
        are run.
    max_time : float, optional
        Stop after the sweep during which this many seconds have passed.
    inner_iter : int, default 10
        Largest number of steps in one update of a factor.
    inner_tol : float, default 0.01
        An update ends earlier once a step is shorter than this fraction of its first.
    extrapolate : bool, default True
        Extrapolate between sweeps, and undo any sweep that increases the objective: several times
        fewer sweeps are needed. False: plain sweeps, as in the paper.
    layer : int, default -1
        The layer that `transform` codes in and that `components_`, `score` and
        ``reconstruction_err_`` are of; -1 is the last. `at_layer` gives others after the fit.
    allow_negative : bool, default False
        Fit negative entries of X (noise, say) though both factors of layer 1 are nonnegative;
        False: refuse them.
    random_state : None, int, Generator or RandomState
        Seed of random starts: an integer makes fits reproducible, ``None`` (default) does not.
    callbacks : callable or list of callables, optional
        Called after each sweep with a `Progress` (sweep, objective, errors, time), ``print`` for
        example; a true return value stops the fit.
    device : str or torch.device, optional
        ``"cuda"``: work there, in `fit`, `transform` and `score`. Default: where X is.
    checkpoint : path or Checkpoint, optional
        Checkpoint file, written every minute; the same `fit` resumes from it after it was stopped
        or killed. It is removed when the fit has ended by itself. Default: none.

    Attributes
    ----------
    factorization_ : Factorization
        The fitted factors, in the paper's orientation (columns are samples).
    components_ : array, ranks[layer - 1] x n_features
        Components of the chosen layer, with the features that are kept.
    history_ : History
        Per sweep: objective, errors of both kinds per layer, time.
    stop_reason_ : str
        Why the fit ended.
    n_iter_ : int
        Number of sweeps.
    reconstruction_err_ : float
        ||X - codes components|| of the chosen layer, on the training data; with another
        ``beta_loss`` the root of twice that distance, as scikit-learn's NMF has it.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn: those of the data, of which ``max_features`` keeps some.

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
        recipe: str | None = None,
        scale: str | None = None,
        max_features: int | str | None = None,
        model: object = None,
        constraint_W: object = None,
        constraint_H: object = None,
        regularizer_W: object = None,
        regularizer_H: object = None,
        hierarchy: object = None,
        normalize: object = None,
        beta_loss: object = None,
        init: object = None,
        augment: int | None = None,
        solver: object = "fpgm",
        max_iter: int = 500,
        tol: float | None = None,
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
        self.recipe = recipe
        self.scale = scale
        self.max_features = max_features
        self.model = model
        self.constraint_W = constraint_W
        self.constraint_H = constraint_H
        self.regularizer_W = regularizer_W
        self.regularizer_H = regularizer_H
        self.hierarchy = hierarchy
        self.normalize = normalize
        self.beta_loss = beta_loss
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

    def set_params(self, **params: Any) -> Self:
        """Change parameters, those of their parts too: ``model__lam``, ``regularizer_W__weight``.

        A part that is given by its name becomes the object of that name.

        Parameters
        ----------
        **params
            By name, or ``PARAMETER__PART`` for a part of what a parameter holds.

        Returns
        -------
        DeepMF
            The estimator itself.
        """
        name = params.get("recipe", self.recipe)
        recipe = RECIPES.get(name) if isinstance(name, str) else None  # `fit` refuses others
        defaults = {**DEFAULTS, **({} if recipe is None else recipe.settings)}
        parts: dict[str, dict[str, Any]] = {}
        for key in list(params):
            name, _, part = key.partition("__")
            held = params.get(name, getattr(self, name, None))
            held = defaults.get(name) if held is None else held
            if part and name in self._get_param_names() and not hasattr(held, "set_params"):
                if name not in SETTINGS:
                    raise ValueError(
                        f"Invalid parameter {part!r} for {name}, which has no parameters of its "
                        f"own: set {name} itself."
                    )
                if held is None or isinstance(held, list | tuple):
                    raise ValueError(_no_part(name, part, held))
                spec = held if isinstance(held, Mapping) else {"name": held}
                parts.setdefault(name, {**spec})[part] = params.pop(key)
        params |= {name: resolve(SETTINGS[name], spec) for name, spec in parts.items()}
        return super().set_params(**params)

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
            How much each entry of X counts: 0 leaves it out, and so does NaN under
            ``"observed"``. Default: as the estimator's own ``weights`` say.

        Returns
        -------
        DeepMF
            The estimator itself.
        """
        # Clones: parameters set after the fit must not change what was fitted.
        settings = {
            name: value if name in ("init", "callbacks", "checkpoint") else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        layer, device = settings.pop("layer"), settings.pop("device")
        del settings["weights"]  # they go along with the data
        plan = Plan.of(**settings)
        number = layer_number(layer, len(plan.problem.ranks))
        kind, weights = kind_of(X), self._weights(weights)
        data = as_dataset(X, weights=weights)
        if data is not None:
            say_left_out(X, data)
        M, layout = self._matrix(X, data, weights, device, plan)
        f = run(M, layout, plan)
        if data is not None and kind == "anndata":
            self.feature_names_in_ = np.asarray(data.layout.features, dtype=object)
        self._fitted_kind: Kind = kind
        self.factorization_: Factorization = f
        self.history_: History = f.history
        self.stop_reason_ = f.stop_reason
        self.n_iter_ = f.n_iter
        return self._show(number)

    def fit_transform(self, X: Any, y: object = None, weights: Any = None) -> Any:
        """``fit(X, weights=weights).transform(X, weights=weights)``.

        Parameters
        ----------
        X, y, weights
            As in `fit`.

        Returns
        -------
        array, n_samples x n_components
            As from `transform`.
        """
        return self.fit(X, weights=weights).transform(X, weights=weights)

    def transform(self, X: Any, layer: int | None = None, weights: Any = None) -> Any:
        """Codes of samples, new or old, in the given layer (default: the estimator's own).

        A sample's codes depend on the sample and the components alone (unless constraint_H ties
        samples together, as `GroupedSparse` does); ``fit_transform(X)`` and
        ``fit(X).transform(X)`` are equal.

        Parameters
        ----------
        X : matrix, n_samples x n_features, or AnnData, xarray.DataArray, deepmf Dataset
            Samples with the features of the fit.
        layer : int, optional
            From 1, or from the end with negative numbers; for named columns see `at_layer`.
        weights : None, "observed", or array, n_samples x n_features
            As in `fit`: a sample is coded by what is observed of it.

        Returns
        -------
        array, n_samples x n_components
            For AnnData a DataFrame with its obs_names; for an xarray cube a DataArray of maps with
            its coordinates and a ``component`` dimension, NaN at pixels without data.
        """
        check_is_fitted(self)
        number = self._number(layer)
        output = self._check_container(number)
        weights = self._weights(weights)
        data = as_dataset(X, weights=weights)
        M: Any = self._matrix(X, data, weights, self.device)[0]
        if self.factorization_.problem.nonnegative and not self.allow_negative:
            M = M.by_columns(_nonnegative) if M.lazy else _nonnegative(M)
        codes = self.factorization_.encode(M, number, self.device).T
        codes = np.ascontiguousarray(codes) if isinstance(codes, np.ndarray) else codes
        kind = kind_of(X)
        if data is None or output not in ("default", "pandas" if kind == "anndata" else "default"):
            return codes
        return codes_as(kind, codes, data.layout, self._names(number))

    def inverse_transform(self, codes: Any, layer: int | None = None) -> Any:
        """codes @ components(layer): back to features.

        Parameters
        ----------
        codes : matrix, n_samples x n_components
            As `transform` gives them, in any kind.
        layer : int, optional
            The layer they are codes of. Default: the estimator's own.

        Returns
        -------
        array, n_samples x n_features
            In the kind that the codes are: a DataFrame for one, if features had names in the fit,
            and a cube again for maps of one. With the features that ``max_features`` kept.
        """
        check_is_fitted(self)
        number = self._number(layer)
        rank = self.factorization_.ranks[number - 1]
        if kind_of(codes) == self._fitted_kind == "xarray":
            if codes.sizes.get("component") != rank:
                raise ValueError(
                    f"codes has sizes {dict(codes.sizes)}; layer {number} needs a dimension "
                    f"'component' of size {rank}."
                )
            maps, rows = (  # xarray would only take the names that both have
                A.drop_vars("component", errors="ignore") for A in (codes, self.components(number))
            )
            return maps.dot(rows, dim="component").rename(None)
        M = adapt(codes, "codes").T
        if not M.lazy:
            check_finite(M, "codes")
        if M.shape[0] != rank:
            raise ValueError(
                f"codes has shape {M.shape[::-1]}; layer {number} needs (n_samples, {rank})."
            )
        X = M.array.T @ M.own(as_numpy(self.factorization_.basis(number)).T)
        return samples_as(kind_of(codes), X, codes, self.factorization_.layout)

    def components(self, layer: int) -> Any:
        """The layer's components, one per row.

        Parameters
        ----------
        layer : int
            From 1, or from the end with negative numbers.

        Returns
        -------
        array, n_components x n_features
            A DataFrame after a fit to a DataFrame with names or to AnnData, a DataArray after one
            to a cube; `components_` is always an array.
        """
        check_is_fitted(self)
        number, f = self._number(layer), self.factorization_
        return components_as(self._fitted_kind, f.basis(number).T, f.layout, self._names(number))

    @property
    def components_(self) -> Any:
        """Components of the estimator's layer, one per row, as an array."""
        check_is_fitted(self)
        return self.factorization_.basis(self.layer_).T

    def links(self, layer: int = -1) -> Any:
        """Share of each of the layer's components (rows) in those of the layer before (columns).

        Parameters
        ----------
        layer : int, default -1
            From 2, or from the end with negative numbers.

        Returns
        -------
        array, n_components x n_components of the layer before
            Columns add up to 1. A DataFrame or DataArray where `components` gives one.
        """
        check_is_fitted(self)
        number, f = self._number(layer), self.factorization_
        shares, parts = f.links(number), self._names(number - 1)
        return links_as(self._fitted_kind, shares, f.layout, self._names(number), parts)

    def at_layer(self, layer: int) -> Self:
        """Copy of the estimator that shows another layer of its fit; nothing is fitted again.

        Parameters
        ----------
        layer : int
            From 1, or from the end with negative numbers.

        Returns
        -------
        DeepMF
            A fitted estimator that shares the factors of this one, with this layer's codes, names
            of columns, `components_`, `score` and ``reconstruction_err_``.
        """
        check_is_fitted(self)
        number = self._number(layer)
        other = clone(self).set_params(layer=number)
        fitted = {name: value for name, value in vars(self).items() if name not in vars(other)}
        vars(other).update(fitted)
        return other._show(number)

    def tree(
        self,
        labels: Sequence[Sequence[str] | None] | None = None,
        top: int = 3,
        features: Sequence[str] | None = None,
    ) -> str:
        """The hierarchy as text: each component below the one that has its largest share.

        Parameters
        ----------
        labels : per layer a sequence of str or None, optional
            Names of the components. Default: layer and number, ``L1-1``.
        top : int
            How many features of each component are named, those of its largest entries.
        features : sequence of n_features str, optional
            Names of the features, such as ``vectorizer.get_feature_names_out()``; all of them, or
            those kept. Default: those of the data of `fit`; without them, no features are named.

        Returns
        -------
        str
            One line for each component of each layer, see `Factorization.tree`.
        """
        check_is_fitted(self)
        return self.factorization_.tree(labels, top, features)

    def score(self, X: Any, y: object = None, weights: Any = None) -> float:
        """Minus the mean squared error of X's approximation in the estimator's layer.

        With another ``beta_loss`` minus the mean deviance, twice that distance.

        Parameters
        ----------
        X : matrix, n_samples x n_features, or AnnData, xarray.DataArray, deepmf Dataset
            Samples with the features of the fit, coded as `transform` does.
        y : ignored
        weights : None, "observed", or array, n_samples x n_features
            As in `fit`; the mean is then a weighted one, over what is observed.

        Returns
        -------
        float
            At most 0; larger is better, as model selection wants it.
        """
        check_is_fitted(self)
        weights = self._weights(weights)
        M, _ = self._matrix(X, as_dataset(X, weights=weights), weights, self.device)
        return -self.factorization_.deviance(M, self.layer_) / M.total_weight

    def _weights(self, given: Any) -> Any:
        """Weights that a method was given, else the estimator's own."""
        if self.weights is not None and not isinstance(self.weights, str):
            raise ValueError(
                "DeepMF's own weights must be None or 'observed', got an array or the like: give "
                "it to the method instead, fit(X, weights=...)."
            )
        return self.weights if given is None else given

    def _matrix(
        self, X: Any, data: Dataset | None, weights: Any, device: Any, plan: Plan | None = None
    ) -> tuple[Matrix, Layout]:
        """Samples, perhaps of a data set, as a prepared matrix, and the layout of the fit.

        ``plan`` is that of a fit, which decides how samples are prepared.
        """
        fitting = plan is not None
        plain, table = data is None and adapted(X) is None, X
        if data is not None:
            if not fitting:
                fitted = self.factorization_.layout
                check_same_features(data.layout, fitted, data.X.shape, self.n_features_in_)
            X, weights = data.X.T, weights_within(data, weights, "rows")
        elif plain:
            X = self._validated(X, fitting)
        if plan is not None:
            layout = self._layout_of_table(table) if data is None else data.layout
            if not plan.preparation.none:
                columns, layout, weights = plan.preparation.of(X.T, layout, weights, "rows")
                X = columns.T
        else:
            layout = self.factorization_.layout
            if layout.scaling is not None or layout.kept is not None:
                check_unprepared(X, weights, "rows")
                X, weights = prepared_alike(X.T, layout).T, weights_of(weights, layout.kept, "rows")
        M = as_matrix(X, weights=weights, device=device, samples="rows")
        if fitting and not plain:
            self.n_features_in_: int = M.shape[0] if layout.kept is None else layout.kept.size
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        elif not fitting and M.shape[0] != len(self.factorization_.W[0]):
            raise ValueError(
                f"X has {M.shape[0]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return M, layout

    def _validated(self, X: Any, reset: bool) -> Any:
        """A table, an array or a sparse matrix that scikit-learn has checked; masks are kept."""
        try:
            A = validate_data(self, X, reset=reset, **_MATRIX)
        except (TypeError, ValueError):
            if kind_of(X) == "pandas":
                check_table(X)
            raise
        return np.ma.array(A, mask=X.mask) if np.ma.is_masked(X) else A

    def _layout_of_table(self, X: Any) -> Layout:
        """Names of a DataFrame's columns and rows."""
        features = getattr(self, "feature_names_in_", None)
        index = X.index if kind_of(X) == "pandas" else None
        samples = None if only_counts(index) else names_array(index)
        return Layout(features=names_array(features), samples=samples)

    def _names(self, number: int) -> list[str]:
        """Names of a layer's components, as `get_feature_names_out` has them."""
        prefix = type(self).__name__.lower()
        return [f"{prefix}{k}" for k in range(self.factorization_.ranks[number - 1])]

    def _show(self, number: int) -> Self:
        """Take a layer of the fit for the estimator's own."""
        f = self.factorization_
        self.layer_ = number
        self._n_features_out = f.ranks[number - 1]
        error = float(f.history.data_errors[-1, number - 1])
        self.reconstruction_err_ = (f.data_sizes[number - 1] * error) ** 0.5
        return self

    def _number(self, layer: int | None) -> int:
        return self.layer_ if layer is None else layer_number(layer, self.factorization_.depth)

    def _check_container(self, number: int) -> str:
        """The container that set_output asks for, whose column names are of one layer only."""
        own = getattr(self, "_sklearn_output_config", {}).get("transform")
        container = own or get_config()["transform_output"]
        if container != "default" and number != self.layer_:
            raise ValueError(
                f"transform(X, layer={number}) cannot name its columns under set_output, which "
                f"names those of layer {self.layer_}: write model.at_layer({number}).transform(X)."
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


def _no_part(name: str, part: str, held: object) -> str:
    """Why a parameter that holds nothing, or a list, has no such part, and what to do."""
    if held is None:
        example = "min-volume" if SETTINGS[name] == "regularizer" else "box"
        return f"{name} is None; name one first, such as {name}={example!r}."
    return f"{name} has one per layer; set the whole list instead of {name}__{part}."


def _nonnegative(X: Any) -> Any:
    """New samples, whose entries are not negative."""
    check_sign(adapt(X), new=True)
    return X
