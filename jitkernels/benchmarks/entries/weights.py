"""``jitkernels bench weights``: one row times weights beyond the caches, against reading as many bytes.

"read" is the time in which a sum over words, measured in the same rounds, reads as many bytes as the kernel has in its
arrays. ``--threads`` says how many share the memory; one thread is timed by the processor time that it takes.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter, thread_time

from jitkernels.attrs.base import KernelAttr
from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.attrs.matmul_int4 import MatMulInt4Attr
from jitkernels.attrs.matmul_int8_weights import MatMulInt8WeightsAttr
from jitkernels.attrs.quantized_weights import ROUNDED
from jitkernels.benchmark import peaks
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import time_calls
from jitkernels.kernel import Kernel
from jitkernels.peers import Bound
from jitkernels.registry import implementation
from jitkernels.tuning.classes import nbytes
from jitkernels.tuning.timer import Timing

READ, GEN = "read", "gen"
COLUMNS, DEPTH = 32000, 4096
GROUPS = (32, 128)
PROMISED = 0.8


def verdict(lines: Sequence[Line]) -> Verdict:
    shares = {f"{line.group} {line.case}": line.figures["share"] for line in lines}
    behind = sorted((share, name) for name, share in shares.items() if share < PROMISED)
    text = f"share of the bandwidth of reading: lowest {min(shares.values(), default=0.0):.2f} (promised: {PROMISED})"
    return Verdict("\n".join([text, *(f"  {share:.2f} {name}" for share, name in behind)]), not behind)


def attrs(columns: int = COLUMNS) -> Iterator[KernelAttr]:
    """Floats, and weights of 8 and of 4 bits in groups of 32 and 128, with and without zero points."""
    yield GEMVAttr(m=columns // 4, n=DEPTH)
    yield GEMVAttr(m=DEPTH, n=columns // 4, trans=True)
    yield GEMVAttr(m=columns // 2, n=DEPTH, dtype="bfloat16")
    for rounded in ROUNDED:
        for size in (*GROUPS, DEPTH):
            for shifted in (False, True) if size in GROUPS else (False,):
                yield MatMulInt8WeightsAttr(
                    m=1, n=columns, groups=DEPTH // size, size=size, shifted=shifted, rounded=rounded
                )
        for size in GROUPS:
            for shifted in (False, True):
                yield MatMulInt4Attr(
                    m=1, n=columns, groups=DEPTH // size, half=size // 2, shifted=shifted, rounded=rounded
                )


@benchmark("weights", verdict=verdict, against=READ)
def weights(settings: Settings) -> Iterator[Line]:
    """One row times 30 to 130 MB of weights, against the bandwidth of reading them."""
    for attr in attrs():
        yield line(attr, settings.threads > 1, settings.seconds)


def line(attr: KernelAttr, parallel: bool, seconds: float) -> Line:
    """What the static choice takes, or its likeness on some threads."""
    arrays = attr.signature().sample()
    run, read_bytes = peaks.reading(max(arrays, key=lambda array: array.nbytes), parallel=parallel)
    made = implementation(type(attr), GEN)
    variant = next(each for each in made.variants(attr) if each["parallel"] == parallel)
    calls: dict[str, Bound] = {
        READ: partial(run),
        GEN: partial(Kernel(attr, made, variant).callable, *arrays),
    }
    clock = perf_counter if parallel else thread_time
    timings = time_calls(calls, seconds=20 * seconds, rounds=(7, 60), clock=clock)
    work = nbytes(attr)
    scale = work / read_bytes
    timings[READ] = Timing(timings[READ].seconds * scale, timings[READ].spread * scale)
    taken = timings[GEN].seconds
    figures = {"share": timings[READ].seconds / taken, "GB/s": work / taken / 1e9}
    return Line(attr.name, attr.text(), timings, GEN, figures=figures)
