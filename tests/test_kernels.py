"""Compiled kernels where they cannot be loaded: the same results, and one warning."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

from deepmf import GroupedSparse, factorize
from deepmf.kernels.loading import load_kernels

X = np.random.default_rng(0).random((12, 60))
SHORT = {"max_iter": 5, "tol": 0, "constraint_W": GroupedSparse(0.3)}


@pytest.fixture(autouse=True)
def afresh():
    load_kernels.cache_clear()
    yield
    load_kernels.cache_clear()


@pytest.mark.parametrize("error", [ImportError, RuntimeError, TypeError])
def test_a_slow_path_is_announced_once(error, monkeypatch):
    compiled = factorize(X, [3], **SHORT)
    load_kernels.cache_clear()
    monkeypatch.delattr("deepmf.kernels.descent", raising=False)
    monkeypatch.delitem(sys.modules, "deepmf.kernels.descent", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Refusing(error), *sys.meta_path])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        slow, _ = factorize(X, [3], **SHORT), factorize(X, [3], **SHORT)
    said = [w for w in said if "kernels" in str(w.message)]
    assert [str(w.message) for w in said] == [
        f"The compiled kernels cannot be loaded ({error.__name__}: no locator available). Fits run "
        "in NumPy instead, to the same results but several times slower. If Numba cannot write "
        "its cache, set NUMBA_CACHE_DIR to a folder that can be written to."
    ]
    assert said[0].filename == __file__
    np.testing.assert_allclose(slow.W[0], compiled.W[0], rtol=1e-6, atol=1e-8)


class Refusing:
    """An importer that fails as Numba does where it cannot write its cache."""

    def __init__(self, error):
        self.error = error

    def find_spec(self, name, path=None, target=None):
        if name == "deepmf.kernels.descent":
            raise self.error("no locator available")


def test_this_version_of_numba_compiles_them():
    """They use private parts of Numba, whose tested range is in pyproject.toml."""
    kernels = load_kernels()
    assert kernels is not None
    M = np.array([[0.2, 2.0], [0.1, -1.0]])
    np.testing.assert_allclose(kernels.grouped_sparse(M, 0.0, True, 10, 1e-30), np.maximum(M, 0))


def test_without_compilation_nothing_is_said(monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    assert load_kernels() is None
