"""
Missing data
============

Half of the entries of an image are missing, some bands almost completely. The fit uses the other
entries only (``weights="observed"``) and reconstructs the missing ones.
"""

import matplotlib.pyplot as plt
import numpy as np

from deepmf import factorize
from deepmf.datasets import simulated_scene

scene = simulated_scene(noise=0.005)
rng = np.random.default_rng(0)
lost = rng.random(scene.X.shape) < 0.4
lost[rng.choice(len(lost), 12, replace=False)] |= rng.random((12, scene.X.shape[1])) < 0.9
X = np.where(lost, np.nan, scene.X)

f = factorize(X, ranks=[6, 3], weights="observed", tol=1e-4)
filled = f.reconstruct(1)
error = np.linalg.norm((filled - scene.X)[lost]) / np.linalg.norm(scene.X[lost])
print(f"{lost.mean():.0%} missing, reconstructed with a relative error of {error:.1%}")

# %%
# The band with the most missing entries: truth, observed entries, reconstruction.

band = int(lost.mean(axis=1).argmax())
pictures = {"truth": scene.X[band], "observed": X[band], "reconstructed": filled[band]}
fig, axes = plt.subplots(1, 3, figsize=(8, 3), layout="constrained")
for ax, (title, values) in zip(axes, pictures.items()):
    ax.set_facecolor("0.85")
    ax.imshow(values.reshape(64, 64), vmin=0, vmax=np.nanmax(scene.X[band]), cmap="viridis")
    ax.set(title=title, xticks=[], yticks=[])
