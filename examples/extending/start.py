"""Your own start: k-means of scikit-learn on a sample of the columns."""

import numpy as np
from sklearn.cluster import KMeans

from deepmf import factorize
from deepmf.checks import check_start
from deepmf.datasets import simulated_scene


def by_kmeans(panels, rank, rng):
    """Cluster centers of at most 5000 columns."""
    n = panels.shape[1]
    sample = np.sort(rng.choice(n, min(n, 5000), replace=False))
    clusters = KMeans(rank, n_init=3, random_state=int(rng.integers(2**31)))
    return clusters.fit(panels.columns(sample).T).cluster_centers_.T


check_start(by_kmeans)

scene = simulated_scene(rows=32, cols=32)
print(factorize(scene, ranks=[6, 3], init=by_kmeans, random_state=0, tol=1e-3))
