"""
Minimum volume
==============

Points in a plane are mixtures of three corners, and no point is pure. Every triangle around the
points fits exactly, and plain NMF finds one of many. The smallest triangle has the true corners.
"""

import matplotlib.pyplot as plt
import numpy as np

from deepmf import MinVolume, factorize
from deepmf.metrics import match

rng = np.random.default_rng(1)
corners = np.array([[0.80, 0.12, 0.15], [0.10, 0.75, 0.20], [0.10, 0.13, 0.65]])
mixtures = rng.dirichlet([1, 1, 1], 1500).T
X = corners @ mixtures[:, mixtures.max(axis=0) < 0.85][:, :600]

fits = {
    "plain": factorize(X, 3, constraint_W="simplex", random_state=3, max_iter=3000, tol=1e-9),
    "minimum volume": factorize(
        X, 3, regularizer_W=MinVolume(1e-3), constraint_H="simplex", constraint_W="nonnegative",
        init="snpa", max_iter=3000, tol=1e-9,
    ),
}  # fmt: skip

# %%
# Everything in the plane of points that sum to one; the titles show the angle to the true corners.


def flat(M):
    """Map points of the simplex to the plane."""
    M = M / M.sum(axis=0)
    return np.array([[0, 1, 0.5], [0, 0, np.sqrt(0.75)]]) @ M


fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharex=True, sharey=True)
for ax, (name, f) in zip(axes, fits.items()):
    ax.plot(*flat(np.eye(3)[:, [0, 1, 2, 0]]), color="0.8", linewidth=1)
    ax.plot(*flat(X), ".", color="0.75", markersize=3)
    ax.plot(*flat(corners), "o", color="k", markersize=9, fillstyle="none", label="truth")
    found = flat(f.W[0])
    ax.plot(*found[:, [0, 1, 2, 0]], color="C1", linewidth=1)
    ax.plot(*found, "x", color="C1", markersize=8, label="found")
    ax.set_title(f"{name}: {match(corners, f.W[0]).mean:.1f}")
    ax.set_aspect("equal")
    ax.set_axis_off()
axes[0].legend(loc="upper left", frameon=False)
