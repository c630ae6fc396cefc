"""``jitkernels bench at-hit``: cost of a kernel cache hit when many rows share field values."""

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

ROWS = 100
LIMIT = 200e-9


def verdict(lines: Sequence[Line]) -> Verdict:
    (line,) = lines
    slowest = max(timing.seconds for timing in line.timings.values())
    return Verdict(
        f"at(attr) on a hit takes at most {slowest * 1e9:.0f} ns with {ROWS} more rows "
        f"(promised: {LIMIT * 1e9:.0f} ns)",
        slowest <= LIMIT,
    )


@benchmark("at-hit", verdict=verdict)
def at_hit(settings: Settings) -> Iterator[Line]:
    """KernelFuncs.cache().at(attr) on a hit, before and after 100 rows of equal fields."""
    measurements = run(__name__, "child", settings.seconds, JITKERNELS_TUNE="off")
    yield Line("at-hit", "n = 8", {name: Timing(*values) for name, values in measurements.items()})


def child(seconds: float) -> dict[str, tuple[float, float]]:
    """Return time and spread of a hit without other rows, and of the first and the last of a hundred with them."""
    at = jk.KernelFuncs.cache().at
    attr = jk.VMulAttr(n=8)
    at(attr)
    timings = {"alone": time_calls({"hit": partial(at, attr)}, seconds=seconds)["hit"]}
    others = [_row(number)(n=8) for number in range(ROWS)]
    for other in others:
        at(other)
    calls = {"oldest": partial(at, attr), "newest": partial(at, others[-1]), "equal attr": partial(at, type(attr)(n=8))}
    timings |= time_calls(calls, seconds=3 * seconds)
    return {name: (timing.seconds, timing.spread) for name, timing in timings.items()}


def _row(number: int) -> Callable[..., Any]:
    """Create a row like VMUL, in this process only."""

    class RowAttr(VMulAttr, kernel_type=f"ROW{number}"):
        """A copy of VMUL: z = x * y."""

    def refer(attr: Any, x: Any, y: Any, z: Any) -> None:
        np.multiply(x, y, z)

    implements(RowAttr, name="refer")(refer)
    return RowAttr
