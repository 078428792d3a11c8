"""A model of your own: layers that explain the layer before them, and the data as well."""

import numpy as np

from deepmf import DataCentric, LayerCentric, Loss, factorize
from deepmf.checks import check_loss
from deepmf.datasets import simulated_scene
from deepmf.losses import H, Term, W, X


class Hybrid(Loss):
    """1/2 sum_l lam_l ||W_{l-1} - W_l H_l||^2 + mu/2 sum_{l>1} ||X - W_l H_l...H_1||^2."""

    name = "hybrid"

    def __init__(self, lam=1.0, mu=1.0):
        self.lam = lam
        self.mu = mu

    def terms(self, depth, w):
        layers = [Term(w[k], X if k == 0 else W(k - 1), (W(k), H(k))) for k in range(depth)]
        data = [
            Term(self.mu, X, (W(k), *(H(j) for j in range(k, -1, -1)))) for k in range(1, depth)
        ]
        return layers + data

    def weights(self, errors, sizes):
        return LayerCentric(self.lam).weights(errors, sizes)


check_loss(Hybrid())

scene = simulated_scene(rows=32, cols=32)
for model in (LayerCentric(1), Hybrid(), DataCentric()):
    f = factorize(
        scene, [6, 4, 2], model=model, constraint_W="simplex", init="snpa", tol=0, max_iter=200
    )
    last = f.history
    print(f"{model!r}: errors of the layers {last.layer_errors[-1]}, of X {last.data_errors[-1]}")
    assert np.all(np.diff(last.objective) <= 0)
