"""Endless first calls, for tests that fork or kill processes during a first call."""

import dataclasses
import faulthandler
import functools
import itertools
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import toy

import jitkernels as jk
from jitkernels.attrs.schema.registry import all_schemas, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.tools import testing

Numbers: TypeAlias = "itertools.count[int]"
TIMEOUT_SECONDS = 60
"""Seconds after which a running process prints the traceback of each thread, and dies."""


def watched(seconds: int = TIMEOUT_SECONDS) -> None:
    """Kill this process by SIGALRM after a timeout; each child has to call this again."""
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(seconds)


def plant(*, cold: bool) -> None:
    """Register a kernel of the toy row; with `cold`, every attr needs a new compilation."""

    def of_its_own(attr: toy.ToyAttr) -> RangeKernel:
        return dataclasses.replace(toy.right(attr), name=f"toy_{attr.n}")

    toy.register()
    implements(toy.ToyAttr, name="gen")(of_its_own if cold else toy.right)


@functools.cache
def _attrs() -> tuple[jk.KernelAttr, ...]:
    shipped = [row for row in all_schemas() if row is not toy.ToyAttr]
    return tuple(testing.middle(row, dtype) for row in shipped for dtype in ("float32", "float64"))


def first_call(number: int) -> int:
    """Make a call that is a first one for a new number: of a kernel, an everyday function, or a source to build."""
    kind, size = number % 3, number + 1
    if kind == 0:
        attr = _attrs()[number // 3 % len(_attrs())]
        testing.check_values(attr, jk.KernelFuncs.cache().at(attr))
    elif kind == 1:
        x = np.arange(2.0 * size, dtype=np.float32).reshape(2, size)
        assert np.array_equal(jk.vmul(x, x), x * x)
        assert np.allclose(jk.vexp(x / size), np.exp(x / size))
    else:
        own = toy.ToyAttr(n=size)
        x, table, ids, y = own.signature().sample()
        jk.KernelFuncs.cache().at(own)(x, table, ids, y)
        assert np.array_equal(y, x + table[ids])
    return number


def llvm_of_others(number: int) -> None:
    """Compile with llvmlite directly, as another package in the process may."""
    import llvmlite.binding as llvm

    assert "@f" in str(llvm.parse_assembly(f"define i64 @f() {{ ret i64 {number} }}"))


class Workers:
    """Threads that call a function with increasing numbers until they are stopped."""

    def __init__(self, numbers: Numbers, *works: Callable[[int], object]) -> None:
        self._numbers = numbers
        self._stop = threading.Event()
        self._failed: list[str] = []
        self._threads = [threading.Thread(target=self._run, args=(work,)) for work in works]
        for thread in self._threads:
            thread.start()

    def _run(self, work: Callable[[int], object]) -> None:
        try:
            while not self._stop.is_set():
                work(next(self._numbers))
        except BaseException:  # noqa: BLE001  # `finish` reports it
            self._failed.append(traceback.format_exc())

    def finish(self) -> None:
        """Wait until all have stopped; AssertionError with the traceback of one that failed."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self._failed, self._failed[0]


def fork(numbers: Numbers, *, children: int) -> int:
    """Fork a child that makes first calls in two threads, and forks `children` generations of its own."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            watched()
            workers = Workers(numbers, first_call)
            if children:
                wait_for(fork(numbers, children=children - 1))
            for _ in range(3):
                first_call(next(numbers))
            workers.finish()
            status = 0
        except BaseException:  # noqa: BLE001  # a child must not return into its parent's code
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return child


def wait_for(child: int) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, f"a child ended with status {status}"


def fork_meanwhile(count: int, *, cold: bool) -> None:
    """Fork `count` times while other threads make first calls; parent and child make more of them afterwards."""
    watched(TIMEOUT_SECONDS + 3 * count)
    plant(cold=cold)
    numbers = itertools.count()
    workers = Workers(numbers, first_call, llvm_of_others if cold else first_call)
    waits: list[float] = []
    children: list[int] = []
    for number in range(count):
        time.sleep(random.random() * 0.02)
        started = time.perf_counter()
        children.append(fork(numbers, children=number % 4 == 0))
        waits.append(time.perf_counter() - started)
        first_call(next(numbers))
        if len(children) > 1:
            wait_for(children.pop(0))
    workers.finish()
    for child in children:
        wait_for(child)
    middle, longest = sorted(waits)[count // 2], max(waits)
    took = f"a fork took {middle:.3f} s, the longest {longest:.3f} s"
    sys.stdout.write(f"{count} forks, {next(numbers)} first calls, {took}\n")


def pool(method: str) -> None:
    """Start and use a multiprocessing pool while other threads make first calls."""
    import multiprocessing

    watched()
    plant(cold=True)
    numbers = itertools.count()
    workers = Workers(numbers, first_call, first_call)
    for _ in range(2 if method == "fork" else 1):  # other methods inherit nothing
        with multiprocessing.get_context(method).Pool(2, plant_cold) as processes:
            assert processes.map(first_call, range(100, 106), chunksize=1) == list(range(100, 106))
    workers.finish()
    sys.stdout.write("done\n")


def plant_cold() -> None:
    watched()
    plant(cold=True)
