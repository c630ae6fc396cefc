"""``jitkernels bench matmul-peak``: MATMUL on one thread against the peak rate of fused multiply-adds in registers."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import time_calls
from jitkernels.tuning.peaks import multiply_adds
from jitkernels.tuning.timer import Timing

SIZES = (8, 16, 24, 32, 48, 64, 100, 128, 256, 512, 1024, 2048)
PEAK = "peak"


def verdict(lines: Sequence[Line]) -> Verdict:
    shares = {line.case: line.timings[PEAK].seconds / line.timings[line.pick].seconds for line in lines}
    return Verdict("share of the peak: " + ", ".join(f"{case} {share:.0%}" for case, share in shares.items()))


def _repeated(call: Callable[[], object], times: int) -> None:
    for _ in range(times):
        call()


@benchmark("matmul-peak", verdict=verdict, against="numpy")
def matmul_peak(settings: Settings) -> Iterator[Line]:
    """MATMUL float32 on one thread against the FMA peak measured beside it, the libraries and NumPy.

    "peak" is the time of the same number of operations in registers. They take as long as a large product: the minimum
    over rounds of short runs leaves out the interruptions that each long one meets.
    """
    run_peak, peak_operations = multiply_adds("float32")
    for n in settings.limited(SIZES):
        a, b, c = (np.random.default_rng(i).random((n, n), np.float32) for i in range(3))
        attr = jk.MatMulAttr(m=n, n=n, k=n)
        candidates = jk.get_all_candidates(attr)
        calls: dict[str, Bound] = {
            name: partial(candidates[name], a, b, c) for name in ("gen", "mkl", "openblas") if name in candidates
        }
        scale = 2.0 * n**3 / peak_operations
        repeats = max(round(scale), 1)
        calls |= {"numpy": partial(np.matmul, a, b, c), PEAK: partial(_repeated, run_peak, repeats)}
        seconds = settings.seconds * (40 if n >= 512 else 6)
        timings = time_calls(calls, seconds=seconds, rounds=(3, 30))
        peak = timings[PEAK]
        timings[PEAK] = Timing(peak.seconds * scale / repeats, peak.spread * scale / repeats)
        yield Line("matmul-peak", f"n = {n}", timings, "gen")
