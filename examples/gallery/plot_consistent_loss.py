"""
Why one loss matters
====================

The deep model of Trigeorgis et al. updates each factor for a different loss. Each update decreases
its own loss, but the total error can increase. With one loss for all factors, every sweep decreases
it: this is what "consistent" means.
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
# Sum of the data errors of both layers after each sweep, from the same start.

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for (name, f), color in zip(fits.items(), ("C0", "C1")):
    total = f.history.data_errors.sum(axis=1)
    rises = int((total[1:] > total[:-1]).sum())
    ax.semilogy(total, color=color, label=f"{name}: {rises} increases in {f.n_iter} sweeps")
ax.set(xlabel="sweep", ylabel="relative squared error, both layers")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
