"""Parallel loops of compiled functions: their estimated work, and into how many parts it is divided."""

import pytest
from processes import python

from jitkernels.runtime.threads import team_size

pytestmark = pytest.mark.skipif(not team_size.has_threads(), reason="no threads of our own on this system")

RECORDED = """
import ctypes
import numpy as np
import jitkernels as jk
from jitkernels.runtime.threads import team_size as openmp, parallel_for as sharing

RANGE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 2)
found = []

def record(data, function, extent, unit, work):
    found.append(min(-(-extent // unit), work // sharing.MIN_THREAD_WORK))
    return RANGE(function)(data, 0, extent)

share = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3)(record)
openmp._share = lambda: ctypes.cast(share, ctypes.c_void_p).value

def most(function, *arguments):
    "Threads that a call could use."
    found.clear()
    result = jk.jit(function)(*arguments)
    np.testing.assert_allclose(result, function(*arguments), rtol=1e-4)
    return max(found)

def some(*shape):
    return np.random.default_rng(1).random(shape, np.float32) + 1
"""


def threads(*calls: str) -> list[int]:
    """The most threads that each of some calls could use."""
    return [int(line) for line in python(RECORDED + "".join(f"print(most({call}))\n" for call in calls)).split()]


def test_reductions_of_columns_count_as_work() -> None:
    """Each of a few results takes a loop over all points."""
    code = "lambda p: ((p[None] - p[:, None]) * ((p[None] - p[:, None]) ** 2).sum(axis=-1)[:, :, None]).sum(axis=1)"
    few, many = threads(f"{code}, some(90, 3)", f"{code}, some(300, 3)")
    assert few < 2
    assert many >= 4


def test_memory_traffic_counts_as_work() -> None:
    """One addition moves twelve bytes."""
    code = "lambda a, b: a + b"
    few, many = threads(f"{code}, some(30_000), some(30_000)", f"{code}, some(100_000), some(100_000)")
    assert few < 2
    assert many >= 3


def test_work_per_row_is_counted_once() -> None:
    """A function of one number for each row is compared with one of each element."""
    rows, elements = threads(
        "lambda x, y: np.sin(x)[:, None] + y, some(400), some(400, 100)",
        "lambda x, y: np.sin(x[:, None] + y), some(400), some(400, 100)",
    )
    assert rows < 2
    assert elements >= 4


def test_vectors_are_not_divided() -> None:
    """Sums of columns compute a vector of columns at once; half a vector would take as long."""
    code = "lambda x: (x * x).sum(axis=0)"
    few, many = threads(f"{code}, some(60_000, 16)", f"{code}, some(4_000, 1_000)")
    assert few == 1
    assert many >= 4


def test_short_last_extents_are_unrolled() -> None:
    """Points of a hundred bodies are one kernel, with vectors along the bodies."""
    code = """
def forces(p, m):
    apart = p[None, :, :] - p[:, None, :]
    return (apart * (m * ((apart * apart).sum(axis=-1) + 0.01) ** -1.5)[:, :, None]).sum(axis=1)
function = jk.jit(forces)
function(some(100, 3), some(100))
print(function.stats().kernels)
"""
    assert python(RECORDED + code) == "1\n"
