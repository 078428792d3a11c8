"""Projection of long columns onto the simplex in linear time, compiled by Numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepmf.kernels.tiles import jit


@jit
def project_rows(M: Any, out: Any, first: int, last: int) -> None:
    """Rows first, ..., last - 1 of M as max(y - t, 0), where t makes the sum one.

    t by one pass that keeps the entries which may exceed it, and passes over these (Condat, "Fast
    projection onto the simplex and the l1 ball", Mathematical Programming 158, 2016). Entries are
    taken relative to the largest, so that sums keep their digits.
    """
    size = M.shape[1]
    kept, waiting = np.empty(size), np.empty(size)
    for j in range(first, last):
        y, top = M[j], M[j].max()
        kept[0], count, others = y[0] - top, 1, 0
        t = kept[0] - 1
        for i in range(1, size):
            v = y[i] - top
            if v > t:
                above = t + (v - t) / (count + 1)
                if above > v - 1:
                    kept[count], count, t = v, count + 1, above
                else:  # those so far are below the threshold of v alone, but may come back
                    for k in range(count):
                        waiting[others + k] = kept[k]
                    others, kept[0], count, t = others + count, v, 1, v - 1
        for k in range(others):
            if waiting[k] > t:
                kept[count], count = waiting[k], count + 1
                t += (waiting[k] - t) / count
        before = -1
        while count != before:
            before, left = count, 0
            for k in range(before):
                if kept[k] > t:
                    kept[left], left = kept[k], left + 1
                else:
                    count -= 1
                    t += (t - kept[k]) / count
        total = 0.0
        for k in range(count):
            total += kept[k]
        t = (total - 1) / count
        for i in range(size):
            out[j, i] = max(y[i] - top - t, 0)
