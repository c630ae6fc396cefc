"""Generated VMUL: what its reference makes, and for results larger than the caches a loop that writes past these.

That one is written by hand: it takes 0.6 to 0.8 of the time there, as no line of the result is read first.
"""

from typing import Any

from jitkernels import from_reference
from jitkernels.attrs.vector import VMulAttr
from jitkernels.loops.past_cache import (
    STREAM_BYTES,
    elements_per_step,
    elements_to_line,
    products_past_cache,
)
from jitkernels.loops.pieces import threads
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset
from jitkernels.registry import Variant, implements

BLOCK = 4096
"""Elements that a thread gets at least: less is done before another thread has woken up."""


def variants(attr: VMulAttr) -> list[Variant]:
    """Those of what the reference makes; past the cache as well where results are large."""
    made: list[Variant] = [*from_reference.variants(attr)]
    if attr.signature().outputs[0].nbytes < STREAM_BYTES:
        return made
    return [*made, *({"stream": True, **variant} for variant in threads(attr.n // BLOCK))]


@implements(VMulAttr, variants=variants)
def vmul(attr: VMulAttr, stream: bool = False, **variant: Any) -> LoopNest:
    return past_cache(attr, **variant) if stream else from_reference.nest(attr, **variant)


def past_cache(attr: VMulAttr, **variant: Any) -> LoopNest:
    """Whole lines of the result past the cache, what lies before and behind them as ever."""
    to_line, products = elements_to_line(attr.dtype), products_past_cache(attr.dtype)
    step = elements_per_step(attr.dtype)

    def body(x: Any, y: Any, z: Any, n: int, begin: int, end: int) -> Any:
        first = min(begin + to_line(offset(z, begin)), end)
        last = first + (end - first) // step * step
        for i in range(begin, first):
            z[i] = x[i] * y[i]
        for i in range(last, end):
            z[i] = x[i] * y[i]
        return products(offset(x, first), offset(y, first), offset(z, first), last - first)

    signature = attr.signature()
    return LoopNest(
        f"vmul_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("n"),
        block=BLOCK,
        reads_first=True,
        **variant,
    )
