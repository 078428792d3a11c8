"""
Missing data
============

Half of an image's entries are lost, some bands almost wholly. The fit looks at the others only
(``weights="observed"``) and gives back what was not there.
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
print(f"{lost.mean():.0%} lost, given back to {error:.1%}")

# %%
# The band that lost most: what there was, what was observed, what the fit says.

band = int(lost.mean(axis=1).argmax())
pictures = {"truth": scene.X[band], "observed": X[band], "given back": filled[band]}
fig, axes = plt.subplots(1, 3, figsize=(8, 3), layout="constrained")
for ax, (title, values) in zip(axes, pictures.items()):
    ax.set_facecolor("0.85")
    ax.imshow(values.reshape(64, 64), vmin=0, vmax=np.nanmax(scene.X[band]), cmap="viridis")
    ax.set(title=title, xticks=[], yticks=[])
