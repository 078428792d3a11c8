"""
A hierarchy of materials
========================

Flat NMF of a hyperspectral image gives a list of materials. A deep factorization also finds what
they have in common: here six materials of a simulated village merge into four, then two. The image
is the only input of the fit.
"""

from deepmf import MinVolume, factorize
from deepmf.datasets import simulated_scene
from deepmf.metrics import match
from deepmf.plots import plot_hierarchy, plot_maps

scene = simulated_scene()
f = factorize(scene, ranks=[6, 4, 2], regularizer_W=MinVolume(1), init="snpa", tol=1e-3)
print(f)

# %%
# The true spectra of every layer are known: mean angle to the spectra found, from 0 to 100.

for layer in (1, 2, 3):
    print(f"layer {layer}: {match(scene.W[layer - 1], f.basis(layer)).mean:.2f}")

# %%
# The layers as a graph: each component with its map. The width of an arrow is the share of the
# lower component in the upper one.

fig = plot_hierarchy(f)

# %%
# Maps of the four materials of the second layer.

fig = plot_maps(f, 2)
