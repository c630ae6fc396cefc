"""``jitkernels bench rows``: reductions of rows as compiled NumPy, against the kernels that are written by hand.

Where there is no such kernel, NumPy is what they are compared with.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

import jitkernels as jk
from jitkernels.benchmark.compilers import own_compiler
from jitkernels.benchmark.programs import all_programs
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import geometric_mean, time_calls
from jitkernels.peers import Bound

COMPILED, BY_HAND, NUMPY = "compiled", "by hand", "numpy"
PROGRAMS = ("softmax", "layer_norm", "log_sum_exp", "variance", "rms_norm", "cosine_similarity")
KERNELS = ("softmax", "layer_norm")
WIDTHS = {"ci": (16, 100, 1000), "full": (8, 16, 32, 64, 100, 128, 256, 1000, 4096)}
ROWS = {"ci": (1, 100), "full": (1, 10, 100, 1000)}
DTYPES = {"ci": ("float32",), "full": ("float32", "float64")}
LARGEST = 1 << 21
"""Elements; beyond, memory is measured."""
PROMISED = 0.9


def verdict(lines: Sequence[Line]) -> Verdict:
    apart = sorted({line.group for line in lines if line.figures["kernels"] != 1})
    speeds = {f"{line.group}, {line.case}": line.speed_over(BY_HAND) for line in lines}
    by_hand = {name: speed for name, speed in speeds.items() if speed is not None}
    behind = sorted((speed, name) for name, speed in by_hand.items() if speed < PROMISED)
    over_numpy = [line.speed_over(NUMPY) or 0.0 for line in lines]
    text = [
        f"over {name}: geometric mean {geometric_mean(found):.2f}, lowest {min(found, default=0.0):.2f}"
        for name, found in (("kernels by hand", [*by_hand.values()]), ("NumPy", over_numpy))
    ]
    text[0] += f" (promised: {PROMISED})"
    text += [f"  {speed:.2f} {name}" for speed, name in behind]
    text += [f"  more kernels than one: {name}" for name in apart]
    return Verdict("\n".join(text), not behind and not apart)


@benchmark("rows", verdict=verdict, against=BY_HAND)
def rows(settings: Settings) -> Iterator[Line]:
    """Reductions of rows, compiled, with out=: by hand where there is a kernel, and by NumPy; one thread."""
    jit = own_compiler()
    for name, dtype in product(PROGRAMS, DTYPES[settings.tag]):
        program = all_programs()[name]
        compiled = jit(program.function)
        for width, count in product(WIDTHS[settings.tag], ROWS[settings.tag]):
            if width * count > LARGEST:
                continue
            values = np.random.default_rng(0).uniform(0.5, 1.5, (2, count, width)).astype(dtype)
            columns = np.random.default_rng(1).uniform(0.5, 1.5, (2, width)).astype(dtype)
            of_columns = {"layer_norm": 2, "rms_norm": 1}.get(name, 0)
            of_rows = 2 if name == "cosine_similarity" else 1
            arguments = (*values[:of_rows], *columns[:of_columns])
            out = np.empty_like(
                compiled(*arguments)
            )  # of both, as it hangs on where arrays lie how long it takes
            calls: dict[str, Bound] = {COMPILED: partial(compiled, *arguments, out=out)}
            if name in KERNELS:
                calls[BY_HAND] = partial(getattr(jk, name), *arguments, out=out)
            calls[NUMPY] = partial(program.function, *arguments)
            timings = time_calls(calls, seconds=4 * settings.seconds, rounds=(5, 200))
            stats = compiled.stats()
            figures = {"kernels": stats.kernels / stats.compiles}
            yield Line(f"{name}, {dtype}", f"{count} x {width}", timings, COMPILED, figures=figures)
