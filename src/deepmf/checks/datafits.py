"""Checks of divergences: surrogates lie above and touch, and sums over panels add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from deepmf.checks.promise import close, kind_of, promise
from deepmf.constraints import Nonnegative, Unconstrained
from deepmf.core.datafit import Datafit
from deepmf.core.quadratic import Array
from deepmf.solvers import FastProjectedGradient

_POINTS = 20
"""Points at which a surrogate is compared with the distance."""

_SLACK = 1e-9
"""Tolerated differences, relative to the size of what is compared."""


class _Case(NamedTuple):
    """A surrogate, the factor it is a function of, and the distance as a function of that."""

    of: str
    surrogate: Any
    M: Array
    distance: Callable[[Array], float]
    exact: bool = False
    """Whether the surrogate is the distance itself, up to a constant."""


def check_datafit(datafit: Datafit, shape: tuple[int, int] = (7, 9), random_state: int = 0) -> None:
    """Check a distance d(T, P) on random targets and factors, nonnegative if it asks for that.

    It is at least 0, and 0 where P is T. Surrogates s of ``codes`` and ``basis``, and those of
    ``product`` and ``target`` where there are any, touch d at the current factor M and lie above:
    ``d(Z) - d(M) <= s(Z) - s(M)`` for every Z, also after ``through(L, R, M)``; a step that
    decreases s decreases d; ``change`` is the difference of two values. Distances and surrogates in
    the basis of some columns add up to those of all, and sparse targets give what dense ones do.
    With ``weightable``, weights of one change nothing.

    Parameters
    ----------
    datafit : Datafit
        What is checked.
    shape : (int, int)
        Of the targets.
    random_state : int
        Seed of targets and factors.

    Raises
    ------
    AssertionError
        The first promise that is broken.

    Examples
    --------
    >>> from deepmf.checks import check_datafit
    >>> from deepmf.core.divergence import BetaDivergence
    >>> check_datafit(BetaDivergence(1))
    """
    kind_of("datafit", datafit, Datafit)
    rng = np.random.default_rng(random_state)
    for size in (1.0, 100.0):
        T, B, H = (
            size * _drawn(datafit, shape, rng),
            size * _drawn(datafit, (shape[0], 3), rng),
            _drawn(datafit, (3, shape[1]), rng),
        )
        _is_a_distance(datafit, T, B, H)
        for case in _cases(datafit, T, B, H, rng):
            _lies_above(datafit, case, rng)
            _touches(datafit, case, rng)
            _descends(datafit, case)
        _adds_up(datafit, T, B, H)
        _sparse_is_dense(datafit, T, B, H)


def _drawn(datafit: Datafit, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    return rng.gamma(0.7, 1.0, shape) + 1e-2 if datafit.nonnegative else rng.standard_normal(shape)


def _is_a_distance(datafit: Datafit, T: Array, B: Array, H: Array) -> None:
    value = float(datafit.value(T, B, H))
    promise(np.isfinite(value) and value > 0, datafit, f"its value is {value}, away from T = B H.")
    none = float(datafit.value(B @ H, B, H))
    promise(abs(none) <= _SLACK * value, datafit, f"its value where T = B H is {none:.6g}, not 0.")
    size = float(datafit.size(T))
    promise(np.isfinite(size) and size > 0, datafit, f"its size of a target is {size}.")
    rest = datafit.residual(T, B @ H)
    promise(np.shape(rest) == T.shape, datafit, f"residual of {T.shape} is {np.shape(rest)}.")
    if datafit.weightable:
        ones = np.ones(T.shape)
        weighted = float(datafit.value(T, B, H, ones))  # type: ignore[call-arg]
        promise(close(weighted, value, _SLACK), datafit, "weights of one change its value.")


def _cases(
    datafit: Datafit, T: Array, B: Array, H: Array, rng: np.random.Generator
) -> Iterator[_Case]:
    M, R = _drawn(datafit, (4, 3), rng), H
    L = _drawn(datafit, (len(T), 4), rng) * (np.mean(np.abs(T)) + 1e-3)
    value = datafit.value
    yield _Case("codes", datafit.codes(T, B, H), H, lambda Z: value(T, B, Z))
    basis = datafit.basis(T, B, H)
    yield _Case("basis", basis, B, lambda Z: value(T, Z, H))
    through = datafit.basis(T, L @ M, R).through(L, None, M)
    yield _Case("basis through a product", through, M, lambda Z: value(T, L @ Z, R))
    if _has(datafit, "product"):
        of_product = datafit.product(T).through(L, R, M)
        yield _Case("product", of_product, M, lambda Z: value(T, L @ Z, R))
    if _has(datafit, "target"):
        yield _Case("target", datafit.target(B @ H), T, lambda Z: value(Z, B, H), True)


def _has(datafit: Datafit, method: str) -> bool:
    return getattr(type(datafit), method) is not getattr(Datafit, method)


def _lies_above(datafit: Datafit, case: _Case, rng: np.random.Generator) -> None:
    s, M, before = case.surrogate, case.M, case.distance(case.M)
    held = float(s.value(M))
    for _ in range(_POINTS):
        spread = 10 ** rng.uniform(-2, 1)
        if datafit.nonnegative:
            Z = M * np.exp(spread * rng.uniform(-1, 1, M.shape))
        else:
            Z = M + spread * rng.standard_normal(M.shape)
        rise, above = case.distance(Z) - before, float(s.value(Z)) - held
        scale = _SLACK * (abs(before) + abs(rise) + abs(held) + abs(above))
        promise(
            above >= rise - scale and (not case.exact or abs(above - rise) <= scale),
            datafit,
            f"from one point to another it changes by {rise:.6g} and the surrogate of {case.of} by "
            f"{above:.6g}; it must {'be the same' if case.exact else 'lie above'}.",
        )
        change = float(s.change(M, Z - M))
        promise(
            abs(change - above) <= scale,
            datafit,
            f"change of the surrogate of {case.of} is {change:.6g}, its values differ by "
            f"{above:.6g}.",
        )
        twice = float((2.0 * s).value(Z)) - float((2.0 * s).value(M))
        promise(
            abs(twice - 2 * above) <= 4 * scale,
            datafit,
            f"twice the surrogate of {case.of} is not twice as much.",
        )


def _touches(datafit: Datafit, case: _Case, rng: np.random.Generator) -> None:
    """Equal slopes, by central differences."""
    s, M, h = case.surrogate, case.M, 1e-5
    E = M * rng.uniform(-1, 1, M.shape)
    slope = (case.distance(M + h * E) - case.distance(M - h * E)) / (2 * h)
    ours = float(s.value(M + h * E) - s.value(M - h * E)) / (2 * h)
    size = abs(case.distance(M)) + abs(float(s.value(M)))
    promise(
        abs(slope - ours) <= 1e-4 * (abs(slope) + abs(ours)) + 1e-6 * size,
        datafit,
        f"in some direction its slope is {slope:.6g} and that of the surrogate of {case.of} is "
        f"{ours:.6g}; they must touch.",
    )


def _descends(datafit: Datafit, case: _Case) -> None:
    """Steps on the surrogate, over the nonnegative or all matrices, decrease the distance."""
    constraint = Nonnegative() if datafit.nonnegative else Unconstrained()
    before = case.distance(case.M)
    Z = FastProjectedGradient().improve(case.surrogate, constraint, case.M.copy(), 3, 1e-3)
    promise(
        np.shape(Z) == case.M.shape and np.isfinite(Z).all() and constraint.violation(Z) < 1e-9,
        datafit,
        f"steps on the surrogate of {case.of} leave the set of nonnegative or finite matrices.",
    )
    after = case.distance(Z)
    promise(
        after <= before + _SLACK * (abs(before) + abs(after)),
        datafit,
        f"a step on the surrogate of {case.of} raises it from {before:.6g} to {after:.6g}.",
    )


def _adds_up(datafit: Datafit, T: Array, B: Array, H: Array) -> None:
    parts = [(np.ascontiguousarray(T[:, c]), H[:, c]) for c in (slice(0, 4), slice(4, None))]
    total = sum(float(datafit.value(own, B, codes)) for own, codes in parts)
    promise(
        close(total, datafit.value(T, B, H), _SLACK),
        datafit,
        "its values of some columns do not add up to that of all.",
    )
    first, second = (datafit.basis(own, B, codes) for own, codes in parts)
    promise(
        _same(first + second, datafit.basis(T, B, H), B),
        datafit,
        "surrogates of basis of some columns do not add up to that of all.",
    )


def _sparse_is_dense(datafit: Datafit, T: Array, B: Array, H: Array) -> None:
    """Sparse targets are as dense ones; an infinite distance means that zeros are not allowed."""
    gaps = np.where(np.abs(T) > np.median(np.abs(T)), T, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(datafit.value(gaps, B, H))
    if not np.isfinite(value):
        return
    S = sparse.csc_array(gaps)
    promise(
        close(datafit.value(S, B, H), value, _SLACK),
        datafit,
        "its value of a sparse matrix is not that of the same matrix as an array.",
    )
    for what, of, M in (("codes", datafit.codes, H), ("basis", datafit.basis, B)):
        promise(
            _same(of(S, B, H), of(gaps, B, H), M),
            datafit,
            f"the surrogate of {what} for a sparse matrix is not that for the same array.",
        )


def _same(a: Any, b: Any, M: Array) -> bool:
    """Whether two surrogates change alike."""
    at = (0.5 * M, 2 * M, M * np.linspace(0.5, 2, M.size).reshape(M.shape))
    changes = [[float(s.value(Z) - s.value(M)) for Z in at] for s in (a, b)]
    return close(changes[0], changes[1], _SLACK)
