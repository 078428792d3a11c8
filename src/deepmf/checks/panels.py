"""Conformance check of a kind of data against the same numbers in an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepmf._factorize import factorize
from deepmf.checks.promise import close, promise
from deepmf.constraints import Nonnegative, Simplex
from deepmf.core.divergence import BetaDivergence
from deepmf.core.quadratic import Array
from deepmf.core.state import DataSurrogates
from deepmf.core.terms import DataTerm
from deepmf.data.matrix import as_numpy
from deepmf.data.panels import Coding, Panels, as_panels
from deepmf.regularizers import L1
from deepmf.solvers import FastProjectedGradient

_RANK = 3


def check_panels(data: Any, X: Array, rtol: float = 1e-8) -> None:
    """Check the panels of some data against those of the same numbers in an array.

    Every method of `Panels` gives what the array's panels give, and so do fits of one and two
    layers from every start. Panels with ``any_datafit`` also give what the array's panels give for
    a Kullback-Leibler divergence of the same codes; the steps to these codes are their own.

    Parameters
    ----------
    data : matrix of any kind that `factorize` takes
        What is checked.
    X : array
        The same numbers, nonnegative, at least 4 x 8.
    rtol : float
        Largest difference, relative to the largest entry; for data of float32 give 1e-3.

    Raises
    ------
    AssertionError
        The first promise that is broken.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from deepmf.checks import check_panels
    >>> X = np.random.default_rng(0).random((6, 20))
    >>> check_panels(sparse.csc_array(X), X)
    """
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[0] < 4 or X.shape[1] < 8:
        raise ValueError(f"X must be a matrix of at least 4 x 8, got shape {X.shape}.")
    with as_panels(data) as ours, as_panels(X) as plain:
        _same_facts(ours, plain, rtol)
        _same_updates(ours, plain, rtol)
        if ours.any_datafit:
            _same_divergences(ours, plain, rtol)
            _falls(ours, data)
    for start in ("nndsvd", "random", "snpa", "hierarchical"):
        for ranks in ([_RANK], [_RANK, 2]):
            a, b = (
                factorize(Z, ranks, init=start, max_iter=5, tol=0, random_state=0)
                for Z in (data, X)
            )
            promise(
                close(a.history.objective, b.history.objective, 1e2 * rtol),
                ours,
                f"a fit of ranks {ranks} from {start!r} goes another way than the array's.",
            )


def _same_facts(ours: Panels, plain: Panels, rtol: float) -> None:
    m, n = plain.shape
    G = np.random.default_rng(0).standard_normal((m, _RANK))
    index = np.array([n - 1, 0, 3, 3])
    U, values = ours.leading(_RANK)
    promise(tuple(ours.shape) == (m, n), ours, f"shape is {ours.shape}, not {(m, n)}.")
    for what, a, b in (
        ("norm2", ours.norm2, plain.norm2),
        ("column_norms2()", ours.column_norms2(), plain.column_norms2()),
        ("columns(index)", ours.columns(index), plain.columns(index)),
        ("dot(G)", ours.dot(G), plain.dot(G)),
        ("dot(G, index)", ours.dot(G, index), plain.dot(G, index)),
        ("halves_norms2(G)", ours.halves_norms2(G), plain.halves_norms2(G)),
        ("the values of leading(3)", values, plain.leading(_RANK)[1]),
    ):
        promise(close(a, b, rtol), ours, f"{what} differs from the array's.")
    promise(close(U.T @ U, np.eye(_RANK), 1e-6), ours, "leading(3) is not orthonormal.")
    promise(
        close(np.linalg.norm(plain.dot(U), axis=1), values, 1e-6),
        ours,
        "leading(3) has values that are not those of its vectors.",
    )
    some = np.arange(n) % 2 == 0
    promise(
        close(ours.leading(2, some)[1], plain.leading(2, some)[1], rtol),
        ours,
        "leading(2, members) differs from the array's.",
    )


def _same_updates(ours: Panels, plain: Panels, rtol: float) -> None:
    m, n = plain.shape
    rng = np.random.default_rng(1)
    W, H = rng.random((m, _RANK)), rng.random((_RANK, n))
    solver = FastProjectedGradient()
    for coding in (
        Coding.of(W, Nonnegative()),
        Coding.of(W, Simplex()),
        Coding.of(W, Nonnegative(), L1(), 0.1),
    ):
        what = f"{coding.constraint!r}" + (", L1" if coding.regularizer else "")
        for p in (ours, plain):
            p.begin(coding)
        _same_codes(ours, plain, rtol, f"begin ({what})")
        for p in (ours, plain):
            p.codes.set(coding.constraint.project(H))
        a, b = (p.update(coding, solver, 10, 0.01) for p in (ours, plain))
        _same_codes(ours, plain, rtol, f"update ({what})")
        for part, own, wanted in zip(("||X||^2", "X H'", "H H'"), _parts(a, W), _parts(b, W)):
            promise(close(own, wanted, rtol), ours, f"{part} of update ({what}) differs.")
        promise(close(a.penalty, b.penalty, rtol), ours, f"the penalty of update ({what}) differs.")
        promise(
            close(ours.residuals2([W, 2 * W]), plain.residuals2([W, 2 * W]), rtol),
            ours,
            "residuals2 differs from the array's.",
        )
        before = _codes(ours).copy()
        ours.update(Coding.of(W, coding.constraint, ahead=0.5), solver, 3, 0.01)
        ours.codes.undo()
        promise(
            close(_codes(ours), before, 1e-12), ours, "undo does not take the last update back."
        )


def _same_divergences(ours: Panels, plain: Panels, rtol: float) -> None:
    (m, n), fit, rng = plain.shape, BetaDivergence(1), np.random.default_rng(1)
    W, H = rng.random((m, _RANK)) + 0.1, rng.random((_RANK, n)) + 0.1
    terms, solver = (DataTerm(1.0, W, fit),), FastProjectedGradient()
    coding = Coding(terms, Nonnegative())
    for p in (ours, plain):
        p.begin(coding, positive=True)
    _same_codes(ours, plain, rtol, "begin (positive)")
    for p in (ours, plain):
        p.codes.set(H)
    promise(
        close(ours.size(fit), plain.size(fit), rtol),
        ours,
        f"size of X by {fit!r} differs from the array's.",
    )
    _same_codes(ours, plain, rtol, "size")
    before = ours.values(terms)
    promise(
        close(before, plain.values(terms), rtol),
        ours,
        f"values ({fit!r}) differ from the array's.",
    )
    answer = ours.update(coding, solver, 10, 0.01)
    plain.codes.set(_codes(ours).astype(float))
    wanted = plain.update(coding, solver, 0, 1.0)
    _same_codes(ours, plain, rtol, "an update of the array without steps")
    after = ours.values(terms)
    promise(
        after[0] <= before[0] * (1 + rtol) and _codes(ours).min() >= 0,
        ours,
        f"an update raises the value ({fit!r}) from {before[0]:.8g} to {after[0]:.8g}, or leaves "
        f"nonnegative codes.",
    )
    Z = W * rng.uniform(0.5, 2, W.shape)
    own, known = (a.terms[0].value(Z) - a.terms[0].value(W) for a in (answer, wanted))
    promise(
        close(own, known, 10 * rtol),
        ours,
        f"the surrogate that update gives for {fit!r} is not that of the array.",
    )
    promise(close(answer.gram, wanted.gram, rtol), ours, f"H H' of update ({fit!r}) differs.")


def _falls(ours: Panels, data: Any) -> None:
    """A fit by the divergence never rises."""
    settings: dict[str, Any] = {"init": "random", "max_iter": 5, "tol": 0, "random_state": 0}
    objective = factorize(data, [_RANK, 2], beta_loss="kullback-leibler", **settings).history
    rises = np.diff(objective.objective).max() / objective.objective[0]
    promise(rises <= 1e-6, ours, f"the objective of a fit by a divergence rises by {rises:.3g}.")


def _parts(answer: DataSurrogates, B: Array) -> tuple[float, float, float]:
    """||X||^2, <B, X H'> and <B, B H H'> of ``1/2 ||X - B H||^2`` as a function of B."""
    zero, one, two = (answer.terms[0].value(k * B) for k in (0, 1, 2))
    square = two - 2 * one + zero
    return 2 * zero, 0.5 * square + zero - one, square


def _same_codes(ours: Panels, plain: Panels, rtol: float, what: str) -> None:
    promise(close(_codes(ours), _codes(plain), rtol), ours, f"codes after {what} differ.")


def _codes(panels: Panels) -> Array:
    codes: Array = as_numpy(panels.own(panels.codes.H))
    return codes
