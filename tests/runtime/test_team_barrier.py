"""Team barriers: threads share iterations, and each share runs once, in its iteration."""

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
from processes import python

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.team_barrier import Team, claim_share, finish_share, shares_pending, yield_core
from jitkernels.runtime.loading import loader
from jitkernels.runtime.threads import team_size

needs_threads = pytest.mark.skipif(not team_size.has_threads(), reason="no threads of our own on this system")
ARGUMENTS, NAMES = ("int64*", "int64", "int64", "int64"), ("x", "rounds", "cells", "wanted")
NEST = """
import ctypes, os, signal, threading, time
import numpy as np
import jitkernels as jk
from jitkernels.runtime.loading import loader as load
from jitkernels.runtime.threads import team_size as openmp, thread_pool as pool
from test_team_barrier import called, diffused, expected
signal.alarm(100)
"""


def body(x: Any, rounds: int, cells: int, team: Team) -> None:
    """In each round every cell becomes the sum of all cells of the round before, and its number."""
    members = team.team_size
    for number in range(rounds):
        for turn in range(members):
            share = (team.thread + turn) % members
            if claim_share(team, share, number) == 0:
                continue
            for i in range(share * cells // members, (share + 1) * cells // members):
                total = 0
                for j in range(cells):
                    total += x[number * cells + j]
                x[(number + 1) * cells + i] = total % 1009 + i
            finish_share(team)
        while shares_pending(team, number) != 0:
            yield_core()


def members(wanted: int) -> int:
    return wanted


def called() -> Any:
    """The C function."""
    nest = RangeKernel("rounds", ARGUMENTS, body, extent=2, together=members, flags=(), names=NAMES)
    kinds = [ctypes.c_void_p, *[ctypes.c_int64] * 3]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(loader.address_of(nest))


def diffused(function: Any, rounds: int, cells: int, wanted: int) -> AnyArray:
    x = np.zeros((rounds + 1, cells), np.int64)
    x[0] = np.arange(cells)
    assert function(x.ctypes.data, rounds, cells, wanted) == 0
    return x


def expected(rounds: int, cells: int) -> AnyArray:
    x = np.zeros((rounds + 1, cells), np.int64)
    x[0] = np.arange(cells)
    for number in range(rounds):
        x[number + 1] = x[number].sum() % 1009 + np.arange(cells)
    return x


@pytest.mark.parametrize("wanted", [-3, 0, 1, 2, 3, 64, 100, 1 << 40])
def test_iterations_with_any_number_of_members(wanted: int, restored_threads: int) -> None:
    import jitkernels as jk

    jk.set_num_threads(1000)
    for rounds, cells in ((0, 5), (1, 1), (50, 3), (200, 64), (20, 1000)):
        assert np.array_equal(diffused(called(), rounds, cells, wanted), expected(rounds, cells))


@needs_threads
def test_concurrent_callers() -> None:
    """Of more callers than helpers, some compute all shares themselves."""
    function, wanted = called(), expected(100, 64)
    wrong: list[int] = []

    def call() -> None:
        wrong.extend(i for i in range(20) if not np.array_equal(diffused(function, 100, 64, 8), wanted))

    callers = [threading.Thread(target=call) for _ in range(16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@needs_threads
def test_members_that_never_start() -> None:
    """Others compute their shares, and nobody waits for them."""
    code = """
openmp._addresses()
at = load.functions_of(openmp._runtime_source(), ("jk_helpers",))["jk_helpers"]
state = ctypes.c_int32.from_address(at)
state.value = pool.FREE  # as if there were a thread, which the system does not let run
openmp._cores.value = 1
jk.set_num_threads(2)
print(np.array_equal(diffused(called(), 300, 64, 2), expected(300, 64)), state.value == pool.FREE)
"""
    assert python(NEST + code, OMP_NUM_THREADS="2").split() == ["True"] * 2


@needs_threads
def test_forked_children_and_interruptions() -> None:
    """A child works alone, also where its parent's threads were inside an iteration; Ctrl-C is raised."""
    code = """
jk.set_num_threads(4)
function, over = called(), threading.Event()
def call():
    while not over.is_set():
        diffused(function, 200, 64, 4)
caller = threading.Thread(target=call)
caller.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if np.array_equal(diffused(function, 50, 64, 4), expected(50, 64)) else 1)
    print(os.waitpid(child, 0)[1], end=" ")
over.set()
caller.join()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        diffused(function, 200, 64, 4)
except KeyboardInterrupt:
    print("interrupted")
print(np.array_equal(diffused(function, 50, 64, 4), expected(50, 64)))
"""
    assert python(NEST + code, OMP_NUM_THREADS="4").split() == ["0"] * 20 + ["interrupted", "True"]
