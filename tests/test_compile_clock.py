"""Compilation is seen, and is no part of a fit's time."""

from __future__ import annotations

import time

from numba import njit

from deepmf._utils.compile_clock import clock, on_compile


def test_compilation_is_told_and_does_not_count():
    said = []
    kernel = njit(lambda x: x + 1)
    real, counted = time.perf_counter(), clock()
    with on_compile(lambda: said.append(1)):
        kernel(1)
    real, counted = time.perf_counter() - real, clock() - counted
    assert said == [1]
    assert counted < 0.5 * real
    with on_compile(lambda: said.append(2)):
        kernel(2)
    kernel(1.0)  # compiled once more, where nobody listens
    assert said == [1]
