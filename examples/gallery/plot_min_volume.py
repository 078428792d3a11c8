"""
Minimum volume
==============

Spectra of 30 bands are mixtures of three materials with a little noise, and no sample is pure.
Every triangle around the samples fits them, and plain NMF finds one of many. The smallest triangle
has the true corners. The recipe for scenes looks for it, and the weight of the volume follows from
the data.
"""

import matplotlib.pyplot as plt
import numpy as np

from deepmf import factorize
from deepmf.metrics import match

rng = np.random.default_rng(1)
plane = rng.gamma(1.0, size=(30, 3))
plane /= plane.sum(axis=0)
corners = np.array([[0.80, 0.12, 0.15], [0.10, 0.75, 0.20], [0.10, 0.13, 0.65]])
mixtures = rng.dirichlet([1, 1, 1], 1500).T
X = plane @ corners @ mixtures[:, mixtures.max(axis=0) < 0.85][:, :600]
X += 0.01 * X.mean() * rng.standard_normal(X.shape)

fits = {
    "plain": factorize(X, 3, init="random", random_state=3, tol=0),
    "minimum volume": factorize(X, 3, recipe="scene", random_state=0),
}

# %%
# Everything in the plane of the three materials; the titles show the angle to the true corners.


def flat(M):
    """Map spectra to points of the plane."""
    M = np.linalg.lstsq(plane, M)[0]
    M = M / M.sum(axis=0)
    return np.array([[0, 1, 0.5], [0, 0, np.sqrt(0.75)]]) @ M


truth = plane @ corners
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharex=True, sharey=True)
for ax, (name, f) in zip(axes, fits.items()):
    ax.plot(*flat(plane[:, [0, 1, 2, 0]]), color="0.8", linewidth=1)
    ax.plot(*flat(X), ".", color="0.75", markersize=3)
    ax.plot(*flat(truth), "o", color="k", markersize=9, fillstyle="none", label="truth")
    found = flat(f.W[0])
    ax.plot(*found[:, [0, 1, 2, 0]], color="C1", linewidth=1)
    ax.plot(*found, "x", color="C1", markersize=8, label="found")
    ax.set_title(f"{name}: {match(truth, f.W[0]).mean:.1f}")
    ax.set_aspect("equal")
    ax.set_axis_off()
axes[0].legend(loc="upper left", frameon=False)
