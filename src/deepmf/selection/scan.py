"""Rank and depth selection by held-out error and stability."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from deepmf._factorize import factorize
from deepmf._utils.messages import SettingError, counted, setting
from deepmf._utils.processes import Progress, in_parallel
from deepmf.core.parameters import check_integer
from deepmf.core.quadratic import Array
from deepmf.data.containers import as_columns
from deepmf.data.features import ALL
from deepmf.data.layout import Layout
from deepmf.fitting.problem import check_ranks
from deepmf.fitting.recipes import NONE, preparation_of, recipe_of
from deepmf.init import StartError
from deepmf.metrics import match, mrsa
from deepmf.selection.halves import Halves, halves
from deepmf.selection.rule import Candidate, Choice, choose

_SAME = 1.0
"""MRSA of two components of a fit below which one repeats the other."""

_NOTHING = 1e-3
"""Share of ||W_1|| ||H_1|| below which a component carries next to nothing."""

_OWN = ("ranks", "weights", "random_state", "callbacks", "panel_size", "checkpoint")
"""Arguments of `factorize` that a scan sets itself."""


@dataclass(frozen=True, eq=False)
class Scan:
    """All candidates with what was measured, see `Candidate`, and the choice between them.

    Attributes
    ----------
    candidates : list of Candidate
        In the order they were given.
    samples : int
        Samples that were used: all those with an entry other than zero, or 10,000 of them.
    """

    candidates: list[Candidate]
    samples: int

    @cached_property
    def choice(self) -> Choice:
        """Ranks to take and how sure that is, see `deepmf.selection.rule.choose`."""
        return choose(self.candidates)

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Columns and rows, one for each candidate; errors and spreads in %."""
        columns = [
            "ranks", "error %", "spread %", "deepest error %", "fit error %", "agreement",
            "depth agreement", "smallest singular value", "logdet", "effective rank", "duplicates",
            "empty",
        ]  # fmt: skip
        rows = [
            [
                c.label, 100 * c.error, 100 * c.spread, 100 * float(c.errors[:, -1].mean()),
                100 * c.fit_error, c.agreement, c.depth_agreement if len(c.ranks) > 1 else "",
                c.smallest, c.logdet, c.effective_rank, c.duplicates, c.empty,
            ]
            for c in self.candidates
        ]  # fmt: skip
        return columns, rows

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        plain = [{name: _plain(value) for name, value in vars(c).items()} for c in self.candidates]
        choice = {k: _plain(v) for k, v in vars(self.choice).items()}
        return {"choice": choice, "samples": self.samples, "candidates": plain}

    def __repr__(self) -> str:
        return f"Scan of {counted(len(self.candidates), 'candidate')}. {self.choice.sentence}"


def scan(
    X: Any,
    ranks: Iterable[int | Sequence[int]],
    *,
    splits: int = 4,
    random_state: int = 0,
    jobs: int | None = 1,
    progress: Progress | None = None,
    **settings: Any,
) -> Scan:
    """Fit every candidate to random halves of the samples, and compare.

    ::

        error       ||X - W_l H_l...H_1|| / ||X|| on the other half of the samples, each fifth of
                    the features predicted from codes that the other features alone decide
        agreement   1 - MRSA / 50 of the component of one half that the other half repeats worst

    With another ``beta_loss`` errors are roots of shares of the deviance. The fits have your
    settings, ``init`` included, and see complete samples, so that any start,
    constraint, penalty or model works as it will in the final fit. Stability is measured by other
    samples, not by other seeds: a deterministic start repeats itself on the same data, whatever the
    rank. Seeds of random starts differ between the halves all the same. Deeper layers compress
    the first, so their errors never choose r_1, and stability chooses them.

    An error near 100 % is normal where most of each sample is chance, as in short texts; what
    counts is where it is least. Samples of very different sizes should be scaled first, lest a few
    decide. Of more than 10,000 samples, 10,000 random ones are used: components need no more.

    Parameters
    ----------
    X : matrix, m x n, or AnnData, xarray.DataArray, Dataset
        Columns are data points (obs of AnnData); NaN where an entry of an array is missing. Sparse
        matrices are never made dense; tensors, Dask arrays and data on disk are brought into
        memory. At least 4 samples.
    ranks : iterable of ints and lists of ints
        The candidates, ``range(2, 8)`` or ``[3, 4, [4, 2], 5]``.
    splits : int
        Ways to split the samples in two, with two fits of each candidate for each; at least 2.
    random_state : int
        Of the splits, and the first seed of the fits.
    jobs : int, optional
        Number of processes; ``None``: one per core.
    progress : callable, optional
        ``progress(iterable, total)``, wraps the fits to show how far they are.
    **settings
        All those of `factorize` that the final fit will have: model, constraints, penalties, init,
        hierarchy, tol and so on. All samples together are scaled and decide which features are
        kept, if that is asked for.

    Returns
    -------
    Scan
        With ``.choice``, ``.candidates``, ``.table()``.

    Examples
    --------
    >>> import numpy as np
    >>> from deepmf import scan
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(0.3, size=(30, 3)) @ rng.gamma(0.3, size=(3, 60))
    >>> s = scan(X + 0.01 * X.mean() * rng.random(X.shape), range(1, 6), tol=1e-3)
    >>> s.choice.ranks, s.choice.sure
    ((3,), True)
    """
    preparation = preparation_of(
        recipe_of(settings.get("recipe")),
        settings.pop("scale", None),
        settings.pop("max_features", None),
        settings.get("beta_loss"),
    )
    columns = as_columns(X, "observed")[0]
    grid = _grid(ranks)
    check_integer(setting("splits"), splits, 2)
    check_integer(setting("random_state"), random_state, 0)
    own = [name for name in settings if name in _OWN]
    if own:
        raise SettingError(f"scan sets {setting(own[0])} itself; leave it out.")
    if settings.get("device") is not None:
        raise SettingError(
            f"scan does not use a device, got {settings['device']!r}; leave out "
            f"{setting('device')}."
        )
    columns, _, _ = preparation.of(columns, Layout(), "observed")
    if settings.get("recipe") is not None:
        settings |= {"scale": NONE, "max_features": ALL}
    data = halves(columns, random_state)
    if (data.X < 0).sum() > 0:  # refused by their place in X, not in a half of it
        _try(columns, data.weights, grid[0], settings)
    tasks = [
        _Task(data, candidate, k, random_state, settings)
        for candidate in grid
        for k in range(2 * splits)
    ]
    fits = in_parallel(_fit, tasks, jobs, progress)
    failures = [fit.failure for fit in fits if fit.failure is not None]
    if len(failures) == len(fits):
        raise failures[0]
    done = iter(fits)
    found = [_candidate(candidate, [next(done) for _ in range(2 * splits)]) for candidate in grid]
    return Scan(found, data.X.shape[1])


def _try(X: Any, weights: str | None, ranks: tuple[int, ...], settings: dict[str, Any]) -> None:
    """Fit all of X for one sweep, for what that has to say of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        factorize(X, ranks, weights=weights, **{**settings, "max_iter": 1})


def _grid(ranks: Any) -> list[tuple[int, ...]]:
    if isinstance(ranks, str) or not isinstance(ranks, Iterable):
        raise SettingError(
            f"{setting('ranks')} must list candidates, such as range(2, 8) or [3, [4, 2]], got "
            f"{ranks!r}."
        )
    grid = list(dict.fromkeys(tuple(check_ranks(candidate)) for candidate in ranks))
    if len({candidate[0] for candidate in grid}) < 2:
        raise SettingError(
            f"{setting('ranks')} must hold candidates with different numbers of components to "
            f"choose between, such as range(2, 8), got {[list(candidate) for candidate in grid]}."
        )
    return grid


class _Task(NamedTuple):
    """One fit to half k of the samples."""

    data: Halves
    ranks: tuple[int, ...]
    k: int
    random_state: int
    settings: dict[str, Any]


class _Fitted(NamedTuple):
    """Measurements of one fit."""

    errors: Array
    """See `completion_errors`."""
    bases: list[Array]
    """Components of each layer, as columns."""
    fit_error: float
    """||X - W_1 H_1|| / ||X|| on the samples of the fit."""
    facts: dict[str, Any]
    """Fields of `Candidate` that describe layer 1."""
    failure: StartError | None = None
    """Why there is no start, and so no fit."""


def _fit(task: _Task) -> _Fitted:
    half = task.data.half(task.k, task.random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that have not converged, or that diverge
        try:
            f = factorize(
                half.seen,
                task.ranks,
                weights=half.weights,
                random_state=task.random_state + task.k,
                **task.settings,
            ).numpy()
        except StartError as error:  # fewer vertices or clusters than components, perhaps
            return _failed(task.ranks, len(half.parts), error)
        errors = half.errors(f)
        bases = [f.basis(layer) for layer in range(1, f.depth + 1)]
    finite = [np.where(np.isfinite(M), M, 0) for M in (f.W[0], f.H[0])]
    fit_error = float(np.sqrt(f.history.data_errors[-1][0]))
    return _Fitted(np.where(np.isnan(errors), np.inf, errors), bases, fit_error, _facts(*finite))


def _failed(ranks: tuple[int, ...], features: int, failure: StartError) -> _Fitted:
    """Measurements in place of a fit whose start does not exist."""
    bases = [np.full((features, rank), np.nan) for rank in ranks]
    facts = _facts(np.zeros((features, ranks[0])), np.zeros((ranks[0], 1)))
    return _Fitted(np.full(len(ranks), np.inf), bases, np.inf, facts, failure)


def _facts(W: Array, H: Array) -> dict[str, Any]:
    """Signs of too many components: volume, effective rank, what repeats or is empty."""
    norms = np.linalg.norm(W, axis=0)
    unit = W / np.where(norms > 0, norms, 1)
    s = np.linalg.svd(unit, compute_uv=False)
    energy = np.linalg.svd(norms[:, None] * H, compute_uv=False)
    share = energy[energy > 0] / energy.sum()
    size = norms * np.linalg.norm(H, axis=1)
    near = np.triu(mrsa(W, W) < _SAME, 1)
    return {
        "smallest": float(s[-1]) if W.shape[1] <= len(W) else 0.0,
        "logdet": float(2 * np.log(np.maximum(s, np.finfo(float).tiny)).sum()),
        "effective_rank": float(np.exp(-np.sum(share * np.log(share)))),
        "duplicates": int(near.any(axis=0).sum()),
        "empty": int(np.count_nonzero(size <= _NOTHING * np.linalg.norm(size))),
    }


def _candidate(ranks: tuple[int, ...], fits: Sequence[_Fitted]) -> Candidate:
    """Fits to pairs of halves put together; the best of them gives the signs of redundancy."""
    agreements = [
        [_agreement(A, B) for A, B in zip(one.bases, other.bases)]
        for one, other in zip(fits[::2], fits[1::2])
    ]
    errors = np.array([fit.errors for fit in fits])
    best = min(fits, key=lambda fit: fit.fit_error)
    mean = float(np.mean([fit.fit_error for fit in fits]))
    return Candidate(ranks, errors, np.array(agreements), mean, **best.facts)


def _agreement(A: Array, B: Array) -> float:
    """1 - MRSA / 50 of the worst pair of matched columns; 0 where a fit diverged."""
    if not (np.isfinite(A).all() and np.isfinite(B).all()):
        return 0.0
    return max(0.0, 1 - float(np.max(match(A, B).distances)) / 50)


def _plain(value: Any) -> Any:
    """A value that JSON can hold, which has no arrays and no infinite numbers."""
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return None if isinstance(value, float) and not np.isfinite(value) else value
