"""
A hierarchy of materials
========================

Flat NMF of a hyperspectral image gives a list of materials. A deep factorization also finds the
families they form: here six materials of a simulated village merge into four, then two. The image
is the only input of the fit; the settings are those of the recipe for scenes.
"""

from deepmf import factorize
from deepmf.datasets import simulated_scene
from deepmf.metrics import match
from deepmf.plots import plot_hierarchy, plot_maps

scene = simulated_scene()
f = factorize(scene, ranks=[6, 4, 2], recipe="scene", random_state=0)
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
# Links are free, so a material between two families belongs to both. A taxonomy has one parent for
# each component: the spectrum of a parent is the average of those of its children.

tree = factorize(
    scene,
    ranks=[6, 4, 2],
    recipe="scene",
    random_state=0,
    constraint_H=[None, "one-parent", "one-parent"],
)
fig = plot_hierarchy(tree)

# %%
# Maps of the four materials of the second layer.

fig = plot_maps(f, 2)
