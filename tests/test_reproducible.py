"""The same seed and versions give the same bits, in any process and with any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import hashlib, sys
import numpy as np
from scipy import sparse
from deepmf import factorize
rng = np.random.default_rng(0)
X = rng.random((300, 5)) @ rng.random((5, 900)) + 0.1 * rng.random((300, 900))
digest = hashlib.sha256()
for data in (X, np.asfortranarray(X, dtype=np.float32), sparse.csr_array(X * (X > 1.4))):
    for init in sys.argv[1].split():
        f = factorize(data, [6, 3], init=init, max_iter=2, tol=0, random_state=0)
        for M in (*f.W, *f.H, f.history.objective):
            digest.update(np.ascontiguousarray(M).tobytes())
print(digest.hexdigest())
"""


def digest(starts, own, blas):
    threads = {"OMP_NUM_THREADS": own, "OPENBLAS_NUM_THREADS": blas, "MKL_NUM_THREADS": blas}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, starts],
        env={**os.environ, **threads, "PYTHONHASHSEED": own},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_neither_process_nor_threads_change_a_bit():
    starts = "nndsvd snpa hierarchical random"
    assert digest(starts, "3", "1") == digest(starts, "1", "1")


def test_nor_do_the_threads_of_blas_without_a_gram_matrix():
    assert digest("snpa random", "2", "2") == digest("snpa random", "1", "1")
