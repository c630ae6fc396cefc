"""``jitkernels bench launch``: call overhead of kernels and of everyday functions."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import time_calls


def verdict(lines: Sequence[Line]) -> Verdict:
    first = lines[0]
    times = ", ".join(f"{name} {timing.seconds * 1e9:.1f} ns" for name, timing in first.timings.items())
    return Verdict(f"{first.case}: {times}")


@benchmark("launch", verdict=verdict, against="np.multiply(x, y, z)")
def launch(settings: Settings) -> Iterator[Line]:
    """Call overhead of VMUL against numpy.multiply, float32."""
    for n in settings.limited((8, 32, 128, 1024)):
        x, y, z = (np.ones(n, np.float32) for _ in range(3))
        kernel = jk.KernelFuncs.cache().at(jk.VMulAttr(n=n))
        everyday = jk.vmul
        calls: dict[str, Bound] = {
            "kernel(x, y, z)": partial(kernel, x, y, z),
            "jk.vmul(x, y, out=z)": partial(everyday, x, y, out=z),
            "jk.vmul(x, y)": partial(everyday, x, y),
            "np.multiply(x, y, z)": partial(np.multiply, x, y, z),
            "np.multiply(x, y)": partial(np.multiply, x, y),
        }
        timings = time_calls(calls, seconds=4 * settings.seconds, rounds=(3, 40))
        yield Line("launch", f"n = {n}", timings, "kernel(x, y, z)")
