"""
How many components?
====================

`scan` fits random halves of the samples. It compares the errors of predicting hidden features of
the other half, and measures whether both halves have the same components. A summary says what both
measures suggest and how certain the choice is.
"""

import numpy as np
from scipy import sparse

from deepmf import scan
from deepmf.plots import plot_scan

rng = np.random.default_rng(0)
X = rng.gamma(0.3, size=(40, 4)) @ rng.gamma(0.3, size=(4, 120))
X = np.maximum(X + 0.05 * X.mean() * rng.standard_normal(X.shape), 0)  # rank 4, with noise

found = scan(X, range(1, 8), tol=1e-4)
print(found.choice.sentence)

# %%
# Held-out error with its standard error, and the agreement of components between halves.

fig = plot_scan(found)

# %%
# Counts of words or genes are sparse and stay sparse.

mean = rng.gamma(0.3, size=(200, 4)) @ rng.gamma(0.3, size=(4, 400))
counts = sparse.csc_array(rng.poisson(0.2 * mean / mean.mean()))
print(f"{counts.nnz / mean.size:.0%} of the counts are not zero.")
print(scan(counts, range(1, 8), tol=1e-4).choice.sentence)
