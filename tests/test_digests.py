"""Digests: equal for equal values however they are held, and different for different ones."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from deepmf._utils.digests import column_hashes, digest
from deepmf.data.on_disk import OnDisk
from deepmf.data.panels import as_panels

RNG = np.random.default_rng(0)
X = RNG.random((7, 500)) * (RNG.random((7, 500)) > 0.5)
WIDTHS = [1, 64, 499, 5000]


def kinds(A):
    found = [A, np.asfortranarray(A), sparse.csc_array(A), OnDisk(A)]
    return [*found, sparse.csr_array(A)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hashes_do_not_depend_on_how_X_is_held(width, dtype):
    expected = column_hashes(X.astype(dtype))
    for A in kinds(X.astype(dtype)):
        A = A.tocsc() if sparse.issparse(A) else A
        np.testing.assert_array_equal(as_panels(A, width).column_hashes(), expected)


def test_hashes_of_tensors_are_those_of_arrays():
    torch = pytest.importorskip("torch")
    panels = as_panels(torch.from_numpy(X), 64)
    np.testing.assert_array_equal(panels.column_hashes(), column_hashes(X))


def test_columns_without_entries_and_negative_zeros():
    A = np.array([[0.0, -0.0, 0.0, 2.0], [0.0, 0.0, 1.0, 0.0]])
    held = sparse.csc_array(np.abs(A))
    assert (column_hashes(A)[:2] == 0).all()
    np.testing.assert_array_equal(column_hashes(A), column_hashes(held))
    assert len(set(column_hashes(A)[1:].tolist())) == 3


@given(st.data())
def test_any_change_of_an_entry_changes_its_column_alone(draw):
    i, j = draw.draw(st.integers(0, 6)), draw.draw(st.integers(0, 499))
    value = draw.draw(st.floats(allow_nan=False).filter(lambda v: v != X[i, j]))
    A = X.copy()
    A[i, j] = value
    assert np.flatnonzero(column_hashes(A) != column_hashes(X)).tolist() == [j]


def test_small_integers_do_not_collide():
    """Their low bits are zero, which products modulo 2^64 would keep."""
    A = np.stack(np.meshgrid(*[np.arange(64.0)] * 3)).reshape(3, -1)
    assert len(np.unique(column_hashes(A))) == A.shape[1]


# --- values of any type ---------------------------------------------------------------------------


class Holds:
    def __init__(self, value):
        self.value = value

    def __call__(self):
        return self.value


def returning(value):
    return lambda: value


def recursive(count):
    return recursive(count - 1) if count else 0


DIFFERENT = [
    None, True, 0, 0.0, 1, 1.5, "1", b"1", [1], (1,), {1}, {1: 2}, {2: 1}, [1, [2]], [[1], 2],
    np.array([1.0]), np.array([1.0], np.float32), np.array([[1.0]]), np.array(["a"], object),
    sparse.csc_array(np.eye(2)), sparse.csr_array(np.eye(2)), sparse.csc_array(2 * np.eye(2)),
    returning(1), returning(2), lambda: 1, lambda: 2, lambda x=1: x, lambda x=2: x,
    lambda *, x=1: x, lambda *, x=2: x, lambda x: x.shape, lambda x: x.dtype, lambda: np, np, len,
    partial(max, 1), partial(min, 1), partial(max, 2), partial(max, key=1), recursive,
    Holds, Holds(1), Holds(2), Holds(1).__call__, Holds(Holds(1)), Holds(X), Holds(X + 1),
]  # fmt: skip


def test_different_values_have_different_digests():
    found = [digest(value) for value in DIFFERENT]
    assert len(set(found)) == len(found)
    assert found == [digest(value) for value in DIFFERENT]


def test_parts_cannot_move_from_one_value_to_the_next():
    assert digest("ab", "c") != digest("a", "bc")
    assert digest([1, 2], 3) != digest([1], 2, 3)


def test_what_contains_itself_has_a_digest():
    loop: list = [1]
    loop.append(loop)
    assert digest(loop) != digest([1])


def test_values_that_cannot_be_read_are_named():
    unknown: set[str] = set()
    digest(returning([np.random.default_rng(0), 3]), unknown=unknown)
    assert unknown == {"numpy.random._generator.Generator"}


PROGRAM = """
import numpy as np
from deepmf._utils.digests import digest
W = np.arange(6.0)
def start(panels, rank, rng, names={"a", "b", "c"}):
    return [W for name in names if name in {"x", "y", "z"}]
print(digest(start))
"""


def test_digests_are_the_same_in_every_process():
    said = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in "123"
    }  # fmt: skip
    assert len(said) == 1
