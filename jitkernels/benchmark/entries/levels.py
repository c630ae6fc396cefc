"""``jitkernels bench levels``: what fusion gives, on the two expressions that MegBrain's compiler was shown with."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from jitkernels.benchmark.compilers import own_compiler
from jitkernels.benchmark.programs import all_programs
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import time_calls
from jitkernels.peers import Bound
from jitkernels.signature import AnyArray

ELEMENTS = 1 << 22
FUSED, UNFUSED, NUMPY = "level 3", "level 0", "numpy, out="
LEAST = {UNFUSED: 1.5, NUMPY: 1.0}


def verdict(lines: Sequence[Line]) -> Verdict:
    speeds = {(line.group, name): line.speed_over(name) or 0.0 for line in lines for name in LEAST}
    words = (
        f"{group} {speed:.2f} times {name} (promised: {LEAST[name]})"
        for (group, name), speed in speeds.items()
    )
    return Verdict(
        f"{FUSED}: {'; '.join(words)}", all(speed >= LEAST[name] for (_, name), speed in speeds.items())
    )


@benchmark("levels", verdict=verdict, against=UNFUSED)
def levels(settings: Settings) -> Iterator[Line]:
    """a * b * c and a * b + c of 2^22 float32 at levels 0 and 3, and NumPy with out=."""
    jit = own_compiler()
    for name, ufunc in (("product", np.multiply), ("product_and_sum", np.add)):
        program = all_programs()[name]
        a, b, c = program.arguments(ELEMENTS, "float32")
        out = np.empty_like(a)
        calls: dict[str, Bound] = {
            label: partial(jit(program.function, opt_level=level), a, b, c, out=out)
            for label, level in ((FUSED, 3), (UNFUSED, 0))
        }
        calls[NUMPY] = partial(_by_numpy, ufunc, a, b, c, out)
        timings = time_calls(calls, seconds=4 * settings.seconds, rounds=(5, 40))
        yield Line(name, f"{ELEMENTS} elements", timings, FUSED)


def _by_numpy(ufunc: np.ufunc, a: AnyArray, b: AnyArray, c: AnyArray, out: AnyArray) -> None:
    np.multiply(a, b, out)
    ufunc(out, c, out)
