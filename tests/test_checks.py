"""The checks that users run on classes of their own: deepmf's pass, broken ones are named."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytest
from scipy import sparse

from deepmf import (
    HALS,
    L1,
    Box,
    CappedSimplex,
    Constraint,
    DataCentric,
    FastProjectedGradient,
    GroupedSparse,
    LayerCentric,
    MinVolume,
    Multilayer,
    Multiplicative,
    Nonnegative,
    ProjectedGradient,
    Quadratic,
    Regularizer,
    Ridge,
    Simplex,
    Solver,
    Trigeorgis,
    Unconstrained,
)
from deepmf.checks import (
    check_constraint,
    check_datafit,
    check_loss,
    check_panels,
    check_regularizer,
    check_solver,
    check_start,
)
from deepmf.core.datafit import SQUARED
from deepmf.core.divergence import BetaDivergence
from deepmf.data.panels import Codes, DensePanels, Matrix, OnDisk
from deepmf.fitting.registry import STARTS
from deepmf.losses import H

X = np.random.default_rng(0).random((6, 20))


# --- deepmf's own --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "constraint",
    [
        Unconstrained(),
        Nonnegative(),
        Box(),
        Box(-1, 2),
        Simplex(),
        CappedSimplex(),
        GroupedSparse(0.5),
        GroupedSparse(0.6, nonnegative=False),
    ],
    ids=repr,
)
def test_constraints(constraint):
    check_constraint(constraint)


@pytest.mark.parametrize("regularizer", [MinVolume(), Ridge(), L1()], ids=repr)
def test_regularizers(regularizer):
    check_regularizer(regularizer)


@pytest.mark.parametrize(
    "solver",
    [
        FastProjectedGradient(),
        FastProjectedGradient(scaled=False),
        ProjectedGradient(),
        HALS(),
        Multiplicative(),
    ],
    ids=repr,
)
def test_solvers(solver):
    check_solver(solver)


@pytest.mark.parametrize("start", [start for name, start in STARTS.items() if name != "merged"])
def test_starts(start):
    check_start(start)


@pytest.mark.parametrize("loss", [LayerCentric(), LayerCentric(3, False), DataCentric(0.3)])
def test_losses(loss):
    check_loss(loss)


@pytest.mark.parametrize("datafit", [SQUARED, *map(BetaDivergence, (0, 0.5, 1, 1.5))], ids=repr)
def test_datafits(datafit):
    check_datafit(datafit)


@pytest.mark.parametrize("kind", [np.array, np.asfortranarray, sparse.csr_array, OnDisk])
def test_panels(kind):
    check_panels(kind(X), X)


def test_panels_of_tensors():
    torch = pytest.importorskip("torch")
    check_panels(torch.tensor(X), X)


# --- broken promises -----------------------------------------------------------------------------


class Half(Nonnegative):
    """Not idempotent."""

    def project(self, M):
        return np.maximum(M, 0) / 2


class Far(Constraint):
    """Idempotent, but not the nearest point."""

    def project(self, M):
        return np.where(M < 0, 1, M)


class Writes(Constraint):
    def project(self, M):
        np.maximum(M, 0, out=M)
        return M


class Mixes(Simplex):
    """Over rows, not columns."""

    def project(self, M):
        return super().project(M.T).T


class Bounded(Nonnegative):
    bounded = True


class Signed(Unconstrained):
    nonnegative = True


class Wide(Nonnegative):
    def project(self, M):
        return np.maximum(M, 0).astype(float)


class TopOne(Constraint):
    """Not convex, and does not say so."""

    separable = "columns"

    def project(self, M):
        return np.where(np.abs(M) == np.abs(M).max(axis=0), M, 0)


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        (Half(), "projecting a projection"),
        (Far(), "at distance"),
        (Writes(), "writes to the matrix"),
        (Mixes(), "columns projected alone"),
        (Bounded(), "bounded is true"),
        (Signed(), "nonnegative is true"),
        (Wide(), "float32 is projected to float64"),
        (TopOne(), "not convex"),
    ],
    ids=lambda c: type(c).__name__,
)
def test_broken_constraints(constraint, said):
    with pytest.raises(AssertionError, match=rf"^{type(constraint).__name__}\(.*{said}"):
        check_constraint(constraint)


class Below(Ridge):
    def majorize(self, M):
        return Quadratic.of(A=0.5, C=-0.5 * M)  # right slope, half the curvature


class Tilted(Ridge):
    """Above at every point but those too near to be drawn."""

    def majorize(self, M):
        return Quadratic.of(A=1e6, C=1e6 * M - M - 1)


class Infinite(Ridge):
    def value(self, M):
        return np.inf


class Mixing(Ridge):
    """A sum over columns, by a quadratic that is not."""

    def majorize(self, M):
        return Quadratic.of(B=np.eye(M.shape[1]))


class Tied(Regularizer):
    separable = True

    def value(self, M):
        return 0.5 * float(np.sum(M.sum(axis=1) ** 2))

    def majorize(self, M):
        return Quadratic.of(B=np.ones((M.shape[1], M.shape[1])))


@pytest.mark.parametrize(
    ("regularizer", "said"),
    [
        (Below(), "must lie above"),
        (Tilted(), "must touch"),
        (Infinite(), "its value is inf"),
        (Mixing(), "mixes columns"),
        (Tied(), "not the sum over columns"),
    ],
    ids=lambda r: type(r).__name__,
)
def test_broken_regularizers(regularizer, said):
    with pytest.raises(AssertionError, match=said):
        check_regularizer(regularizer)


class Steps(Solver):
    """Gradient steps of some length."""

    def __init__(self, length=1.0):
        self.length = length

    def solve(self, q, constraint, M, max_iter, tol):
        for _ in range(max_iter):
            M = constraint.project(M - self.length / max(q.lipschitz(), 1e-9) * q.gradient(M))
        return M


class Leaves(Steps):
    def solve(self, q, constraint, M, max_iter, tol):
        return super().solve(q, Unconstrained(), M, max_iter, tol)


class Idle(Solver):
    def solve(self, q, constraint, M, max_iter, tol):
        return M.copy()


class Forgets(Steps):
    """Takes only the left factor of a term."""

    def solve(self, q, constraint, M, max_iter, tol):
        q = Quadratic(tuple((A, 1.0) for A, _ in q.terms), q.C)
        return super().solve(q, constraint, M, max_iter, tol)


class Together(Solver):
    """One exact line search for all columns."""

    def solve(self, q, constraint, M, max_iter, tol):
        for _ in range(max_iter):
            D = constraint.project(M - q.gradient(M) / max(q.lipschitz(), 1e-9)) - M
            bend = np.sum(D * q.hessian(D))
            t = -np.sum(D * q.gradient(M)) / bend if bend > 0 else 0.0
            M = (
                M
                + M.dtype.type(np.clip(t, 0, 1) if not isinstance(constraint, Unconstrained) else t)
                * D
            )
        return M


class Overwrites(Steps):
    def solve(self, q, constraint, M, max_iter, tol):
        M -= q.gradient(M) / q.lipschitz()
        return constraint.project(M)


@pytest.mark.parametrize(
    ("solver", "said"),
    [
        (Steps(2.5), "raised the function"),
        (Leaves(), "leaves"),
        (Idle(), "does not move"),
        (Forgets(), "raised the function"),
        (Together(), "columns solved apart"),
        (Overwrites(), "writes to its starting point"),
    ],
    ids=lambda s: type(s).__name__,
)
def test_broken_solvers(solver, said):
    with pytest.raises(AssertionError, match=said):
        check_solver(solver)


class Short(Steps):
    def solve(self, q, constraint, M, max_iter, tol):
        return super().solve(q, constraint, M, max_iter, tol)[:, :-1]


class Wider(Steps):
    def solve(self, q, constraint, M, max_iter, tol):
        return super().solve(q, constraint, M, max_iter, tol).astype(float)


class Refuses(Steps):
    def objection(self, constraint):
        return "it likes none"


@pytest.mark.parametrize(
    ("solver", "said"),
    [(Short(), "it returns"), (Wider(), "from float32"), (Refuses(), "refuses every set")],
    ids=lambda s: type(s).__name__,
)
def test_solvers_of_odd_shapes_and_types(solver, said):
    with pytest.raises(AssertionError, match=said):
        check_solver(solver)


@pytest.mark.parametrize(
    ("check", "thing"),
    [
        (check_constraint, "simplex"),
        (check_constraint, Simplex),
        (check_regularizer, None),
        (check_solver, HALS),
        (check_loss, "layer-centric"),
    ],
    ids=["name", "class", "None", "class of a solver", "name of a loss"],
)
def test_what_is_no_such_object_is_refused(check, thing):
    with pytest.raises(TypeError, match="must be an object of a subclass of deepmf's"):
        check(thing)


def test_names_of_starts_and_small_data():
    check_start("random")
    with pytest.raises(ValueError, match="Unknown init 'spna'"):
        check_start("spna")
    with pytest.raises(ValueError, match="at least 4 x 8"):
        check_panels(X[:3], X[:3])


def test_a_large_box_is_bounded():
    check_constraint(Box(0, 1e7))


def test_a_plain_solver_passes():
    check_solver(Steps())


def test_broken_starts():
    def narrow(panels, rank, rng):
        return panels.columns(range(rank + 1))

    def empty(panels, rank, rng):
        return np.zeros((panels.shape[0], rank))

    def moody(panels, rank, rng):
        return np.random.default_rng().random((panels.shape[0], rank))

    def by_panels(panels, rank, rng):
        return panels.columns(range(rank)) + panels.count

    for start, said in (
        (narrow, "for rank 1 of 12 rows it gives"),
        (empty, "all zero"),
        (moody, "the same seed gives another"),
        (by_panels, "panels of 7 columns gives another"),
    ):
        with pytest.raises(AssertionError, match=said):
            check_start(start)


class NoPull(LayerCentric):
    """Forgets that W_l is what layer l + 1 approximates."""

    def block_terms(self, factor, depth, w):
        return Multilayer().block_terms(factor, depth, w)


class OneTerm(DataCentric):
    """Forgets that deeper layers see H_1 too."""

    def block_terms(self, factor, depth, w):
        terms = self.terms(depth, w)
        return terms[:1] if factor == H(0) else terms


class Odd(DataCentric):
    def weights(self, errors, sizes):
        return np.full(len(errors), 2.0)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (NoPull(), "when W_1 of 2 layers moves"),
        (OneTerm(), "when H_1 of 2 layers moves"),
        (Odd(), "its first weight is 2"),
        (Trigeorgis(), "do not decrease one function"),
        (Multilayer(), "do not decrease one function"),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_broken_losses(loss, said):
    with pytest.raises(AssertionError, match=said):
        check_loss(loss)


class Kullback(BetaDivergence):
    """With whatever is wrong."""

    def __init__(self):
        super().__init__(1)


class Shifted(Kullback):
    def value(self, *args):
        return super().value(*args) + 1.0


class Negative(Kullback):
    def value(self, *args):
        return -super().value(*args)


class LowCodes(Kullback):
    """A convex function lies above its tangent."""

    def codes(self, T, B, H):
        return Quadratic(C=B.T @ (T / (B @ H) - 1))


class TiltedBasis(Kullback):
    def basis(self, T, B, H):
        return super().basis(T, B, H) + Quadratic.of(A=1e8, C=1e8 * B + 1e5)


class LowProduct(Kullback):
    def product(self, T):
        return 0.5 * super().product(T)


class HighTarget(Kullback):
    """Above is not enough for what is the distance itself."""

    def target(self, P):
        return 2.0 * super().target(P)


class NotASum(Kullback):
    """Twice as far where there are few columns."""

    def value(self, T, B, H, *weights):
        return (1 + (T.shape[1] < 9)) * super().value(T, B, H, *weights)


class Proximal(Kullback):
    """A proximal term that is there for few columns alone."""

    def basis(self, T, B, H):
        few = float(T.shape[1] < 9)
        return super().basis(T, B, H) + Quadratic.of(A=few, C=few * B)


class ForgetsZeros(Kullback):
    """Of a sparse target, the product where the target is zero."""

    def value(self, T, B, H, weights=None):
        if sparse.issparse(T):
            return super().value(T.toarray(), B, H) - np.sum((B @ H)[T.toarray() == 0])
        return super().value(T, B, H, weights)


class ForgetsZerosOfBases(Kullback):
    def basis(self, T, B, H, *weights):
        q = super().basis(T, B, H, *weights)
        return q + Quadratic.of(A=1.0, C=B) if sparse.issparse(T) else q


class Weighs(Kullback):
    def value(self, T, B, H, weights=None):
        return super().value(T, B, H, None if weights is None else 2 * weights)


class Farther(type(SQUARED)):
    """A tenth of the curvature, which is too little."""

    def codes(self, T, B, H):
        q = super().codes(T, B, H)
        return Quadratic(tuple((0.1 * A, R) for A, R in q.terms), q.C - 0.9 * (B.T @ B @ H))


@pytest.mark.parametrize(
    ("datafit", "said"),
    [
        (Shifted(), r"where T = B H is 1, not 0"),
        (Negative(), "its value is -"),
        (LowCodes(), "the surrogate of codes by .* must lie above"),
        (TiltedBasis(), "surrogate of basis .*must touch|of basis by .* must lie above"),
        (LowProduct(), "surrogate of product"),
        (HighTarget(), "surrogate of target by .* must be the same"),
        (NotASum(), "values of some columns do not add up"),
        (Proximal(), "surrogates of basis of some columns do not add up"),
        (ForgetsZeros(), "sparse matrix is not that"),
        (ForgetsZerosOfBases(), "surrogate of basis for a sparse matrix"),
        (Weighs(), "weights of one"),
        (Farther(), "surrogate of codes by .* must lie above"),
    ],
    ids=lambda d: type(d).__name__,
)
def test_broken_datafits(datafit, said):
    with pytest.raises(AssertionError, match=said):
        check_datafit(datafit)


def test_a_datafit_is_an_object():
    with pytest.raises(TypeError, match="subclass of deepmf's Datafit"):
        check_datafit("kullback-leibler")


class Array(Matrix):
    """A NumPy array behind `Matrix`, with whatever is wrong with its panels."""

    def __init__(self, X, kind=DensePanels):
        self.X, self.kind = X, kind
        self.shape, self.dtype = X.shape, X.dtype

    def blocks(self):
        for start in range(0, self.shape[1], 7):
            yield start, self.X[:, start : start + 7]

    def panels(self, width):
        return self.kind(self.X, width)


class ForgetsThePenalty(DensePanels):
    def update(self, coding, *rest):
        return super().update(coding, *rest)._replace(penalty=0.0)


class NoUndo(Codes):
    def undo(self):
        pass


class CannotUndo(DensePanels):
    @cached_property
    def codes(self):
        return NoUndo(np.zeros((0, self.shape[1])))


class Scaled(DensePanels):
    def dot(self, G, index=None):
        return 2 * super().dot(G, index)


class Rough(DensePanels):
    def residuals2(self, bases):
        return super().residuals2(bases) + 1e-3


class Doubles(DensePanels):
    def values(self, terms):
        return 2 * super().values(terms)


class Stale(DensePanels):
    """Answers with the surrogate of the codes before."""

    def improve(self, coding, solver, max_iter, tol):
        before = super().improve(coding, solver, 0, tol)
        after = super().improve(coding, solver, max_iter, tol)
        return after if coding.squared else after._replace(terms=before.terms)


class Rises(DensePanels):
    def improve(self, coding, solver, max_iter, tol):
        if max_iter and not coding.squared:
            self.codes.H *= 2
            max_iter = 0
        return super().improve(coding, solver, max_iter, tol)


class Zero(DensePanels):
    def size(self, fit):
        return 1.0


def test_a_kind_needs_no_more_than_blocks_and_panels():
    data = Array(X)
    check_panels(data, X)
    assert data.stats[:2] == (X.min(), X.max())
    assert data.stats.total == pytest.approx(X.sum())
    assert data.stats.norm2 == pytest.approx(np.sum(X**2))
    np.testing.assert_array_equal(data.numpy(), X)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (ForgetsThePenalty, "the penalty of update"),
        (CannotUndo, "undo does not"),
        (Scaled, r"dot\(G\) differs"),
        (Rough, "residuals2 differs"),
        (Doubles, r"values \(Beta.* differ|size of X by"),
        (Stale, "the surrogate that update gives"),
        (Rises, "an update raises the value"),
        (Zero, "size of X by BetaDivergence"),
    ],
)
def test_broken_panels(kind, said):
    with pytest.raises(AssertionError, match=said):
        check_panels(Array(X, kind), X)


def test_other_numbers_are_seen():
    with pytest.raises(AssertionError, match="norm2 differs"):
        check_panels(X + 0.01, X)
