"""Signed data: semi-NMF with two layers, and a second fit that starts from given factors.

python examples/semi_nmf.py
"""

import numpy as np

from deepmf import factorize

rng = np.random.default_rng(0)
X = rng.standard_normal((20, 5)) @ rng.dirichlet(np.ones(5), 300).T

f = factorize(X, ranks=[5, 3], model="data-centric", constraint_W="none", random_state=0)
print(f)

again = factorize(
    X, ranks=[5, 3], model="data-centric", constraint_W="none", init=(f.W, f.H), max_iter=20, tol=0
)
print("twenty more sweeps:", again)
