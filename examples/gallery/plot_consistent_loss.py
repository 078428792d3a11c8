"""
Why one loss matters
====================

The deep model of Trigeorgis and others updates every factor by a loss of its own. Each update is
right for its own, and the error of the whole goes up. With one loss for all, every sweep decreases
it: that is what "consistent" means.
"""

import matplotlib.pyplot as plt

from deepmf import factorize
from deepmf.datasets import synthetic

X = synthetic(noise=0.1, random_state=0, clip=True).X
settings = {"init": "snpa", "max_iter": 150, "tol": 0, "extrapolate": False}
fits = {
    "data-centric": factorize(X, [6, 3], model="data-centric", **settings),
    "trigeorgis": factorize(X, [6, 3], model="trigeorgis", **settings),
}

# %%
# The sum of both layers' data errors, sweep by sweep, from the same start.

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for (name, f), color in zip(fits.items(), ("C0", "C1")):
    total = f.history.data_errors.sum(axis=1)
    rises = int((total[1:] > total[:-1]).sum())
    ax.semilogy(total, color=color, label=f"{name}: {rises} of {f.n_iter} sweeps go up")
ax.set(xlabel="sweep", ylabel="relative squared error, both layers")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
