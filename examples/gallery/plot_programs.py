"""
Gene programs from counts
=========================

Counts of molecules are small: many genes are seen once in a cell, or not at all. The
Kullback-Leibler divergence, half the deviance of Poisson counts, takes them as they are, without
logarithms. Layer 1 finds the programs of made cells, and layer 2 the lineages that they belong to.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from deepmf import LayerCentric, factorize
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.metrics import match

LINEAGES = {
    "PTPRC CD3D TRAC IL7R": ["CD8A CD8B GZMK", "FOXP3 CTLA4 IL2RA"],
    "LYZ CST3 TYROBP AIF1": ["CD14 S100A8 S100A9", "FCER1A CLEC10A CD1C"],
    "EPCAM KRT8 KRT18 CDH1": ["MUC2 TFF3 SPINK4", "OLFM4 LGR5 ASCL2"],
}
EVERYWHERE = [f"RPL{k}" for k in range(1, 61)]
rng = np.random.default_rng(0)

# %%
# A program has the genes of its lineage and its own; all share genes that every cell needs. Cells
# mix the two programs of a lineage, and are sequenced deeply or not.

genes = [g for common, own in LINEAGES.items() for g in f"{common} {' '.join(own)}".split()]
genes += EVERYWHERE
everywhere = rng.lognormal(1.0, 1.2, len(EVERYWHERE))
programs = []
for common, own in LINEAGES.items():
    for special in own:
        p = np.array([3.0 * (g in common.split()) + 4.0 * (g in special.split()) for g in genes])
        p[-len(EVERYWHERE) :] = everywhere
        programs.append(p * rng.uniform(0.7, 1.3, len(genes)))
truth = np.array(programs).T / np.sum(programs, axis=1)
lineage = rng.integers(3, size=1500)
mixture = np.zeros((6, 1500))
share = rng.beta(0.4, 0.4, 1500)
mixture[2 * lineage, np.arange(1500)] = share
mixture[2 * lineage + 1, np.arange(1500)] = 1 - share
depth = rng.lognormal(np.log(250), 0.6, 1500)
counts = rng.poisson(depth * (truth @ mixture)).astype(float)
print(f"{np.mean(counts == 0):.0%} of the counts are 0, {np.mean(counts == 1):.0%} are 1")

X = Dataset("cells", sparse.csc_array(counts), Layout(features=np.array(genes)))
fits = {
    loss: factorize(
        X, [6, 3], model=LayerCentric(0.1), beta_loss=loss, scale="none", random_state=0
    )
    for loss in ("kullback-leibler", "frobenius")
}
for loss, f in fits.items():
    print(f"{loss}: angle to the true programs {match(truth, f.W[0]).mean:.1f} (0: equal)")

# %%
# The largest entries of every program are the genes that all cells need. Programs differ in the
# genes that they have more of than the average program. Those of layer 2 are genes of lineages.

f = fits["kullback-leibler"]
for layer in (2, 1):
    W = f.basis(layer)
    lift = np.log2((W + 1e-4) / (W.mean(axis=1, keepdims=True) + 1e-4))
    for k, own in enumerate(lift.T, start=1):
        print(f"L{layer}-{k}:", *(genes[i] for i in np.argsort(-own)[:5]))
print("programs of each lineage:", [(np.flatnonzero(h > 0.5) + 1).tolist() for h in f.links(2)])

# %%
# Genes of lineages and programs, as multiples of the average program, and all entries of both fits:
# squared errors care little about any but the largest.

some = len(genes) - len(EVERYWHERE)
found = {loss: f.W[0][:, match(truth, f.W[0]).order] for loss, f in fits.items()}
fig, axes = plt.subplots(1, 3, figsize=(10, 5.5), layout="constrained", width_ratios=[1, 1, 1.6])
for ax, title, W in zip(axes, ("truth", "kullback-leibler"), (truth, found["kullback-leibler"])):
    lift = W / W.mean(axis=1, keepdims=True)
    picture = ax.imshow(lift[:some], cmap="Blues", vmin=0, vmax=6, aspect="auto")
    ax.set(title=title, xlabel="program", xticks=range(6), xticklabels=range(1, 7), yticks=[])
axes[0].set_yticks(range(some), genes[:some], fontsize=8)
fig.colorbar(picture, ax=axes[:2], location="bottom", shrink=0.6, label="times the average")
for loss in ("frobenius", "kullback-leibler"):
    shares = np.maximum(found[loss], 1e-4)
    color = "C1" if loss == "frobenius" else "C0"
    axes[2].plot(np.maximum(truth, 1e-4), shares, ".", color=color, alpha=0.6)
    axes[2].plot([], [], ".", color=color, label=loss)
axes[2].plot([1e-4, 0.3], [1e-4, 0.3], color="0.6", linewidth=0.8)
axes[2].set(xscale="log", yscale="log", xlabel="true share", ylabel="share found")
axes[2].legend(title="all genes, all programs")
