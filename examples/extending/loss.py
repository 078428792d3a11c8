"""A model of your own: layers that explain the layer before them, and the data as well."""

import numpy as np

from deepmf import DataCentric, LayerCentric, Loss, factorize
from deepmf.checks import check_loss
from deepmf.datasets import simulated_scene


class Hybrid(Loss):
    """1/2 sum_l lam_l ||W_{l-1} - W_l H_l||^2 + 1/2 sum_{l>1} mu ||X - W_l H_l...H_1||^2.

    Both sums are losses of the library's; the quadratic of a sum is the sum of the quadratics.
    """

    name = "hybrid"

    def __init__(self, lam=1.0, mu=1.0):
        self.lam = lam
        self.mu = mu

    def weights(self, errors, sizes):
        return LayerCentric(self.lam).weights(errors, sizes)

    def value(self, layer, data, w):
        return 0.5 * float(w @ layer + self.of_data(w) @ data)

    def terms(self, s, w):
        return [(1.0, s.W[0]), *DataCentric().terms(s, self.of_data(w))[1:]]

    def H(self, s, layer, w):
        return LayerCentric().H(s, layer, w) + DataCentric().H(s, layer, self.of_data(w))

    def W(self, s, layer, w):
        return LayerCentric().W(s, layer, w) + DataCentric().W(s, layer, self.of_data(w))

    def of_data(self, w):
        """[0, mu, mu, ...]: layer 1 has its term in the first sum already."""
        return np.r_[0.0, np.full(len(w) - 1, float(self.mu))]


check_loss(Hybrid())

scene = simulated_scene(rows=32, cols=32)
for model in (LayerCentric(1), Hybrid(), DataCentric()):
    f = factorize(
        scene, [6, 4, 2], model=model, constraint_W="simplex", init="snpa", tol=0, max_iter=200
    )
    last = f.history
    print(f"{model!r}: errors of the layers {last.layer_errors[-1]}, of X {last.data_errors[-1]}")
