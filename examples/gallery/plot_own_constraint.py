"""
Your own constraint in 15 lines
===============================

Spectra that never decrease: a projection is all you need to write, and every model, start and kind
of data works with it. The projection onto nondecreasing columns is isotonic regression.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import isotonic_regression

from deepmf import Constraint, factorize


class Rising(Constraint):
    """Nonnegative columns that never decrease."""

    separable = "columns"
    nonnegative = True

    def project(self, M):
        return np.column_stack([np.maximum(isotonic_regression(m).x, 0) for m in M.T])


# %%
# Mixtures of three saturation curves, with noise.

t = np.linspace(0, 1, 60)
curves = np.column_stack([1 - np.exp(-8 * t), t**2, 1 / (1 + np.exp(-20 * (t - 0.5)))])
rng = np.random.default_rng(0)
X = curves @ rng.dirichlet([0.4] * 3, 200).T
X = np.maximum(X + 0.05 * rng.standard_normal(X.shape), 0)

plain = factorize(X, 3, constraint_H="simplex", init="snpa", tol=1e-5)
rising = factorize(X, 3, constraint_W=Rising(), constraint_H="simplex", init="snpa", tol=1e-5)

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
for ax, title, f in zip(axes, ("nonnegative", "Rising()"), (plain, rising)):
    ax.plot(t, curves, color="0.7", linewidth=4)
    ax.plot(t, f.W[0], linewidth=1.5)
    ax.set(title=title, xlabel="t")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("components (gray: truth)")
