"""Fits a deep factorization to a matrix whose columns are samples."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepmf._utils.messages import SettingError, setting
from deepmf._utils.rng import generator
from deepmf.core.parameters import check_integer
from deepmf.data.containers import as_columns
from deepmf.data.layout import Layout
from deepmf.data.matrix import Matrix
from deepmf.data.panels import Panels
from deepmf.data.preparation import Preparation
from deepmf.data.validation import (
    as_matrix,
    check_divergence,
    check_scale,
    check_seen,
    check_sign,
    check_whole,
)
from deepmf.factorization import Factorization
from deepmf.fitting.add_layer import Given, check_given
from deepmf.fitting.checkpoint import Checkpoint
from deepmf.fitting.control import Callback, Control
from deepmf.fitting.diagnostics import findings, warn_of_findings
from deepmf.fitting.fingerprint import fingerprint
from deepmf.fitting.fit import Fit, fit
from deepmf.fitting.problem import Problem, build_problem, check_ranks
from deepmf.fitting.recipes import preparation_of, recipe_of, with_recipe
from deepmf.fitting.registry import name_of_start, resolve_start
from deepmf.init import Start


def factorize(
    X: Any,
    ranks: int | Sequence[int],
    *,
    weights: Any = None,
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
    random_state: Any = None,
    allow_negative: bool = False,
    callbacks: Callback | Sequence[Callback] | None = None,
    panel_size: int | None = None,
    device: Any = None,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
) -> Factorization:
    """Factor X into layers: X ~ W_1 H_1, W_1 ~ W_2 H_2, ..., W_{L-1} ~ W_L H_L.

    Columns of X are data points, as in the paper; for scikit-learn's orientation see `DeepMF`.

    Parameters
    ----------
    X : matrix, m x n, or AnnData, xarray.DataArray, Dataset
        m features x n samples. float32 stays float32; other numbers become float64. Never copied
        if it has one of these types. Masked entries of a ``numpy.ma`` array are missing. A SciPy
        sparse array or matrix stays sparse (CSR is converted to CSC once). A PyTorch tensor is
        worked on where it is, and the factors are tensors there. A Dask array is worked on by the
        workers of the `distributed.Client` in use, and ``H[0]`` is one too. Of AnnData, obs are the
        samples, of an xarray cube the pixels with data; their names and coordinates, or the layout
        of a `Dataset` as `deepmf.io.read` gives it, are kept in the result. Columns of a DataFrame
        are samples here, which is said in a warning.
    ranks : int or sequence of ints
        r_1, ..., r_L: the number of components of each layer, normally decreasing. One number is
        NMF with a single layer.
    weights : None, "observed", or matrix, m x n
        How much each entry of X counts: errors are sums over entries times their weights, divided
        by the largest weight. 0 leaves an entry out, and so does NaN under ``"observed"``, where
        all others count the same. For arrays and data on disk. ``None`` (default): all count the
        same, and NaN are refused.
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
        What is minimized, over all layers at once unless said otherwise; W_0 is X:

        ``"layer-centric"`` (default)
            ``1/2 sum_l lam_l ||W_{l-1} - W_l H_l||^2``: each layer fits the components of the one
            before, and is fitted by the next.
        ``"data-centric"``
            ``1/2 sum_l mu_l ||X - W_l H_l ... H_1||^2``: each layer fits the data.
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
        factors, a pair of lists with one matrix per layer. ``None`` (default): ``"k-means"``, with
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
    random_state : None, int, Generator or RandomState
        Seed of random starts: an integer makes fits reproducible, ``None`` (default) does not.
    allow_negative : bool, default False
        Fit negative entries of X (noise, say) though both factors of layer 1 are nonnegative;
        False: refuse them.
    callbacks : callable or list of callables, optional
        Called after each sweep with a `Progress` (sweep, objective, errors, time), ``print`` for
        example; a true return value stops the fit.
    panel_size : int, optional
        Columns of X worked on at a time; the result does not depend on it. Default: by the size of
        X.
    device : str or torch.device, optional
        ``"cuda"``: work there on X, which is sent once if there is room and else block by block;
        the factors come back in the kind that X is. Default: where X is.
    checkpoint : path or Checkpoint, optional
        Checkpoint file, written every minute (``Checkpoint(path, interval=seconds)`` to change
        that). The same call resumes from it after the process was killed or interrupted, or
        stopped by ``max_time`` or a callback, and gives the same result, bit for bit with the same
        number of threads. The file is removed when the fit has ended by itself. Not for Dask
        arrays. Default: none.

    Returns
    -------
    Factorization
        With ``.W``, ``.H`` (lists), ``.history``, ``.stop_reason``, ``.tree``, ``.save``.

    Examples
    --------
    >>> from deepmf import factorize
    >>> from deepmf.datasets import synthetic
    >>> data = synthetic(noise=0.01, random_state=0)
    >>> f = factorize(data.X, [6, 3], recipe="scene", allow_negative=True)
    >>> [W.shape for W in f.W], [H.shape for H in f.H]
    ([(3, 6), (3, 3)], [(6, 1000), (3, 6)])
    """
    plan = Plan.of(
        ranks,
        recipe=recipe,
        scale=scale,
        max_features=max_features,
        model=model,
        constraint_W=constraint_W,
        constraint_H=constraint_H,
        regularizer_W=regularizer_W,
        regularizer_H=regularizer_H,
        hierarchy=hierarchy,
        normalize=normalize,
        beta_loss=beta_loss,
        init=init,
        augment=augment,
        solver=solver,
        max_iter=max_iter,
        tol=tol,
        max_time=max_time,
        inner_iter=inner_iter,
        inner_tol=inner_tol,
        extrapolate=extrapolate,
        random_state=random_state,
        allow_negative=allow_negative,
        callbacks=callbacks,
        panel_size=panel_size,
        checkpoint=checkpoint,
    )
    data, layout, weights = as_columns(X, weights)
    data, layout, weights = plan.preparation.of(data, layout, weights)
    return run(as_matrix(data, weights=weights, device=device), layout, plan)


@dataclass(frozen=True)
class Plan:
    """Settings of a fit, built and checked before any data are touched."""

    problem: Problem
    preparation: Preparation
    control: Control
    starts: list[Start] | tuple[Any, Any]
    """Starts to fit from, or the user's own factors (Ws, Hs)."""
    random_state: Any
    rng: np.random.Generator
    allow_negative: bool
    panel_size: int | None
    checkpoint: Checkpoint | None

    @classmethod
    def of(
        cls,
        ranks: int | Sequence[int],
        *,
        recipe: object,
        scale: str | None,
        max_features: int | str | None,
        model: object,
        constraint_W: object,
        constraint_H: object,
        regularizer_W: object,
        regularizer_H: object,
        hierarchy: object,
        normalize: object,
        beta_loss: object,
        init: object,
        solver: object,
        callbacks: Callback | Sequence[Callback] | None,
        random_state: Any,
        allow_negative: bool,
        tol: float | None,
        checkpoint: Checkpoint | str | os.PathLike[str] | None,
        panel_size: int | None = None,
        **control: Any,
    ) -> Plan:
        """The plan that the arguments of `factorize` describe; ``control`` goes to `Control`."""
        chosen = recipe_of(recipe)
        preparation = preparation_of(chosen, scale, max_features, beta_loss)
        given = {
            "model": model,
            "constraint_W": constraint_W,
            "constraint_H": constraint_H,
            "regularizer_W": regularizer_W,
            "regularizer_H": regularizer_H,
            "hierarchy": hierarchy,
            "normalize": normalize,
            "beta_loss": beta_loss,
            "init": init,
            "tol": tol,
        }
        settings = with_recipe(chosen, given, len(check_ranks(ranks)))
        init, tol = settings.pop("init"), settings.pop("tol")
        problem = build_problem(ranks, solver=solver, **settings)
        if panel_size is not None:
            check_integer(setting("panel_size"), panel_size, 1)
        return cls(
            problem=problem,
            preparation=preparation,
            control=Control(
                tol=tol, callbacks=(callbacks,) if callable(callbacks) else callbacks, **control
            ),
            starts=_starts(init, problem),
            random_state=random_state,
            rng=generator(random_state),
            allow_negative=allow_negative,
            panel_size=panel_size,
            checkpoint=Checkpoint.of(checkpoint),
        )


def run(data: Matrix, layout: Layout, plan: Plan) -> Factorization:
    """Fit a validated matrix whose columns are samples."""
    problem, control, to_file = plan.problem, plan.control, plan.checkpoint
    if to_file is not None and data.lazy:
        raise ValueError(
            "checkpoint is not for Dask arrays, whose codes stay on the workers (which may be lost "
            "without one); leave it out, or pass X.compute() if it fits in memory."
        )
    whole = problem.codes_constraint
    check_whole(data, whole)
    check_seen(data)
    check_scale(data)
    if problem.fits:
        check_divergence(data, problem.beta_loss)
    if problem.nonnegative and not plan.allow_negative:
        check_sign(data)
    width = plan.panel_size
    if width is None and whole.separable is None:
        width = data.shape[1]  # a set that ties all columns of H_1 needs them in one panel
    panels: Panels
    with data.panels(width) as panels:
        starts: list[Start | Given] = (
            [check_given(*plan.starts, problem, panels)]
            if isinstance(plan.starts, tuple)
            else [*plan.starts]
        )
        if to_file is not None:
            owner = fingerprint(
                panels,
                problem,
                starts,
                plan.random_state,
                augment=control.augment,
                inner_iter=control.inner_iter,
                inner_tol=control.inner_tol,
                extrapolate=control.extrapolate,
            )
            to_file.bind(owner)
        done = fit(panels, problem, starts, control, plan.rng, to_file)
        found = findings(done, problem, panels, layout, [*map(name_of_start, starts)], control.tol)
        f = replace(_result(done, panels, problem, layout), findings=found)
    warn_of_findings(found)
    return f


def _starts(init: object, problem: Problem) -> list[Start] | tuple[Any, Any]:
    """One start, several (a list of names and functions), or the user's own factors (Ws, Hs)."""
    signed = not problem.layers[0].constraint_W.nonnegative
    if isinstance(init, list | tuple):
        if not init:
            raise SettingError(
                f"{setting('init')} is empty: name one start or several, such as "
                f"{setting(init=['snpa', 'k-means'])}, or leave it out for the default."
            )
        if all(isinstance(start, str) or callable(start) for start in init):
            return [resolve_start(start, signed) for start in init]
        if len(init) == 2 and not any(M is None or isinstance(M, str) or callable(M) for M in init):
            return (init[0], init[1])
    return [resolve_start(init, signed)]


def _result(done: Fit, panels: Panels, problem: Problem, layout: Layout) -> Factorization:
    s, codes = done.state, panels.codes.H
    H = [codes[s.rows(k)] for k in range(s.depth)] if s.over_codes else [codes, *s.H[1:]]
    return Factorization(
        W=[panels.own(W) for W in s.W],
        H=[panels.own(M) for M in H],
        scales=s.scales,
        history=done.history,
        stop_reason=done.stop_reason,
        starts=done.starts,
        weights=done.weights,
        problem=problem,
        strength=done.strengths[0],
        deeper_strengths=done.strengths[1:],
        data_sizes=done.data_sizes,
        layout=layout,
    )
