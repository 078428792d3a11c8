"""The same seed and versions give the same bits, in any process and with any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import hashlib
import numpy as np
from scipy import sparse
from deepmf import factorize
rng = np.random.default_rng(0)
X = rng.random((300, 5)) @ rng.random((5, 900)) + 0.1 * rng.random((300, 900))
digest = hashlib.sha256()
for data in (X, np.asfortranarray(X, dtype=np.float32), sparse.csr_array(X * (X > 1.4))):
    for init in ("nndsvd", "snpa", "vca", "nfindr", "mv-dual", "hierarchical", "random"):
        f = factorize(data, [6, 3], init=init, max_iter=2, tol=0, random_state=0)
        for M in (*f.W, *f.H, f.history.objective):
            digest.update(np.ascontiguousarray(M).tobytes())
print(digest.hexdigest())
"""


def digest(threads):
    alone = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **alone, "OMP_NUM_THREADS": threads, "PYTHONHASHSEED": threads},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_neither_process_nor_threads_change_a_bit():
    assert digest("3") == digest("1")
