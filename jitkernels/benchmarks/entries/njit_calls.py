"""``jitkernels bench njit-calls``: overhead of calling an everyday function from code compiled by numba."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import time_calls

CALLS_PER_LOOP = 1000
"""Calls of one timed loop, enough to make the entry into numba's code negligible."""
KERNEL, OUT, NEW = "kernel", "jk.softmax(x, out=y)", "jk.softmax(x)"


def verdict(lines: Sequence[Line]) -> Verdict:
    """Report the overhead of a call over its kernel."""
    more = {
        line.case: (line.timings[OUT].seconds - line.timings[KERNEL].seconds) / CALLS_PER_LOOP * 1e9 for line in lines
    }
    return Verdict("above the kernel: " + ", ".join(f"{case} {extra:.1f} ns" for case, extra in more.items()))


@benchmark("njit-calls", verdict=verdict, against=KERNEL)
def njit_calls(settings: Settings) -> Iterator[Line]:
    """Overhead of jk.softmax in @njit code over its kernel called by address; a thousand calls each."""
    into, new = _loops()
    for n in (8, 32, 256):
        x, y = np.linspace(0, 1, n, dtype=np.float32), np.empty(n, np.float32)
        calls: dict[str, Bound] = {
            KERNEL: partial(_kernel_loop(n), x.ctypes.data, y.ctypes.data, n),
            OUT: partial(into, x, y),
            NEW: partial(new, x),
        }
        for call in calls.values():
            call()  # compile, and look up the kernel
        timings = time_calls(calls, seconds=4 * settings.seconds, rounds=(3, 40))
        yield Line("njit-calls", f"n = {n}", timings, KERNEL)


def _loops() -> tuple[Callable[..., None], Callable[..., None]]:
    import numba

    def into(x: Any, y: Any) -> None:
        for _ in range(CALLS_PER_LOOP):
            jk.softmax(x, out=y)

    def new(x: Any) -> None:
        for _ in range(CALLS_PER_LOOP):
            jk.softmax(x)

    return numba.njit(into), numba.njit(new)


def _kernel_loop(n: int) -> Callable[..., None]:
    """Return a loop that calls the kernel at its address, as numba calls a C function."""
    import cffi
    import numba

    kernel = jk.KernelFuncs.cache().of_class(jk.SoftmaxAttr(rows=1, n=n, remain=1))
    function = cffi.FFI().cast("int64_t(*)(int64_t, int64_t, int64_t, int64_t, int64_t)", kernel.address)

    def loop(x: int, y: int, n: int) -> None:
        for _ in range(CALLS_PER_LOOP):
            function(x, y, 1, n, 1)

    return numba.njit(loop)  # type: ignore[no-any-return,unused-ignore]
