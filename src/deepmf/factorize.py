"""The one function most users need."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from deepmf.advice import advice
from deepmf.checkpoint import Checkpoint
from deepmf.dataset import Dataset
from deepmf.factorization import Factorization
from deepmf.fingerprint import fingerprint
from deepmf.fit import Callback, Control, Fit, fit
from deepmf.foreign import Foreign
from deepmf.growth import Given, check_given
from deepmf.init import Start
from deepmf.layout import Layout
from deepmf.names import resolve_start
from deepmf.panels import Panels, as_panels
from deepmf.problem import Problem, build_problem
from deepmf.random_state import generator
from deepmf.validation import check_matrix, check_scale, check_seen, check_sign, check_whole


def factorize(
    X: Any,
    ranks: int | Sequence[int],
    *,
    weights: Any = None,
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
    X : matrix, m x n, or Dataset
        float32 stays float32; other numbers become float64. Never copied if it is already floating.
        A SciPy sparse array or matrix stays sparse (CSR is converted to CSC once). A PyTorch tensor
        is worked on where it is, and the factors are tensors there. A Dask array is worked on by
        the workers of the `distributed.Client` in use, and ``H[0]`` is one too. The layout of a
        `Dataset`, as `deepmf.io.read` gives it, goes on to the result.
    ranks : int or sequence of ints
        r_1, ..., r_L, one per layer, normally decreasing. One rank is single-layer NMF.
    weights : None, "observed", or matrix, m x n
        How much each entry of X counts: errors are sums over entries times their weights, divided
        by the largest weight. 0 leaves an entry out, and so does NaN under ``"observed"``, where
        all others count the same. For arrays and data on disk.
    model : str or Loss
        ``"layer-centric"`` (default), ``"data-centric"``, ``"multilayer"``, ``"trigeorgis"``, or an
        instance with its own weights such as ``LayerCentric(lam=1)``.
    constraint_W, constraint_H : None, str, Constraint, or a list with one per layer
        ``"nonnegative"`` (default), ``"none"``, ``"simplex"``, ``"capped-simplex"``, ``"box"``,
        ``"grouped-sparse"``, or instances such as ``GroupedSparse(0.8)``; ``Fixed(values)`` holds
        known components. Under `MinVolume` the default for W is ``"simplex"``: every basis vector
        sums to 1.
    regularizer_W, regularizer_H : None, str, Regularizer, or a list with one per layer
        ``MinVolume``, ``Ridge``, ``L1``, or your own.
    init : None, str, function, a list of these, or (Ws, Hs)
        ``"snpa"``, ``"hierarchical"``, ``"nndsvd"``, ``"random"``, a function
        ``start(panels, rank, rng) -> W``, or a pair of lists of feasible factors. Default:
        ``"nndsvd"``, and ``"random"`` where the rank exceeds the data's dimensions, W may be
        negative, or entries are missing or weighted. A list such as
        ``["hierarchical", "snpa"]`` fits from each, all weighted as the first, and keeps the one
        with the lowest objective.
    augment : int
        Sweeps of each layer alone before the next layer is started from its basis (multilayer
        always runs all of ``max_iter`` there).
    solver : str or Solver
        ``"fpgm"`` (default), ``"pg"``, ``"hals"``, ``"mu"``.
    max_iter : int
        Largest number of sweeps (per layer for ``"multilayer"``).
    tol : float
        Stop when a sweep decreases the objective by less than this fraction of the loss. 0: never.
    max_time : float, optional
        Stop after the sweep during which this many seconds have passed.
    inner_iter, inner_tol : int, float
        Cap on the iterations of one block update; they end earlier once a step is shorter than
        ``inner_tol`` times the first one.
    extrapolate : bool
        Begin each sweep ahead of where the last one ended, and take it back where the objective
        rose: several times fewer sweeps. False: plain sweeps, as in the paper.
    random_state : None, int, Generator or RandomState
        Makes random starts reproducible.
    allow_negative : bool
        Fit negative entries of X (noise, say) though both factors are nonnegative.
    callbacks : callable or list of callables
        Called with a `Progress` after each sweep; a true return value stops the fit.
    panel_size : int, optional
        Columns of X worked on at a time. The result does not depend on it.
    device : str or torch.device, optional
        ``"cuda"``: work there on X, which is sent once if there is room and else block by block;
        the factors come back in the kind that X is.
    checkpoint : path or Checkpoint, optional
        A file that is written every minute (``Checkpoint(path, interval=...)``: so many seconds),
        and from which the same call goes on if the process was killed or interrupted, or stopped by
        ``max_time`` or a callback: to the same result, bit for bit on as many threads. It is
        removed when the fit has ended by itself. Not for Dask arrays.

    Returns
    -------
    Factorization
        With ``.W``, ``.H`` (lists), ``.history``, ``.stop_reason``, ``.save``.

    Examples
    --------
    >>> from deepmf import MinVolume, factorize
    >>> from deepmf.datasets import synthetic
    >>> data = synthetic(noise=0.01, random_state=0)
    >>> f = factorize(data.X, [6, 3], regularizer_W=MinVolume(1e-3), init="snpa",
    ...               allow_negative=True)
    >>> [W.shape for W in f.W], [H.shape for H in f.H]
    ([(3, 6), (3, 3)], [(6, 1000), (3, 6)])
    """
    layout = X.layout if isinstance(X, Dataset) else Layout()
    data = X.X if isinstance(X, Dataset) else X
    data = check_matrix(data, sparse_ok=True, device=device, weights=weights)
    check_seen(data)
    problem = build_problem(
        ranks, model, constraint_W, constraint_H, regularizer_W, regularizer_H, solver
    )
    control = Control(
        max_iter=max_iter,
        tol=tol,
        max_time=max_time,
        inner_iter=inner_iter,
        inner_tol=inner_tol,
        extrapolate=extrapolate,
        augment=augment,
        callbacks=(callbacks,) if callable(callbacks) else callbacks,
    )
    to_file = Checkpoint.of(checkpoint)
    if to_file is not None and isinstance(data, Foreign) and data.lazy:
        raise ValueError(
            "checkpoint is not for Dask arrays, whose codes stay on the workers (which may be lost "
            "without one); leave it out, or pass X.compute() if it fits in memory."
        )
    check_whole(data, problem.layers[0].constraint_H)
    if panel_size is None and problem.layers[0].constraint_H.separable is None:
        panel_size = data.shape[1]  # a set that ties all columns of H_1 needs them in one panel
    check_scale(data)
    if problem.nonnegative and not allow_negative:
        check_sign(data)
    with as_panels(data, panel_size) as panels:
        starts, rng = _starts(init, problem, panels), generator(random_state)
        if to_file is not None:
            owner = fingerprint(
                panels,
                problem,
                starts,
                random_state,
                augment=augment,
                inner_iter=inner_iter,
                inner_tol=inner_tol,
                extrapolate=extrapolate,
            )
            to_file.bind(owner)
        done = fit(panels, problem, starts, control, rng, to_file)
        f = _result(done, panels, problem, layout)
    said = advice(f)
    if said:
        warnings.warn(said, UserWarning, stacklevel=2)
    return f


def _starts(init: object, problem: Problem, panels: Panels) -> list[Start | Given]:
    """One start, several (a list of names and functions), or the user's own factors."""
    signed = not problem.layers[0].constraint_W.nonnegative
    if isinstance(init, list | tuple) and init:
        if all(isinstance(start, str) or callable(start) for start in init):
            return [resolve_start(start, signed) for start in init]
        if len(init) == 2:
            return [check_given(init[0], init[1], problem, panels)]
    return [resolve_start(init, signed)]


def _result(done: Fit, panels: Panels, problem: Problem, layout: Layout) -> Factorization:
    s = done.state
    return Factorization(
        W=[panels.own(W) for W in s.W],
        H=[panels.own(H) for H in (panels.get_codes(), *s.H[1:])],
        history=done.history,
        stop_reason=done.stop_reason,
        start=done.start,
        weights=done.weights,
        problem=problem,
        encoder=done.encoder,
        layout=layout,
    )
