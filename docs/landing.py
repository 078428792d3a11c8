"""The picture of the landing page and the README: python docs/landing.py."""

from pathlib import Path

from deepmf import factorize
from deepmf.datasets import simulated_scene
from deepmf.metrics import match
from deepmf.plots import plot_hierarchy

scene = simulated_scene()
f = factorize(
    scene,
    ranks=[6, 4, 2],
    recipe="scene",
    random_state=0,
    constraint_H=[None, "one-parent", "one-parent"],
)
names = []
for k, known in enumerate(scene.names):
    order = match(scene.W[k], f.W[k]).order
    names.append([known[list(order).index(j)] for j in range(f.ranks[k])])
figure = plot_hierarchy(f, names=names)
figure.savefig(Path(__file__).parent / "hierarchy.png", dpi=150, facecolor="white")
