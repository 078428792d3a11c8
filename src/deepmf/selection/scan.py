"""Many ranks and depths on the same data, measured by what tells a good one from a bad one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from deepmf._factorize import factorize
from deepmf._utils.messages import SettingError, setting
from deepmf._utils.processes import Progress, in_parallel
from deepmf.core.parameters import check_integer
from deepmf.core.quadratic import Array
from deepmf.data.containers import as_columns
from deepmf.fitting.problem import check_ranks
from deepmf.metrics import match, mrsa
from deepmf.selection.holdout import PARTS, Entries, HeldOut, held_out
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
    held_out : str
        What errors were measured on: ``"held-out entries"``, or of sparse data ``"hidden features
        of held-out samples"``.
    """

    candidates: list[Candidate]
    held_out: str = Entries.words

    @cached_property
    def choice(self) -> Choice:
        """Ranks to take and how sure that is, see `deepmf.selection.rule.choose`."""
        return choose(self.candidates, self.held_out)

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
        return {"choice": choice, "held_out": self.held_out, "candidates": plain}

    def __repr__(self) -> str:
        return f"Scan of {len(self.candidates)} candidates. {self.choice.sentence}"


def scan(
    X: Any,
    ranks: Iterable[int | Sequence[int]],
    *,
    folds: int = 5,
    seeds: int = 4,
    random_state: int = 0,
    jobs: int | None = 1,
    progress: Progress | None = None,
    **settings: Any,
) -> Scan:
    """Fit every candidate to parts of the data and from several seeds, and compare.

    ::

        error       ||X - W_l H_l...H_1|| / ||X|| over a tenth of the entries, fitted to the others
        agreement   1 - MRSA / 50 between matched components of fits from different random starts

    Entries are held out at random, as Wold did: whole columns could be coded by any basis. Of a
    sparse matrix a tenth of the columns is held out, and the others are fitted; each fifth of a
    held-out column's rows is then told from codes that its other rows alone decide. That error is
    near 100 % where most of each sample is chance, as in short texts, and what counts is where it
    is least. Samples of very different sizes should be scaled first, lest a few decide. Deeper
    layers compress the first, so their errors never choose r_1, and stability chooses them.

    Parameters
    ----------
    X : matrix, m x n, or AnnData, xarray.DataArray, Dataset
        Columns are data points (obs of AnnData); NaN where an entry of an array is missing. Sparse
        matrices are never made dense; tensors, Dask arrays and data on disk are brought into
        memory.
    ranks : iterable of ints and lists of ints
        The candidates, ``range(2, 8)`` or ``[3, 4, [4, 2], 5]``.
    folds : int
        Fits of each candidate with a tenth held out, from 2 to 10.
    seeds : int
        Fits of each candidate to all of X, from as many random starts; at least 2.
    random_state : int
        What is held out, and the first of the seeds.
    jobs : int, optional
        Number of processes; ``None``: one per core.
    progress : callable, optional
        ``progress(iterable, total)``, wraps the fits to show how far they are.
    **settings
        Of `factorize`: model, constraints, regularisers, tol and so on. Starts are random; another
        ``init`` is for the fits with a part held out.

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
    data = held_out(as_columns(X, "observed")[0])
    grid = _grid(ranks)
    check_integer(setting("seeds"), seeds, 2)
    check_integer(setting("random_state"), random_state, 0)
    check_integer(setting("folds"), folds, 2)
    if folds > PARTS:
        raise SettingError(
            f"{setting('folds')} must be at most {PARTS}, a tenth of the data each, got {folds}."
        )
    own = [name for name in settings if name in _OWN]
    if own:
        raise SettingError(f"scan sets {setting(own[0])} itself; leave it out.")
    if settings.get("device") is not None:
        raise SettingError(
            f"scan does not use a device, got {settings['device']!r}; leave out "
            f"{setting('device')}."
        )
    tasks = [
        task
        for candidate in grid
        for task in (
            *(_Task(data, candidate, random_state + k, None, settings) for k in range(seeds)),
            *(_Task(data, candidate, random_state, k, settings) for k in range(folds)),
        )
    ]
    done = iter(in_parallel(_fit, tasks, jobs, progress))
    found = []
    for candidate in grid:
        fits = [next(done) for _ in range(seeds)]
        errors = np.array([next(done).errors for _ in range(folds)])
        found.append(_candidate(candidate, errors, fits))
    return Scan(found, data.words)


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
    """One fit: to all but a part of the data, or to all of them from a random start."""

    data: HeldOut
    ranks: tuple[int, ...]
    seed: int
    part: int | None
    settings: dict[str, Any]


class _Fitted(NamedTuple):
    """What is kept of a fit."""

    errors: Array
    """||X - W_l H_l...H_1|| / ||X|| over what was held out, or over all, per layer."""
    W: list[Array]
    facts: dict[str, Any]
    """Of layer 1, as `Candidate` has them."""


def _fit(task: _Task) -> _Fitted:
    data, ranks, seed, part, given = task
    settings = {**given, "init": "random" if part is None else given.get("init", "random")}
    split = data.whole() if part is None else data.without(part, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that could go on, or that diverge
        f = factorize(split.X, ranks, weights=split.weights, random_state=seed, **settings).numpy()
        errors = split.errors(f)
    finite = [np.where(np.isfinite(M), M, 0) for M in (f.W[0], f.H[0])]
    return _Fitted(np.where(np.isnan(errors), np.inf, errors), f.W, _facts(*finite))


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


def _candidate(ranks: tuple[int, ...], errors: Array, fits: Sequence[_Fitted]) -> Candidate:
    """Folds and seeds put together; the best of the seeds' fits stands for them."""
    pairs = [
        [_agreement(A, B) for A, B in zip(one.W, other.W)] for one, other in combinations(fits, 2)
    ]
    best = min(fits, key=lambda fit: fit.errors[0])
    return Candidate(ranks, errors, np.array(pairs), float(best.errors[0]), **best.facts)


def _agreement(A: Array, B: Array) -> float:
    """1 - MRSA / 50 of matched columns; 0 where a fit diverged."""
    if not (np.isfinite(A).all() and np.isfinite(B).all()):
        return 0.0
    return max(0.0, 1 - match(A, B).mean / 50)


def _plain(value: Any) -> Any:
    """For JSON, which has no arrays and no infinite numbers."""
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return None if isinstance(value, float) and not np.isfinite(value) else value
