"""The thread pool: each part runs once, whichever helper comes, and nobody waits for a missing one."""

import os

import pytest
from processes import python

from jitkernels.runtime.threads import team_size

pytestmark = pytest.mark.skipif(not team_size.has_threads(), reason="no threads of our own on this system")

POOL = """
import ctypes, signal, threading, time
import jitkernels as jk
from jitkernels.runtime.loading import loader as load
from jitkernels.runtime.threads import team_size as openmp, thread_pool as pool
signal.alarm(100)
jk.set_num_threads(8)
REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
RANGE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

def parallel(part, team, parts):
    "Does part(number) for each of the parts."
    function = ctypes.CFUNCTYPE(None, REGION, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function(openmp._addresses()["jk_parallel"])(REGION(lambda _, number, all: part(number)), None, team, parts)

def state():
    "What the first helper is about to do."
    openmp._addresses()
    at = load.functions_of(openmp._runtime_source(), ("jk_helpers",))["jk_helpers"]
    return ctypes.c_int32.from_address(at)

def one_helper():
    openmp._addresses()
    openmp._cores.value = 1
"""


def test_helpers_that_never_start() -> None:
    """The caller computes their parts and returns; later calls request them again."""
    code = """
state().value = pool.FREE  # as if there were a thread, which the system does not let run
one_helper()
for parts in (2, 3, 8, pool.MAX_POOL_PARTS):
    done = []
    parallel(done.append, 2, parts)
    print(sorted(done) == list(range(parts)), state().value == pool.FREE, end=" ")
import numpy as np
x = np.arange(400_000.0)
print(np.array_equal(jk.jit(lambda x: x * x + x)(x), x * x + x), state().value == pool.FREE)
"""
    assert python(POOL + code, OMP_NUM_THREADS="2").split() == ["True"] * 10


def test_a_caller_waits_for_running_parts() -> None:
    """It sleeps where that takes long, and is woken; a helper that was slow once helps the next caller."""
    code = """
one_helper()
for _ in range(3):
    begun, done = threading.Event(), []
    def part(number):
        if number == 0:
            begun.wait()  # the other part is a helper's then
        else:
            begun.set()
            time.sleep(0.1)
        done.append(number)
    parallel(part, 2, 2)
    print(*done, state().value == pool.FREE)
"""
    assert python(POOL + code).splitlines() == ["0 1 True"] * 3


def test_busy_helpers_are_not_awaited() -> None:
    """A caller without free helpers computes everything at once."""
    code = """
one_helper()
begun, over, first, second = threading.Semaphore(0), threading.Event(), [], []
def part(number):
    begun.release()
    over.wait()
    first.append(number)
other = threading.Thread(target=parallel, args=(part, 2, 2))
other.start()
begun.acquire()
begun.acquire()
parallel(second.append, 2, 4)
print(second, first)
over.set()
other.join()
print(sorted(first), state().value == pool.FREE)
"""
    assert python(POOL + code).splitlines() == ["[0, 1, 2, 3] []", "[0, 1] True"]


def test_each_part_runs_once() -> None:
    """With several callers, more threads than cores, and pauses in which helpers fall asleep."""
    code = """
def call(team):
    for turn in range(300):
        parts = 1 + turn % 40
        done = []
        parallel(done.append, team, parts)
        assert sorted(done) == list(range(parts)), (team, parts, done)
        if turn % 100 == 0:
            time.sleep(0.01)
    right.append(team)
right = []
callers = [threading.Thread(target=call, args=(team,)) for team in (2, 3, 4, 8)]
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
print(sorted(right))
"""
    assert python(POOL + code) == "[2, 3, 4, 8]\n"


def test_helpers_use_the_rounding_mode_of_their_caller() -> None:
    """Settings of the thread that created a helper do not apply to later callers."""
    code = """
one_helper()
libm = ctypes.CDLL("libm.so.6")
upward = 0x800 if load.cpu_target.target().is_x86 else 0x400000
one, third = 1.0, 1 / 3
for mode in (upward, 0, upward, 0):
    seen, begun = [], threading.Event()
    def part(number):
        seen.append((threading.get_ident(), one / 3.0 > third))
        begun.set() if number else begun.wait(50)
    libm.fesetround(mode)
    parallel(part, 2, 2)
    libm.fesetround(0)
    print(len({thread for thread, _ in seen}) == 2, {up for _, up in seen} == {mode > 0}, end=" ")
"""
    assert python(POOL + code, OMP_NUM_THREADS="2").split() == ["True"] * 8


def test_the_largest_number_of_threads() -> None:
    """One caller requests every helper again and again, while others request helpers too."""
    code = """
jk.set_num_threads(1000)
def call(team):
    for turn in range(10):
        done = []
        parallel(done.append, team, pool.MAX_POOL_PARTS)
        assert sorted(done) == list(range(pool.MAX_POOL_PARTS)), (team, done)
    right.append(team)
right = []
callers = [threading.Thread(target=call, args=(pool.MAX_HELPERS + 1,)) for _ in range(3)]
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
import numpy as np
x = np.arange(20_000_000.0)
function = jk.jit(lambda x: x * 2 + 1)
print(right, all(np.array_equal(function(x), x * 2 + 1) for _ in range(5)))
"""
    assert python(POOL + code, OMP_NUM_THREADS="1000") == "[128, 128, 128] True\n"


def test_without_more_threads() -> None:
    """Where the system starts no thread, the caller does everything."""
    code = """
refused = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(lambda *given: 11)
real = openmp.symbol_address
instead = {"pthread_create": ctypes.cast(refused, ctypes.c_void_p).value}
openmp.symbol_address = lambda name, *library: instead.get(name) or real(name, *library)
for _ in range(2):
    done = []
    parallel(done.append, 4, 8)
    print(sorted(done) == list(range(8)), state().value == pool.ABSENT)
"""
    assert python(POOL + code).splitlines() == ["True True"] * 2


def test_shares_partition_the_loop() -> None:
    """Parts are disjoint, consist of whole steps, and cover the loop."""
    code = """
share = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, RANGE, *[ctypes.c_int64] * 3)(
    openmp.sharing_function().address()
)
several = set()
for extent in (2, 3, 7, 63, 64, 100, 4095, 4096, 4097, 100_001):
    for unit in (1, 32, 64):
        for work in (10**3, 3 * 10**5, 10**6, 10**8):
            found = []
            def steps(_, begin, end):
                found.append((begin, end))
                return 0
            assert share(None, RANGE(steps), extent, unit, work) == 0
            found.sort()
            assert found[0][0] == 0 and found[-1][1] == extent, (extent, unit, work, found)
            assert all(one[1] == other[0] for one, other in zip(found, found[1:])), (extent, unit, work, found)
            assert all(begin < end and begin % unit == 0 for begin, end in found), (extent, unit, work, found)
            several.add(len(found))
print(sorted(several))
"""
    assert python(POOL + code, OMP_NUM_THREADS="3").strip() == "[1, 2, 3, 4, 7, 12]"


def test_code_of_helpers_is_never_freed() -> None:
    """They run it while the interpreter shuts down."""
    code = """
import gc, weakref
from jitkernels.runtime.loading import code_memory as pages
parallel(lambda number: None, 2, 8)
held = [weakref.ref(load._for_good(openmp._runtime_source())), *map(weakref.ref, pages._mappings)]
load._loaded.clear()
pages._mappings.clear()
gc.collect()
print(all(one() is not None for one in held))
"""
    assert python(POOL + code, OMP_NUM_THREADS="2") == "True\n"


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="there are no such policies here")
def test_helpers_do_not_take_the_core_of_their_caller() -> None:
    """Whoever wakes a thread may have to wait for its own core, for milliseconds where others compete."""
    code = """
import os
before = set(os.listdir("/proc/self/task"))
begun = threading.Event()
def part(number):
    if number:
        begun.set()
    else:
        begun.wait()
parallel(part, 2, 2)
helpers = set(os.listdir("/proc/self/task")) - before
print([os.sched_getscheduler(int(one)) == os.SCHED_BATCH for one in helpers])
"""
    assert python(POOL + code, OMP_NUM_THREADS="2") == "[True]\n"


def test_signals_are_delivered_to_the_caller() -> None:
    """Also where a thread blocks a signal to wait for it, with helpers running already."""
    code = """
import os
before = set(os.listdir("/proc/self/task"))
begun = threading.Event()
def part(number):
    if number:
        begun.set()
    else:
        begun.wait()
parallel(part, 2, 2)
mine = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.kill(os.getpid(), signal.SIGUSR1)
found = signal.sigtimedwait({signal.SIGUSR1}, 10)
print(len(set(os.listdir("/proc/self/task")) - before), mine, found.si_signo == signal.SIGUSR1)
"""
    assert python(POOL + code, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="1") == "1 set() True\n"


PHASES = """
import os
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

class Phase(ctypes.Structure):
    _fields_ = [("function", CALLBACK)] + [(name, ctypes.c_int64) for name in ("extent", "unit", "work", "waits")]

def in_phases(*phases):
    "Does phases of functions of a number: each its parts, behind a barrier."
    openmp._addresses()
    kept = [CALLBACK(lambda _, begin, end, one=one: [one(i) for i in range(begin, end)] and 0) for one, _ in phases]
    listed = (Phase * len(phases))(*[Phase(one, n, 1, n << 20, 1) for one, (_, n) in zip(kept, phases)])
    at = load.functions_of(openmp._runtime_source(), ("jk_share_run",))["jk_share_run"]
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(at)
    return run(None, listed, len(phases))
"""


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="threads of a process cannot have priorities of their own")
def test_a_thread_takes_no_wakeup_of_another_phase() -> None:
    """A helper that wakes the caller behind one phase, and sleeps in the next before the caller runs, leaves it that.

    The caller is the last to run on the only processor, so the helper always is that early.
    """
    code = """
jk.set_num_threads(2)
one_helper()
parallel(lambda number: time.sleep(0.01), 2, 2)  # start the helper
begun, done = threading.Event(), []
def first(number):
    if number == 0:
        begun.wait()  # the other part is the helper's then
    else:
        begun.set()
        time.sleep(0.1)  # the caller sleeps by now
processor = {min(os.sched_getaffinity(0))}
for thread in os.listdir("/proc/self/task"):
    os.sched_setaffinity(int(thread), processor)
os.sched_setscheduler(threading.get_native_id(), os.SCHED_IDLE, os.sched_param(0))
signal.alarm(20)
print(in_phases((first, 2), (done.append, 1), (done.append, 2)), sorted(done))
"""
    assert python(POOL + PHASES + code, OMP_NUM_THREADS="2").strip() == "0 [0, 0, 1]"
