"""A distance of your own: Huber's, for data in which some entries are far off."""

from dataclasses import replace

import numpy as np

from deepmf import DataCentric, factorize
from deepmf.checks import check_datafit
from deepmf.core.datafit import SQUARED, Datafit
from deepmf.datasets import simulated_scene


class Huber(Datafit):
    """sum of r^2 / 2 where |r| <= delta, and of delta (|r| - delta / 2) elsewhere, r = t - p.

    Its curvature is at most 1, so that it lies below a squared error: that of the product from the
    target ``P + clip(T - P)``, of the product P now.
    """

    def __init__(self, delta=0.1):
        self.delta = delta

    def value(self, T, B, H):
        R = np.abs(_dense(T) - B @ H)
        near = np.minimum(R, self.delta)
        return float(np.sum(near * (R - near / 2)))

    def residual(self, T, P):
        return np.clip(T - P, -self.delta, self.delta)

    def codes(self, T, B, H):
        return SQUARED.codes(self._target(T, B @ H), B, H)

    def basis(self, T, B, H):
        return SQUARED.basis(self._target(T, B @ H), B, H)

    def _target(self, T, P):
        return P + self.residual(_dense(T), P)


def _dense(T):
    return T if isinstance(T, np.ndarray) else T.toarray()


class Robust(DataCentric):
    """The data-centric model with this distance in every term."""

    def terms(self, depth, w):
        return [replace(t, fit=Huber(0.05)) for t in super().terms(depth, w)]


check_datafit(Huber(0.5))

scene = np.asarray(simulated_scene(rows=32, cols=32).X, dtype=float)
spoilt = scene.copy()
rng = np.random.default_rng(0)
spoilt[rng.random(scene.shape) < 0.02] += 2  # some sensors saturate now and then
for model in (DataCentric(), Robust()):
    f = factorize(spoilt, [4], model=model, init="random", random_state=0, tol=0, max_iter=200)
    error = np.linalg.norm(scene - f.reconstruct(1)) / np.linalg.norm(scene)
    print(f"{model!r}: {100 * error:.1f} % from the scene without outliers")
    assert np.all(np.diff(f.history.objective) <= 1e-12 * f.history.objective[0])
