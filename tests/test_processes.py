"""Tasks in several processes."""

from __future__ import annotations

import os
import time
from functools import partial

import numpy as np
import pytest

from deepmf._utils.processes import in_parallel
from deepmf._utils.threads import thread_count


def square(x):
    time.sleep(0.02 * (x % 3))
    return x * x


def fail(x):
    if x == 1:
        raise ValueError("task 1 is bad")
    time.sleep(60 if x else 0)
    return x


def die(x):
    if x == 1:
        os.kill(os.getpid(), 9)
    return x


def threads(_):
    return thread_count(), os.environ["OMP_NUM_THREADS"]


KEPT = []


def keep_memory(x):
    time.sleep(1.1)  # joblib looks at a process's memory once a second
    KEPT.append(np.ones(50_000_000))
    return x


def same(A):
    return np.asarray(A).tolist(), A


@pytest.mark.parametrize("jobs", [1, 2, None])
def test_results_come_in_the_order_of_the_tasks(jobs):
    seen = []

    def progress(items, total):
        for item in items:
            seen.append((item, total))
            yield item

    expected = [x * x for x in range(7)]
    assert in_parallel(square, range(7), jobs, progress) == expected
    assert seen == [(x, 7) for x in expected]
    assert in_parallel(square, [], jobs) == []


def test_processes_that_keep_memory_are_replaced_in_silence():
    # a warning, here an error, would end joblib's own thread and the call would wait for ever
    assert in_parallel(keep_memory, range(6), 2) == list(range(6))


def test_functions_and_objects_of_a_session_travel():
    factor = 3
    assert in_parallel(partial(lambda x, y: factor * x * y, 2), [1, 2], 2) == [6, 12]


def test_processes_use_one_thread_each():
    assert in_parallel(threads, [0, 1], 2) == [(1, "1")] * 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_is_raised_at_once(jobs):
    began = time.monotonic()
    with pytest.raises(ValueError, match="task 1 is bad"):
        in_parallel(fail, range(6), jobs)
    assert time.monotonic() - began < 30


def test_a_process_that_dies_is_said():
    with pytest.raises(MemoryError, match="lack of memory; try fewer processes"):
        in_parallel(die, range(4), 2)


@pytest.mark.parametrize("turn", [np.asarray, np.transpose, lambda A: np.asarray(A).T])
def test_memory_maps_arrive_as_they_are(tmp_path, turn):
    np.save(tmp_path / "a.npy", np.arange(24.0).reshape(4, 6))
    A = turn(np.load(tmp_path / "a.npy", mmap_mode="r"))
    for there, back in in_parallel(same, [A, A], 2):
        assert there == A.tolist()
        np.testing.assert_array_equal(back, A)
