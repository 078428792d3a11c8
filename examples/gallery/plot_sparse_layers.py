"""
Sparse layers
=============

Grouped sparsity constrains the average over the components of a layer, so one component may be a
dot and another a whole digit. One number per layer controls how local its components are.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from deepmf import GroupedSparse, factorize
from deepmf.metrics import hoyer

X = load_digits().data.T
asked = [0.85, 0.7, 0.5]
sets = [GroupedSparse(s) for s in asked]
f = factorize(X, [24, 12, 6], model="data-centric", constraint_W=sets, random_state=0, tol=1e-4)

# %%
# Components of the three layers, from sparse to dense.

fig, axes = plt.subplots(3, 1, figsize=(8, 4.2), layout="constrained")
for layer, ax in enumerate(axes, start=1):
    W = f.basis(layer)
    W = W / W.max(axis=0)
    strip = W.T.reshape(-1, 8, 8)
    ax.imshow(strip.transpose(1, 0, 2).reshape(8, -1), cmap="gray_r", aspect="equal")
    for k in range(1, len(strip)):
        ax.axvline(8 * k - 0.5, color="C0", linewidth=0.6)
    each = hoyer(W)
    ax.set_title(
        f"layer {layer}: required {asked[layer - 1]:.2f}, average {each.mean():.2f}, "
        f"from {each.min():.2f} to {each.max():.2f}",
        fontsize=10, loc="left",
    )  # fmt: skip
    ax.set_axis_off()
