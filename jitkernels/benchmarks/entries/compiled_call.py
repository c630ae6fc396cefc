"""``jitkernels bench compiled-call``: overhead of a compiled call with almost no work."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.compilers import compilers
from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.programs import all_programs
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import time_calls

SIZES = (8, 128, 1024)
WITH_OUT = "f(a, b, c, out=o)"
PROMISED_CALL_SECONDS = 100e-9


def verdict(lines: Sequence[Line]) -> Verdict:
    first = lines[0]
    times = ", ".join(f"{name} {timing.seconds * 1e9:.0f} ns" for name, timing in first.timings.items())
    return Verdict(
        f"{first.case}: {times} (promised with out=: {PROMISED_CALL_SECONDS * 1e9:.0f} ns)",
        first.timings[WITH_OUT].seconds <= PROMISED_CALL_SECONDS,
    )


@benchmark("compiled-call", verdict=verdict, against="numpy, out=")
def compiled_call(settings: Settings) -> Iterator[Line]:
    """A compiled a * b + c of three arrays of 8 to 1024 float32, with and without out=, and other compilers."""
    program = all_programs()["product_and_sum"]
    function = jk.jit(program.function)
    for n in settings.limited(SIZES):
        a, b, c = arguments = program.arguments(n, "float32")
        out = np.empty_like(a)
        calls: dict[str, Bound] = {
            WITH_OUT: partial(function, *arguments, out=out),
            "f(a, b, c)": partial(function, *arguments),
            "numpy, out=": partial(_by_numpy, a, b, c, out),
            "numpy": partial(program.function, *arguments),
        }
        for name, maker in compilers().items() if settings.peers else ():
            for call in maker(program, arguments, 1):  # at these sizes all forms cost the same
                calls[name] = call
        timings = time_calls(calls, seconds=4 * settings.seconds, rounds=(3, 40))
        yield Line("compiled-call", f"n = {n}", timings, WITH_OUT)


def _by_numpy(a: AnyArray, b: AnyArray, c: AnyArray, out: AnyArray) -> None:
    np.multiply(a, b, out)
    np.add(out, c, out)
