"""``jitkernels bench rows``: row reductions as compiled NumPy, against hand-written kernels.

Reductions without such a kernel are compared with NumPy.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.programs import all_programs
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean, time_calls

JIT_LEVEL, BY_HAND, NUMPY = "compiled", "by hand", "numpy"
PROGRAMS = ("softmax", "layer_norm", "log_sum_exp", "variance", "rms_norm", "cosine_similarity")
KERNELS = ("softmax", "layer_norm")
WIDTHS = {TINY_TAG: (16,), "ci": (16, 100, 1000), "full": (8, 16, 32, 64, 100, 128, 256, 1000, 4096)}
ROWS = {TINY_TAG: (1,), "ci": (1, 100), "full": (1, 10, 100, 1000)}
DTYPES = {TINY_TAG: ("float32",), "ci": ("float32",), "full": ("float32", "float64")}
LARGEST = 1 << 21
"""Elements; larger arrays would measure memory bandwidth."""
PROMISED_ROWS_MEAN = 0.9


def verdict(lines: Sequence[Line]) -> Verdict:
    unfused = sorted({line.group for line in lines if line.figures["kernels"] != 1})
    speeds = {f"{line.group}, {line.case}": line.speed_over(BY_HAND) for line in lines}
    by_hand = {name: speed for name, speed in speeds.items() if speed is not None}
    behind = sorted((speed, name) for name, speed in by_hand.items() if speed < PROMISED_ROWS_MEAN)
    over_numpy = [line.speed_over(NUMPY) or 0.0 for line in lines]
    text = [
        f"over {name}: geometric mean {geometric_mean(ratios):.2f}, lowest {min(ratios, default=0.0):.2f}"
        for name, ratios in (("kernels by hand", [*by_hand.values()]), ("NumPy", over_numpy))
    ]
    text[0] += f" (promised: {PROMISED_ROWS_MEAN})"
    text += [f"  {speed:.2f} {name}" for speed, name in behind]
    text += [f"  more kernels than one: {name}" for name in unfused]
    return Verdict("\n".join(text), not behind and not unfused)


@benchmark("rows", verdict=verdict, against=BY_HAND)
def rows(settings: Settings) -> Iterator[Line]:
    """Reductions of rows, compiled, with out=: against hand-written kernels, or else NumPy; one thread."""
    for name, dtype in product(PROGRAMS, DTYPES[settings.tag]):
        program = all_programs()[name]
        compiled = jk.jit(program.function)
        for width, count in product(WIDTHS[settings.tag], ROWS[settings.tag]):
            if width * count > LARGEST:
                continue
            values = np.random.default_rng(0).uniform(0.5, 1.5, (2, count, width)).astype(dtype)
            columns = np.random.default_rng(1).uniform(0.5, 1.5, (2, width)).astype(dtype)
            of_columns = {"layer_norm": 2, "rms_norm": 1}.get(name, 0)
            of_rows = 2 if name == "cosine_similarity" else 1
            arguments = (*values[:of_rows], *columns[:of_columns])
            out = np.empty_like(compiled(*arguments))  # interleave both: their time depends on array addresses
            calls: dict[str, Bound] = {JIT_LEVEL: partial(compiled, *arguments, out=out)}
            if name in KERNELS:
                calls[BY_HAND] = partial(getattr(jk, name), *arguments, out=out)
            calls[NUMPY] = partial(program.function, *arguments)
            timings = time_calls(calls, seconds=4 * settings.seconds, rounds=(5, 200))
            stats = compiled.stats()
            figures = {"kernels": stats.kernels / stats.compiles}
            yield Line(f"{name}, {dtype}", f"{count} x {width}", timings, JIT_LEVEL, figures=figures)
