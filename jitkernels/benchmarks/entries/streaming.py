"""``jitkernels bench streaming``: kernels over arrays larger than the caches, against the bandwidth of a triad.

"triad" is the time in which a[i] = b[i] + s * c[i], measured interleaved, moves as many bytes as the kernel has
in its arrays, each read or written once. ``--threads`` sets the number of threads. One thread is timed by its processor
time: other programs almost always interrupt calls of this length.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter, thread_time
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.schema_queries import trailing_of
from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import time_calls
from jitkernels.dispatch.kernel_cache import KernelFuncs, get_refer
from jitkernels.errors import AttrError
from jitkernels.selection.size_classes import nbytes
from jitkernels.tuning import peaks
from jitkernels.tuning.timer import Timing
from jitkernels.tuning.tune import candidates, tune_class

TRIAD, PICK, STATIC, REFERENCE = "triad", "pick", "static", "refer"
STREAMED_ELEMENTS, TINY_ELEMENTS = 1 << 24, 1 << 10
SHAPES: Mapping[int, tuple[tuple[int, ...], ...]] = {
    1: ((STREAMED_ELEMENTS,),),
    2: ((1 << 14, 1024), (4096, 4096), (256, 1 << 16)),
}
"""Extents by number of extents, for schemas without declared streaming attrs."""
MAX_OPERATIONS_PER_ELEMENT = 16.0
"""Operations per byte: kernels above this are not bound by memory."""
PROMISED_TRIAD_SHARE = 0.9


def verdict(lines: Sequence[Line]) -> Verdict:
    shares = {f"{line.group} {line.case}": line.figures["share"] for line in lines}
    behind = sorted((share, name) for name, share in shares.items() if share < PROMISED_TRIAD_SHARE)
    lowest = min(shares.values(), default=0.0)
    text = f"share of the triad's bandwidth: lowest {lowest:.2f} (promised: {PROMISED_TRIAD_SHARE})"
    return Verdict("\n".join([text, *(f"  {share:.2f} {name}" for share, name in behind)]), not behind)


def attrs(schema: type[KernelAttr], elements: int = STREAMED_ELEMENTS) -> Iterator[KernelAttr]:
    """Return the schema's attrs that stream through `elements` elements: declared ones, or of one or two extents."""
    behind = trailing_of(schema)
    extents = [name for name, field in schema.known_fields().items() if field.kind == "int" and name != behind]
    for shape in schema.streams or SHAPES.get(len(extents), ()):
        smaller = [max(size * elements // STREAMED_ELEMENTS, 1) if size == max(shape) else size for size in shape]
        fields: dict[str, Any] = dict(zip((*extents, *([behind] if behind else ())), (*smaller, 1), strict=False))
        usual = next((case.attr for case in schema.sweep() if case.attr.fields().get("dtype") == "float32"), None)
        if usual is None:
            continue
        try:
            attr = type(usual)(**usual.fields() | fields)
        except AttrError:
            continue
        if attr.operations() <= MAX_OPERATIONS_PER_ELEMENT * nbytes(attr):
            yield attr


@benchmark("streaming", verdict=verdict, against=TRIAD)
def streaming(settings: Settings) -> Iterator[Line]:
    """Kernels at 2 ** 24 elements, measured selections, against the bandwidth of a triad."""
    parallel = settings.threads > 1
    triads = [
        peaks.triad(streaming=with_streaming_stores, parallel=parallel) for with_streaming_stores in (False, True)
    ]
    for schema in settings.schemas:
        for attr in attrs(schema, TINY_ELEMENTS if settings.is_tiny else STREAMED_ELEMENTS):
            yield line(attr, triads, settings.seconds, perf_counter if parallel else thread_time)


def line(
    attr: KernelAttr, triads: Sequence[tuple[Any, float]], seconds: float, clock: Callable[[], float] = thread_time
) -> Line:
    """Return the line of one attr, after its class was tuned."""
    tune_class(attr, budget=4 * seconds)
    arrays = attr.signature().sample()
    calls: dict[str, Bound] = {f"{TRIAD} {i}": partial(run) for i, (run, _) in enumerate(triads)}
    calls[PICK] = partial(KernelFuncs.cache().at(attr), *arrays)
    calls[STATIC] = partial(candidates(attr)[0].callable(), *arrays)
    calls[REFERENCE] = partial(get_refer(attr), *arrays)
    timings = time_calls(calls, seconds=20 * seconds, rounds=(7, 60), clock=clock)
    work = nbytes(attr)
    least = min((timings.pop(f"{TRIAD} {i}") for i in range(len(triads))), key=lambda timing: timing.seconds)
    scale = work / triads[0][1]
    timings[TRIAD] = Timing(least.seconds * scale, least.spread * scale)
    figures = {"share": timings[TRIAD].seconds / timings[PICK].seconds, "GB/s": work / timings[PICK].seconds / 1e9}
    extents = " x ".join(str(extent) for extent in attr.extents().values())
    return Line(attr.name, extents, timings, PICK, figures=figures, detail=_pick_label(attr))


def _pick_label(attr: KernelAttr) -> str:
    from jitkernels.selection.select import choose

    choice = choose(attr)
    variant = ",".join(f"{name}={value}" for name, value in choice.variant.items())
    return f"{choice.implementation.name}[{variant}]"
