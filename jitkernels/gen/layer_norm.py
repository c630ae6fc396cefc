"""Generated LAYER_NORM: mean, variance about the mean, and the result, row by row."""

from typing import Any

import numpy as np

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.loops.variants import widths_and_threads
from jitkernels.maths.sqrt import sqrt_float32, sqrt_float64
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined
from jitkernels.registry import Variant, implements

BLOCK_ELEMENTS = 8192
"""Elements that a thread gets at least."""
SUMMING = ("reassoc", "contract")


def variants(attr: LayerNormAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // _block(attr))


def _block(attr: LayerNormAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.n, 1)).bit_length() - 1)


@implements(LayerNormAttr, variants=variants)
def layer_norm(attr: LayerNormAttr, **variant: Any) -> LoopNest:
    number = np.dtype(attr.dtype).type
    sqrt = sqrt_float32 if attr.dtype == "float32" else sqrt_float64

    @inlined(*SUMMING)
    def mean_of(x: Any, first: int, n: int) -> Any:
        total = number(0)
        for i in range(first, first + n):
            total += x[i]
        return total / number(n)

    @inlined(*SUMMING)
    def factor_of(x: Any, first: int, n: int, mean: Any, eps: Any) -> Any:
        total = number(0)
        for i in range(first, first + n):
            distance = x[i] - mean
            total += distance * distance
        return number(1) / sqrt(total / number(n) + number(eps[0]))

    def plain(x: Any, y: Any, rows: int, n: int, eps: Any, begin: int, end: int) -> None:
        for row in range(begin, end):
            first = row * n
            mean = mean_of(x, first, n)
            factor = factor_of(x, first, n, mean, eps)
            for i in range(n):
                y[first + i] = (x[first + i] - mean) * factor

    def affine(
        x: Any, scale: Any, bias: Any, y: Any, rows: int, n: int, eps: Any, begin: int, end: int
    ) -> None:
        for row in range(begin, end):
            first = row * n
            mean = mean_of(x, first, n)
            factor = factor_of(x, first, n, mean, eps)
            for i in range(n):
                y[first + i] = (x[first + i] - mean) * factor * scale[i] + bias[i]

    signature = attr.signature()
    return LoopNest(
        f"layer_norm_{attr.dtype}",
        signature.c_arguments,
        affine if attr.affine else plain,
        extent=signature.index("rows"),
        block=_block(attr) if variant.get("parallel") else 1,
        reads_first=True,
        **variant,
    )
