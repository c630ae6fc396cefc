"""Generated SOFTMAX: three passes over each row while it lies in the first-level cache."""

from typing import Any

import numpy as np

from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.gen.math.exp import LOWEST_32, LOWEST_64, limited_exp_float32, limited_exp_float64
from jitkernels.gen.math.maximum import maximum_float32, maximum_float64
from jitkernels.gen.variants import widths_and_threads
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

BLOCK_ELEMENTS = 2048
"""Elements that a thread gets at least."""


def variants(attr: SoftmaxAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // _block(attr))


def _block(attr: SoftmaxAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.n, 1)).bit_length() - 1)


@implements(SoftmaxAttr, variants=variants)
def softmax(attr: SoftmaxAttr, **variant: Any) -> LoopNest:
    number: Any = np.dtype(attr.dtype).type
    single = attr.dtype == "float32"
    lowest: Any = LOWEST_32 if single else LOWEST_64
    exp = limited_exp_float32 if single else limited_exp_float64
    maximum = maximum_float32 if single else maximum_float64

    def body(x: Any, y: Any, rows: int, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            first = row * n
            # A NaN may be lost here; it comes back in the exponentials and, by their sum, in the whole row.
            largest = x[first]
            for i in range(first, first + n):
                largest = maximum(largest, x[i])
            total = number(0)
            for i in range(first, first + n):
                value = exp(max(x[i] - largest, lowest))
                y[i] = value
                total += value
            factor = number(1) / total
            for i in range(first, first + n):
                y[i] = y[i] * factor

    signature = attr.signature()
    name = f"softmax_{attr.dtype}"
    block = _block(attr) if variant.get("parallel") else 1
    return LoopNest(name, signature.c_arguments, body, extent=signature.index("rows"), block=block, **variant)
