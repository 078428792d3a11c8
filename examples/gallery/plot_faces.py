"""
Parts of faces, and how they combine
====================================

Faces drawn with a few strokes: two types of eyes, brows, noses and mouths, mixed at random. The
first layer finds the strokes. The second layer, which must approximate the faces with two
components, finds the strokes that occur together: a smile with raised brows, a frown with low ones.
This needs the data-centric model; a layer-centric model would group strokes that look alike.
"""

import numpy as np

from deepmf import DataCentric, factorize
from deepmf.plots import plot_hierarchy, plot_pictures

SIZE = 24
y, x = np.mgrid[0:SIZE, 0:SIZE]


def blob(cy, cx, height, width):
    """A soft ellipse."""
    return np.exp(-(((y - cy) / height) ** 4) - ((x - cx) / width) ** 4)


def arc(cy, bend):
    """A mouth or a brow: a curved stroke across the middle."""
    return np.exp(-((y - cy - bend * ((x - 11.5) / 5) ** 2) ** 2) / 0.8) * (np.abs(x - 11.5) < 5)


def both(cy, height, width):
    """Two ellipses, left and right."""
    return blob(cy, 6.5, height, width) + blob(cy, 16.5, height, width)


PARTS = {
    "round eyes": both(9, 1.8, 1.8),
    "narrow eyes": both(9, 0.8, 2.4),
    "raised brows": both(4.5, 0.8, 2.6),
    "low brows": both(6.5, 0.8, 2.6),
    "long nose": blob(12.5, 11.5, 3.2, 0.9),
    "short nose": blob(13.5, 11.5, 1.2, 1.6),
    "smile": arc(19.5, -1.6),
    "frown": arc(17.5, 1.6),
}
MOODS = np.array([[1, 0, 1, 0, 0.5, 0.5, 1, 0], [0, 1, 0, 1, 0.5, 0.5, 0, 1]])

# %%
# Each face is a mixture of two moods, and each stroke has its own strength.

rng = np.random.default_rng(0)
mood = rng.dirichlet([0.4, 0.4], 600)
strength = rng.gamma(4, 0.25, (600, 8)) * (mood @ MOODS) * (rng.random((600, 8)) < 0.8)
parts = np.stack([p.ravel() for p in PARTS.values()], axis=1)
X = parts @ strength.T + 0.02 * rng.random((SIZE * SIZE, 600))

f = factorize(
    X, ranks=[8, 2], model=DataCentric(mu=0.1), constraint_W="simplex", init="snpa",
    max_iter=2000, tol=1e-6,
)  # fmt: skip
print(f)

# %%
# Layer 1: the strokes. Layer 2: the two moods.

fig = plot_pictures(f, 1, image=(SIZE, SIZE))

# %%
fig = plot_pictures(f, 2, image=(SIZE, SIZE))

# %%
fig = plot_hierarchy(f, image=(SIZE, SIZE))
