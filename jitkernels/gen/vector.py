"""Generated elementwise kernels: one loop, vectorised by LLVM, serial or in parallel."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.vector import UnaryVectorAttr, VectorAttr, VExpAttr, VMulAttr, VSigmoidAttr
from jitkernels.loops.past_cache import (
    STREAM_BYTES,
    elements_per_step,
    elements_to_line,
    products_past_cache,
)
from jitkernels.loops.pieces import threads
from jitkernels.loops.variants import widths_and_threads
from jitkernels.maths.exp import exp_float32, exp_float64
from jitkernels.maths.sigmoid import sigmoid_float32, sigmoid_float64
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset, vectors
from jitkernels.registry import Variant, implements

FLOATS: dict[str, Any] = {"float32": np.float32, "float64": np.float64}
BLOCK = 4096
"""Elements that a thread gets at least: less is done before another thread has woken up."""


def variants(attr: VectorAttr) -> list[Variant]:
    """Vector widths; threads as well once there are two blocks for two of them."""
    return widths_and_threads(attr.n // BLOCK)


def elementwise(
    attr: VectorAttr, body: Callable[..., None], *, converts: bool = True, **variant: Any
) -> LoopNest:
    """The loop nest of an elementwise kernel; one object serves every n."""
    signature = attr.signature()
    name = f"{attr.name}_{attr.dtype}"
    return LoopNest(
        name,
        signature.c_arguments,
        body,
        extent=signature.index("n"),
        block=BLOCK,
        reads_first=True,
        converts=converts,
        **variant,
    )


def unary(attr: UnaryVectorAttr, function: Callable[..., Any], **variant: Any) -> LoopNest:
    """The loop nest of an elementwise kernel of one input."""
    target, width = machine.target(), variant.get("vector_bytes", 64)
    # One by one, what whole vectors leave of float64 takes as long as a vector from two elements on; of float32, from
    # ten on, and eight of those are half a vector.
    lanes = target.masked_lanes(attr.dtype, width) if attr.dtype == "float64" else 0
    number = FLOATS[attr.dtype]

    def body(x: Any, y: Any, n: int, begin: int, end: int) -> None:
        for i in vectors(begin, end, lanes):
            y[i] = function(number(x[i]))

    return elementwise(attr, body, **variant)


def variants_of_vmul(attr: VMulAttr) -> list[Variant]:
    """Those of all elementwise kernels; past the cache as well where results are large."""
    if attr.signature().outputs[0].nbytes < STREAM_BYTES:
        return variants(attr)
    return [*variants(attr), *({"stream": True, **variant} for variant in threads(attr.n // BLOCK))]


@implements(VMulAttr, variants=variants_of_vmul)
def vmul(attr: VMulAttr, stream: bool = False, **variant: Any) -> LoopNest:
    if stream:
        return vmul_past_cache(attr, **variant)
    number = FLOATS[attr.dtype]

    def body(x: Any, y: Any, z: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            z[i] = number(x[i]) * number(y[i])

    return elementwise(attr, body, **variant)


def vmul_past_cache(attr: VMulAttr, **variant: Any) -> LoopNest:
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

    return elementwise(attr, body, converts=False, **variant)


@implements(VExpAttr, variants=variants)
def vexp(attr: VExpAttr, **variant: Any) -> LoopNest:
    return unary(attr, exp_float32 if attr.dtype == "float32" else exp_float64, **variant)


@implements(VSigmoidAttr, variants=variants)
def vsigmoid(attr: VSigmoidAttr, **variant: Any) -> LoopNest:
    return unary(attr, sigmoid_float32 if attr.dtype == "float32" else sigmoid_float64, **variant)
