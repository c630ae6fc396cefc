"""``jitkernels bench at-hit``: cost of a kernel cache hit when many schemas share field values."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.vector import VMulAttr
from jitkernels.benchmarks.processes import run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import time_calls
from jitkernels.tuning.timer import Timing

SCHEMA_COUNT = 100
PROMISED_HIT_SECONDS = 200e-9


def verdict(lines: Sequence[Line]) -> Verdict:
    (line,) = lines
    slowest = max(timing.seconds for timing in line.timings.values())
    return Verdict(
        f"at(attr) on a hit takes at most {slowest * 1e9:.0f} ns with {SCHEMA_COUNT} more schemas "
        f"(promised: {PROMISED_HIT_SECONDS * 1e9:.0f} ns)",
        slowest <= PROMISED_HIT_SECONDS,
    )


@benchmark("at-hit", verdict=verdict)
def at_hit(settings: Settings) -> Iterator[Line]:
    """KernelFuncs.cache().at(attr) on a hit, before and after 100 schemas of equal fields."""
    measurements = run(__name__, "child", settings.seconds, JITKERNELS_TUNE="off")
    yield Line("at-hit", "n = 8", {name: Timing(*values) for name, values in measurements.items()})


def child(seconds: float) -> dict[str, tuple[float, float]]:
    """Return time and spread of a hit without other schemas, and of the first and the last of a hundred with them."""
    at = jk.KernelFuncs.cache().at
    attr = jk.VMulAttr(n=8)
    at(attr)
    timings = {"alone": time_calls({"hit": partial(at, attr)}, seconds=seconds)["hit"]}
    others = [_schema(number)(n=8) for number in range(SCHEMA_COUNT)]
    for other in others:
        at(other)
    calls = {"oldest": partial(at, attr), "newest": partial(at, others[-1]), "equal attr": partial(at, type(attr)(n=8))}
    timings |= time_calls(calls, seconds=3 * seconds)
    return {name: (timing.seconds, timing.spread) for name, timing in timings.items()}


def _schema(number: int) -> Callable[..., Any]:
    """Create a schema like VMUL, in this process only."""

    class CopyAttr(VMulAttr, kernel_type=f"COPY{number}"):
        """A copy of VMUL: z = x * y."""

    def refer(attr: Any, x: Any, y: Any, z: Any) -> None:
        np.multiply(x, y, z)

    implements(CopyAttr, name="refer")(refer)
    return CopyAttr
