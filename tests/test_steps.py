"""Step sizes: safe, the paper's where asked, and blind to how scales are shared out."""

from __future__ import annotations

import numpy as np
import pytest

from deepmf import Box, FastProjectedGradient, Nonnegative, Quadratic, Simplex, Unconstrained
from deepmf.solvers.steps import step_sizes

rng = np.random.default_rng(0)


def psd(n, spread=1.0):
    M = rng.standard_normal((n + 2, n)) * np.logspace(0, spread, n)
    return M.T @ M


CASES = {
    "columns": (Quadratic.of(A=psd(4, 2)), (4, 5)),
    "rows": (Quadratic.of(B=psd(3, 2)), (6, 3)),
    "both": (Quadratic.of(A=psd(4, 1), B=psd(3, 2)), (4, 3)),
    "numbers": (Quadratic.of(A=2.0, B=3.0), (4, 3)),
    "two terms": (Quadratic(((psd(4), psd(3)), (psd(4), 1.0))), (4, 3)),
}


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("constraint", [Nonnegative(), Simplex()])
@pytest.mark.parametrize("case", CASES)
def test_a_step_majorizes(case, constraint, scaled):
    """diag(1 / size) - Hessian is positive semidefinite, so no step increases f."""
    q, shape = CASES[case]
    size = np.broadcast_to(step_sizes(q, constraint, scaled), shape)
    basis = np.eye(size.size).reshape(-1, *shape)
    hessian = np.array([q.hessian(E).ravel() for E in basis])
    gap = np.linalg.eigvalsh(np.diag(1 / size.ravel()) - hessian)
    assert gap[0] >= -1e-9 * np.abs(hessian).max()
    if not scaled or isinstance(constraint, Simplex) or case == "two terms":
        np.testing.assert_allclose(size, 1 / q.lipschitz())


def test_scaled_steps_are_tight_up_to_the_rank():
    A = psd(4, 3)
    size = step_sizes(Quadratic.of(A=A), Nonnegative(), True)[:, 0]
    assert np.all(size * np.diag(A) <= 1 + 1e-12)
    assert np.all(size * np.diag(A) >= 1 / 4 - 1e-12)


@pytest.mark.parametrize("constraint", [Nonnegative(), Unconstrained()])
def test_the_scales_of_rows_do_not_matter(constraint):
    A, C, M, d = psd(4), rng.standard_normal((4, 9)), rng.random((4, 9)), np.logspace(-2, 2, 4)
    solver = FastProjectedGradient()
    a = solver.solve(Quadratic.of(A=A, C=C), constraint, M, 7, 0)
    scaled = Quadratic.of(A=d[:, None] * A * d, C=d[:, None] * C)
    b = solver.solve(scaled, constraint, M / d[:, None], 7, 0)
    np.testing.assert_allclose(d[:, None] * b, a, rtol=1e-8, atol=1e-10)


def test_an_idle_row_stays_finite():
    A = np.diag([1.0, 0.0])
    q = Quadratic.of(A=A, C=np.zeros((2, 3)))
    out = FastProjectedGradient().solve(q, Nonnegative(), np.ones((2, 3)), 10, 0)
    np.testing.assert_array_equal(out, [[0, 0, 0], [1, 1, 1]])
    none = Quadratic.of(A=np.zeros((2, 2)), C=np.ones((2, 3)))
    assert step_sizes(none, Nonnegative(), True) is None


def test_boxes_are_scaled_too():
    A, C = psd(3, 2), rng.standard_normal((3, 5))
    box = Box(0, 0.5)
    out = FastProjectedGradient().solve(Quadratic.of(A=A, C=C), box, np.zeros((3, 5)), 3000, 0)
    gradient = A @ out - C
    assert np.all(np.abs(np.where(out == 0, np.minimum(gradient, 0), gradient))[out < 0.5] < 1e-6)


def test_the_setting_is_checked_and_kept():
    assert FastProjectedGradient(scaled=False).get_params() == {"scaled": False}
    with pytest.raises(ValueError, match="scaled must be True or False, got 'no'"):
        FastProjectedGradient(scaled="no")
