"""
Data larger than memory: Dask in three lines
============================================

A Dask array is fitted in place: workers keep their columns of X and their codes, and only small
matrices are transferred. Here the cluster is this process; with a `dask.distributed.Client` it is
your own. For a GPU, use ``factorize(X, ranks, device="cuda")``.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from deepmf import factorize
from deepmf.datasets import simulated_scene

X = simulated_scene(rows=96, cols=96).X
lazy = da.from_array(X, chunks=(X.shape[0], 2304))  # or da.from_zarr("scene.zarr")
f = factorize(lazy, ranks=[6, 3], init="nndsvd", tol=1e-3)
codes = f.codes(2)  # a lazy Dask array

# %%
# The same fit in memory gives the same factors up to rounding.

g = factorize(X, ranks=[6, 3], init="nndsvd", tol=1e-3)
print("largest difference between the codes:", float(abs(np.asarray(f.H[0]) - g.H[0]).max()))

# %%
# Maps of the second layer, computed chunk by chunk.

fig, axes = plt.subplots(1, 3, figsize=(7.5, 2.8), layout="constrained")
for k, (ax, row) in enumerate(zip(axes, np.asarray(codes)), start=1):
    ax.imshow(row.reshape(96, 96), cmap="viridis")
    ax.set_title(f"component {k}", fontsize=10)
    ax.set_axis_off()
