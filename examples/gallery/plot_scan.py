"""
How many components?
====================

A tenth of the entries is held out, the rest is fitted, and the error over what was held out is
compared (Wold's way); components that come back from other random starts are the ones to trust. A
sentence says what both signals think, and how sure one can be.
"""

import numpy as np
from scipy import sparse

from deepmf import scan
from deepmf.plots import plot_scan

rng = np.random.default_rng(0)
X = rng.gamma(0.3, size=(40, 4)) @ rng.gamma(0.3, size=(4, 120))
X = np.maximum(X + 0.05 * X.mean() * rng.standard_normal(X.shape), 0)  # four, and noise

found = scan(X, range(1, 8), folds=4, seeds=3, tol=1e-4)
print(found.choice.sentence)

# %%
# Held-out error with its standard error, and how well components of different starts agree.

fig = plot_scan(found)

# %%
# Counts of words or genes are sparse, and stay so. Samples are held out then, and part of their
# features is told from the others.

mean = rng.gamma(0.3, size=(200, 4)) @ rng.gamma(0.3, size=(4, 400))
counts = sparse.csc_array(rng.poisson(0.2 * mean / mean.mean()))
print(f"{counts.nnz / mean.size:.0%} of the counts are not zero.")
print(scan(counts, range(1, 8), folds=4, seeds=3, tol=1e-4).choice.sentence)
