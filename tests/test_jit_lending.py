"""Memory that calls lend to their nests: it is kept for the next call, and belongs to one call at a time."""

import threading
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.benchmark.processes import script
from jitkernels.graph.emit.lending import LEAST, MOST


def smoothed(u: Any) -> None:
    u[1:-1] = (u[:-2] + u[2:]) / 2


COUNTED = """
import resource
import numpy as np
import jitkernels as jk
from jitkernels.benchmark.processes import script
compiled, u = jk.jit(lambda u: u.__setitem__(slice(1, -1), (u[:-2] + u[2:]) / 2)), np.ones(500_000)
for _ in range(3):
    compiled(u)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    compiled(u)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_pages_are_not_asked_for_again() -> None:
    pytest.importorskip("resource")
    # The C library gives large memory back to the system at once then, as it does anyhow now and then.
    assert script(COUNTED, MALLOC_MMAP_THRESHOLD_="100000") < 500


@pytest.mark.parametrize("words", [LEAST // 8, MOST // 8])
def test_sizes_around_those_that_are_kept(words: int) -> None:
    compiled = jk.jit(smoothed)
    for size in (words - 24, words - 8, 5, words, 9, words - 16):
        for _ in range(2):
            u = np.arange(size) % 7.0
            expected = u.copy()
            smoothed(expected)
            compiled(u)
            assert np.array_equal(u, expected)


def test_calls_at_once_have_memory_of_their_own() -> None:
    compiled, wrong = jk.jit(smoothed), []

    def run(size: int) -> None:
        for seed in range(60):
            u = np.arange(size + seed) % (7.0 + seed)
            expected = u.copy()
            smoothed(expected)
            compiled(u)
            if not np.array_equal(u, expected):
                wrong.append(size)

    threads = [threading.Thread(target=run, args=(size,)) for size in (9_000, 30_000, 100_000, 200_000)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong
