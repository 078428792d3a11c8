"""Your own regularizers: a quadratic penalty, a concave one, and one that ties samples."""

import numpy as np

from deepmf import Quadratic, Regularizer, factorize
from deepmf.checks import check_regularizer
from deepmf.datasets import simulated_scene


class Smooth(Regularizer):
    """1/2 ||D M||^2, where D takes differences of neighboring rows: smooth spectra."""

    def value(self, M):
        return 0.5 * np.sum(np.diff(M, axis=0) ** 2)

    def majorize(self, M):
        D = np.diff(np.eye(len(M)), axis=0)
        return Quadratic.of(A=D.T @ D)


class LogSum(Regularizer):
    """sum log(1 + M / eps) of a nonnegative M: sparser than l1, and concave.

    A concave function lies below its tangent, a quadratic without curvature.
    """

    separable = True

    def __init__(self, weight=1e-2, relative=True, eps=0.1):
        super().__init__(weight, relative)
        self.eps = eps

    def value(self, M):
        return np.sum(np.log1p(M / self.eps))

    def majorize(self, M):
        return Quadratic(C=-1 / (self.eps + M))


class Neighbors(Regularizer):
    """1/2 sum_j ||h_j - h_{j-1}||^2 = 1/2 tr(H L H'): codes that change slowly along the samples.

    With lmax(L) <= 4 it lies below 2 ||Z - (H - H L / 4)||^2 + const, a shift.
    """

    shifts = True

    def value(self, H):
        return 0.5 * np.sum(np.diff(H, axis=1) ** 2)

    def majorize(self, H):
        D = np.diff(H, axis=1)
        HL = np.pad(D, ((0, 0), (1, 0))) - np.pad(D, ((0, 0), (0, 1)))
        return Quadratic.of(A=4.0, C=4 * H - HL)


check_regularizer(Smooth())
check_regularizer(LogSum())
check_regularizer(Neighbors())

scene = simulated_scene(rows=32, cols=32)
settings = {"ranks": [6, 3], "constraint_W": "simplex", "init": "snpa", "tol": 1e-3}
for name, f in {
    "plain": factorize(scene, **settings),
    "smooth spectra": factorize(scene, **settings, regularizer_W=Smooth(0.1)),
    "sparse codes": factorize(scene, **settings, regularizer_H=[LogSum(0.1), None]),
    "smooth codes": factorize(scene, **settings, regularizer_H=[Neighbors(0.1), None]),
}.items():
    rough = np.linalg.norm(np.diff(f.W[0], axis=0)) / np.linalg.norm(f.W[0])
    print(f"{name}: roughness {rough:.3f}, zero codes {np.mean(f.H[0] == 0):.0%}")
