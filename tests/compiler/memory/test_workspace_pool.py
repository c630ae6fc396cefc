"""The workspace pool: memory is kept for the next call, and belongs to one call at a time."""

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jitted import array, same

import jitkernels as jk
from jitkernels.benchmarks.processes import script
from jitkernels.runtime import workspace_allocator


def smoothed(u: Any) -> None:
    u[1:-1] = (u[:-2] + u[2:]) / 2


COUNTED = """
import resource
import numpy as np
import jitkernels as jk
from jitkernels.benchmarks.processes import script
compiled, u = jk.jit(lambda u: u.__setitem__(slice(1, -1), (u[:-2] + u[2:]) / 2)), np.ones(ELEMENTS)
for _ in range(3):
    compiled(u)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    compiled(u)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.parametrize("elements", [500_000, workspace_allocator.RESIDENT_BYTES // 8 + 1_000_000])
def test_pooled_pages_are_reused(elements: int) -> None:
    """Also large ones, which decay only after a while: there is no page fault."""
    pytest.importorskip("resource")
    # The C library gives large memory back to the system at once then, as it does anyhow now and then.
    assert script(COUNTED.replace("ELEMENTS", str(elements)), MALLOC_MMAP_THRESHOLD_="100000") < 500


KERNELS = {
    "a workspace of dynamic size, and tables": "numbers = np.ones(500_009); call = lambda: jk.rfft(numbers)",
    "a workspace of fixed size": "a = np.ones((1500, 1500), 'f'); c = a.copy(); call = lambda: jk.matmul(a, a, out=c)",
    "scratch": "numbers = np.arange(1_000_000.0)[::-1]; out = numbers.copy(); call = lambda: jk.sort(numbers, out=out)",
}
COUNTED_CALLS = """
import resource
import numpy as np
import jitkernels as jk
from jitkernels.benchmarks.processes import script
jk.set_num_threads(1)
CALL
with jk.use("gen"):
    for _ in range(4):
        call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        call()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_reuse_large_memory(kernel: str) -> None:
    pytest.importorskip("resource")
    assert script(COUNTED_CALLS.replace("CALL", KERNELS[kernel]), MALLOC_MMAP_THRESHOLD_="16000000") < 500


DECAYED = """
import time
from pathlib import Path
import numpy as np
import jitkernels as jk
from jitkernels.benchmarks.processes import script
from jitkernels.runtime import workspace_allocator
compiled = jk.jit(lambda u: u.__setitem__(slice(1, -1), (u[:-2] + u[2:]) / 2))
u, small = np.ones(workspace_allocator.RESIDENT_BYTES // 8 + 1_000_000), np.ones(10_000)
workspace_allocator.release()
workspace_allocator.decay_after(SECONDS)
compiled(u)
time.sleep(1.1)
compiled(small)
compiled(u)
assert (u == 1).all()
time.sleep(1.1)
compiled(small)
lines = Path("/proc/self/smaps").read_text().splitlines()
print(sum(int(line.split()[1]) for line in lines if line.startswith("LazyFree")) >> 10)
"""


@pytest.mark.parametrize("seconds", [1, 60])
def test_the_pages_of_pieces_without_use_are_marked_as_free(seconds: int) -> None:
    if not Path("/proc/self/smaps").exists():
        pytest.skip("no /proc/self/smaps")
    marked = script(DECAYED.replace("SECONDS", str(seconds)))
    assert marked > workspace_allocator.RESIDENT_BYTES * 0.9 / 2**20 if seconds == 1 else marked == 0


@pytest.mark.parametrize("words", [workspace_allocator.ON_STACK // 8, workspace_allocator.RESIDENT_BYTES // 8])
def test_sizes_around_the_pooling_limit(words: int) -> None:
    compiled, is_large = jk.jit(smoothed), words > 1_000_000
    for size in (words - 8, words) if is_large else (words - 24, words - 8, 5, words, 9, words - 16):
        for _ in range(1 + (not is_large)):
            u = np.arange(size) % 7.0
            expected = u.copy()
            smoothed(expected)
            compiled(u)
            assert np.array_equal(u, expected)


def test_each_thread_has_its_own_pool() -> None:
    """Threads that take turns reuse the memory that each released; the pool is bounded, and emptied on request."""
    workspace_allocator.release()
    before, compiled, sizes = workspace_allocator.pooled_bytes(), jk.jit(smoothed), []
    barrier = threading.Barrier(8)
    compiled(np.ones(50_000))
    piece = workspace_allocator.pooled_bytes() - before

    def run() -> None:
        u = np.ones(50_000)
        for _ in range(20):
            barrier.wait()
            compiled(u)
            sizes.append(workspace_allocator.pooled_bytes() - before)

    workspace_allocator.release()
    _at_once([threading.Thread(target=run) for _ in range(8)])
    assert piece > 350_000
    assert max(sizes) <= 8 * piece
    assert compiled.stats().arena_high_water >= piece - 5000
    assert workspace_allocator.release() == workspace_allocator.pooled_bytes() - before + max(sizes[-8:])
    assert workspace_allocator.pooled_bytes() == before


LARGE = """
import json
import numpy as np
import jitkernels as jk
from jitkernels.runtime import workspace_allocator as arenas

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

@jk.jit
def smoothed(u):
    u[1:-1] = (u[:-2] + u[2:]) / 2

u = np.ones(12_000_000)
smoothed(u)
arenas.limit_pool(100_000_000)
before, kept = resident(), arenas.pooled_bytes()
smoothed.release()
after = resident()
beyond = np.ones(100_000_000 // 8 + 1000)
smoothed(beyond)
print(json.dumps([before - after, kept, arenas.pooled_bytes()]))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="nothing tells how much memory there is")
def test_release_gives_memory_back() -> None:
    gone, kept, beyond = script(LARGE)
    assert kept > 90e6
    assert gone > 0.95 * kept
    assert beyond == 0  # what is larger than all that may be kept is not kept


SHORT = """
import json, resource
import numpy as np
import jitkernels as jk
from jitkernels.runtime import workspace_allocator as arenas

@jk.jit
def smoothed(u):
    u[1:-1] = (u[:-2] + u[2:]) / 2

@jk.jit
def more(u):
    return u + 1

def used():
    return int(open("/proc/self/statm").read().split()[0]) * 4096

small, u, v = np.ones(100), np.ones(12_000_000), np.ones(9_000_000)
more(small), smoothed(u), smoothed(v), more(v)
kept = arenas.pooled_bytes()
resource.setrlimit(resource.RLIMIT_AS, (used() + 40_000_000, -1))
found = more(v)  # 72 MB, which there are not beside what is kept
nothing = arenas.pooled_bytes()
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
del found
smoothed(v)
u[:] = np.arange(len(u)) % 7
resource.setrlimit(resource.RLIMIT_AS, (used() + 40_000_000, -1))
smoothed(u)  # 96 MB, which there are not beside 72
again = arenas.pooled_bytes()
resource.setrlimit(resource.RLIMIT_AS, (used() - 60_000_000, -1))
arenas.release()
try:
    smoothed(u)
    raised = False
except MemoryError:
    raised = True
print(json.dumps([kept, nothing, again, u[:3].tolist(), raised]))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="nothing tells how much memory there is")
def test_pooled_memory_is_released_when_memory_is_short() -> None:
    """For results and for intermediates; then NumPy allocates, and raises its own error."""
    kept, nothing, again, first, raised = script(SHORT)
    assert kept > 90e6
    assert nothing == 0
    assert 90e6 < again < 110e6
    assert first == [0, 1, 2]
    assert raised


FORKED = """
import os, threading
import numpy as np
import jitkernels as jk
from jitkernels.runtime import workspace_allocator as arenas

def f(u):
    for _ in range(40):
        u[1:-1] = 0.5 * (u[:-2] + u[2:])
    return u.sum()

compiled = jk.jit(f)
u = np.arange(300_000) % 11.0
expected = f(u.copy())
assert np.isclose(compiled(u.copy()), expected)
ends = threading.Event()

def compute():
    while not ends.is_set():
        assert np.isclose(compiled(u.copy()), expected)

others = [threading.Thread(target=compute) for _ in range(2)]
for one in others:
    one.start()
codes = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        bad = not np.isclose(compiled(u.copy()), expected) or arenas.pooled_bytes() > 3_000_000
        grown = jk.jit(lambda u: u.__setitem__(slice(1, -1), u[:-2] + u[2:]))
        v = np.arange(50_000.0)
        grown(v)
        os._exit(int(bad or v[1] != 2 or arenas.release() == 0))
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
ends.set()
for one in others:
    one.join()
print(codes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forks_while_other_threads_compute() -> None:
    """The child has a pool of its own, without the parent's memory."""
    assert script(FORKED, PYTHONWARNINGS="ignore") == [0, 0, 0, 0]


def test_failing_calls_release_their_workspace() -> None:
    """After index errors, and exceptions in loops."""

    def picked(u: Any, i: Any) -> Any:
        v = u[:-1] + u[1:]
        w = v[:-1] * v[1:] + v.sum()
        return w[i] + w.sum()

    def looped(u: Any, most: Any) -> Any:
        for k in range(5):
            u = np.cumsum(u[::-1]) / len(u)
            if u[0] > most:
                raise ValueError(f"round {k}")
        return u

    u = np.arange(40_000.0)
    for function, good, bad, error in (
        (picked, np.array([1, 2]), np.array([1, 10**6]), IndexError),
        (looped, 1e30, -1.0, ValueError),
    ):
        compiled = jk.jit(function)
        expected = function(u.copy(), good)
        same(compiled(u.copy(), good), expected)
        compiled(u.copy(), good)
        held = workspace_allocator.pooled_bytes()
        for _ in range(20):
            with pytest.raises(error):
                compiled(u.copy(), bad)
            assert workspace_allocator.pooled_bytes() == held
        same(compiled(u.copy(), good), expected)
        assert workspace_allocator.pooled_bytes() == held


def test_threads_in_one_function_and_its_gradient() -> None:
    def loss(w: Any, x: Any) -> Any:
        return np.mean(np.tanh(np.tanh(x @ w) @ w) ** 2)

    def looped(w: Any, x: Any) -> Any:
        for _ in range(12):
            x = np.tanh(x @ w) + x[::-1] / 2
        return x

    functions = jk.jit(loss), jk.jit(lambda w, x: jk.grad(loss)(w, x)), jk.jit(jk.grad(loss)), jk.jit(looped)
    wrong: list[int] = []
    given = [(array(n, n, seed=n) / n, array(64, n, seed=n + 1)) for n in (40, 64, 96, 100)]
    expected = [[function(*one) for function in functions] for one in given]
    same(expected[1][3], looped(*given[1]))

    def run(number: int) -> None:
        for i in range(40):
            at = (number + i) % len(given)
            for function, right in zip(functions, expected[at], strict=True):
                if not np.array_equal(function(*given[at]), right):
                    wrong.append(number)

    _at_once([threading.Thread(target=run, args=(number,)) for number in range(8)])
    assert not wrong


def test_ended_threads_keep_little_pooled_memory() -> None:
    compiled = jk.jit(smoothed)
    compiled(np.ones(50_000))
    workspace_allocator.release()
    before = workspace_allocator.pooled_bytes()
    for _ in range(100):
        _at_once([threading.Thread(target=compiled, args=(np.ones(50_000),))])
    assert workspace_allocator.pooled_bytes() - before <= workspace_allocator.SEARCHED_SLOTS * 500_000


def _at_once(threads: list[threading.Thread]) -> None:
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def test_concurrent_calls_have_separate_workspaces() -> None:
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
    _at_once(threads)
    assert not wrong
