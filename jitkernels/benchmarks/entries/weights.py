"""``jitkernels bench weights``: one row times weights larger than the caches, against the read bandwidth.

"read" is the time in which a sum over words, measured interleaved, reads as many bytes as the kernel has in its
arrays. ``--threads`` sets the number of threads; one thread is timed by its processor time.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter, thread_time

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.attrs.matmul_int4 import MatMulInt4Attr
from jitkernels.attrs.matmul_int8_weights import MatMulInt8WeightsAttr
from jitkernels.attrs.quantized_weights import ROUNDED
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import implementation
from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import time_calls
from jitkernels.dispatch.kernel import Kernel
from jitkernels.selection.size_classes import nbytes
from jitkernels.tuning import peaks
from jitkernels.tuning.timer import Timing

READ_BANDWIDTH, GEN = "read", "gen"
WEIGHT_COLUMNS, WEIGHT_DEPTH = 32000, 4096
GROUPS = (32, 128)
TINY_COLUMNS = 64
"""Columns of a tiny run."""
PROMISED_READ_SHARE = 0.8


def verdict(lines: Sequence[Line]) -> Verdict:
    shares = {f"{line.group} {line.case}": line.figures["share"] for line in lines}
    behind = sorted((share, name) for name, share in shares.items() if share < PROMISED_READ_SHARE)
    lowest = min(shares.values(), default=0.0)
    text = f"share of the bandwidth of reading: lowest {lowest:.2f} (promised: {PROMISED_READ_SHARE})"
    return Verdict("\n".join([text, *(f"  {share:.2f} {name}" for share, name in behind)]), not behind)


def attrs(columns: int = WEIGHT_COLUMNS) -> Iterator[KernelAttr]:
    """Return attrs of float, 8-bit and 4-bit weights in groups of 32 and 128, with and without zero points."""
    yield GEMVAttr(m=columns // 4, n=WEIGHT_DEPTH)
    yield GEMVAttr(m=WEIGHT_DEPTH, n=columns // 4, trans=True)
    yield GEMVAttr(m=columns // 2, n=WEIGHT_DEPTH, dtype="bfloat16")
    for rounded in ROUNDED:
        for size in (*GROUPS, WEIGHT_DEPTH):
            for shifted in (False, True) if size in GROUPS else (False,):
                yield MatMulInt8WeightsAttr(
                    m=1, n=columns, groups=WEIGHT_DEPTH // size, size=size, shifted=shifted, rounded=rounded
                )
        for size in GROUPS:
            for shifted in (False, True):
                yield MatMulInt4Attr(
                    m=1, n=columns, groups=WEIGHT_DEPTH // size, half=size // 2, shifted=shifted, rounded=rounded
                )


@benchmark("weights", verdict=verdict, against=READ_BANDWIDTH)
def weights(settings: Settings) -> Iterator[Line]:
    """One row times 30 to 130 MB of weights, against the bandwidth of reading them."""
    for attr in settings.limited(attrs(TINY_COLUMNS) if settings.is_tiny else attrs()):
        yield line(attr, settings.threads > 1, settings.seconds)


def line(attr: KernelAttr, parallel: bool, seconds: float) -> Line:
    """Return the time of the static choice, or of its variant for several threads."""
    arrays = attr.signature().sample()
    run, read_bytes = peaks.reading(max(arrays, key=lambda array: array.nbytes), parallel=parallel)
    entry = implementation(type(attr), GEN)
    variant = next(each for each in entry.variants(attr) if each["parallel"] == parallel)
    calls: dict[str, Bound] = {
        READ_BANDWIDTH: partial(run),
        GEN: partial(Kernel(attr, entry, variant).callable, *arrays),
    }
    clock = perf_counter if parallel else thread_time
    timings = time_calls(calls, seconds=20 * seconds, rounds=(7, 60), clock=clock)
    work = nbytes(attr)
    scale = work / read_bytes
    timings[READ_BANDWIDTH] = Timing(timings[READ_BANDWIDTH].seconds * scale, timings[READ_BANDWIDTH].spread * scale)
    seconds_of_gen = timings[GEN].seconds
    figures = {"share": timings[READ_BANDWIDTH].seconds / seconds_of_gen, "GB/s": work / seconds_of_gen / 1e9}
    return Line(attr.name, attr.text(), timings, GEN, figures=figures)
