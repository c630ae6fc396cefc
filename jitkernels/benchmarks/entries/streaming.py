"""``jitkernels bench streaming``: kernels over arrays beyond the caches, against the bandwidth that a triad reaches.

"triad" is the time in which a[i] = b[i] + s * c[i], measured in the same rounds, moves as many bytes as the kernel has
in its arrays, each read or written once. ``--threads`` says how many share the memory. One thread is timed by the
processor time that it takes: calls as long as these are seldom left alone by other programs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter, thread_time
from typing import Any

from jitkernels.attrs.base import KernelAttr
from jitkernels.attrs.roles import trailing_of
from jitkernels.benchmark import peaks
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import time_calls
from jitkernels.errors import AttrError
from jitkernels.kernel_funcs import KernelFuncs, get_refer
from jitkernels.measuring import candidates, tune_class
from jitkernels.peers import Bound
from jitkernels.tuning.classes import nbytes
from jitkernels.tuning.timer import Timing

TRIAD, PICK, STATIC, NUMPY = "triad", "pick", "static", "refer"
ELEMENTS = 1 << 24
SHAPES: Mapping[int, tuple[tuple[int, ...], ...]] = {
    1: ((ELEMENTS,),),
    2: ((1 << 14, 1024), (4096, 4096), (256, 1 << 16)),
}
"""Extents by their number, of rows that do not say what streams."""
MOST_OPERATIONS = 16.0
"""For each byte: what computes more is not to be measured by memory."""
PROMISED = 0.9


def verdict(lines: Sequence[Line]) -> Verdict:
    shares = {f"{line.group} {line.case}": line.figures["share"] for line in lines}
    behind = sorted((share, name) for name, share in shares.items() if share < PROMISED)
    text = f"share of the triad's bandwidth: lowest {min(shares.values(), default=0.0):.2f} (promised: {PROMISED})"
    return Verdict("\n".join([text, *(f"  {share:.2f} {name}" for share, name in behind)]), not behind)


def attrs(row: type[KernelAttr], elements: int = ELEMENTS) -> Iterator[KernelAttr]:
    """The attrs of a row that stream through so many elements: those that it says, or those of one extent or two."""
    behind = trailing_of(row)
    extents = [name for name, field in row.known_fields().items() if field.kind == "int" and name != behind]
    for shape in row.streams or SHAPES.get(len(extents), ()):
        smaller = [max(size * elements // ELEMENTS, 1) if size == max(shape) else size for size in shape]
        fields: dict[str, Any] = dict(
            zip((*extents, *([behind] if behind else ())), (*smaller, 1), strict=False)
        )
        usual = next(
            (case.attr for case in row.sweep() if case.attr.fields().get("dtype") == "float32"), None
        )
        if usual is None:
            continue
        try:
            attr = type(usual)(**usual.fields() | fields)
        except AttrError:
            continue
        if attr.operations() <= MOST_OPERATIONS * nbytes(attr):
            yield attr


@benchmark("streaming", verdict=verdict, against=TRIAD)
def streaming(settings: Settings) -> Iterator[Line]:
    """Kernels at 2 ** 24 elements, measured picks, against the bandwidth of a triad."""
    parallel = settings.threads > 1
    triads = [peaks.triad(past=past, parallel=parallel) for past in (False, True)]
    for row in settings.rows:
        for attr in attrs(row):
            yield line(attr, triads, settings.seconds, perf_counter if parallel else thread_time)


def line(
    attr: KernelAttr,
    triads: Sequence[tuple[Any, float]],
    seconds: float,
    clock: Callable[[], float] = thread_time,
) -> Line:
    """One attr, after its class was measured."""
    tune_class(attr, budget=4 * seconds)
    arrays = attr.signature().sample()
    calls: dict[str, Bound] = {f"{TRIAD} {i}": partial(run) for i, (run, _) in enumerate(triads)}
    calls[PICK] = partial(KernelFuncs.cache().at(attr), *arrays)
    calls[STATIC] = partial(candidates(attr)[0].callable(), *arrays)
    calls[NUMPY] = partial(get_refer(attr), *arrays)
    timings = time_calls(calls, seconds=20 * seconds, rounds=(7, 60), clock=clock)
    work = nbytes(attr)
    least = min((timings.pop(f"{TRIAD} {i}") for i in range(len(triads))), key=lambda timing: timing.seconds)
    scale = work / triads[0][1]
    timings[TRIAD] = Timing(least.seconds * scale, least.spread * scale)
    figures = {
        "share": timings[TRIAD].seconds / timings[PICK].seconds,
        "GB/s": work / timings[PICK].seconds / 1e9,
    }
    extents = " x ".join(str(extent) for extent in attr.extents().values())
    return Line(attr.name, extents, timings, PICK, figures=figures, detail=_picked(attr))


def _picked(attr: KernelAttr) -> str:
    """What the pick is."""
    from jitkernels.choosing import choose

    choice = choose(attr)
    variant = ",".join(f"{name}={value}" for name, value in choice.variant.items())
    return f"{choice.implementation.name}[{variant}]"
