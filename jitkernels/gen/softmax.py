"""Generated CROSS_ENTROPY, written by hand: one pass checks the labels, then one element of each row is looked up.

The compiled reference is three loop nests, as none may gather elements while it iterates along rows.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.softmax import CrossEntropyAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset, vectors
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.maths.blocked_summation import part_length
from jitkernels.microkernels.maths.exp import exp_float32, exp_float64
from jitkernels.microkernels.maths.log import log_float32, log_float64
from jitkernels.microkernels.maths.row_maximum import row_maximum_float32, row_maximum_float64
from jitkernels.microkernels.maths.strict_arithmetic import compensated, plus, two_sum_error
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.tuning_space import widths_and_threads

MIN_THREAD_ELEMENTS = 4096
"""Least number of elements per thread."""


def check(labels: Any, rows: int, n: int) -> int:
    """Count the labels that are no class; branch-free, so that LLVM vectorizes it."""
    wrong = 0
    for i in range(rows):
        wrong += (labels[i] < 0) | (labels[i] >= n)
    return wrong


def variants(attr: CrossEntropyAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // grain(attr.n, MIN_THREAD_ELEMENTS))


@implements(CrossEntropyAttr, variants=variants)
def cross_entropy(attr: CrossEntropyAttr, **variant: Any) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type
    single = attr.dtype == "float32"
    row_maximum = row_maximum_float32 if single else row_maximum_float64
    exp, log = (exp_float32, log_float32) if single else (exp_float64, log_float64)
    width = min(variant.get("vector_bytes", 64), cpu_target.target().vector_bytes)
    lanes = cpu_target.target().remainder_lanes(attr.dtype, width)
    length = part_length(attr.dtype, width)

    @inlined("reassoc")
    def sum_of_exponentials(x: Any, n: int, largest: Any) -> Any:
        total = number(0)
        for i in vectors(0, n, lanes):
            total += exp(x[i] - largest)
        return total

    @inlined()
    def sum_of_row(x: Any, n: int, largest: Any) -> Any:
        if n <= length:
            return sum_of_exponentials(x, n, largest)
        total, lost = number(0), number(0)
        for begin in range(0, n, length):
            part = sum_of_exponentials(offset(x, begin), min(length, n - begin), largest)
            lost += two_sum_error(total, part)
            total = plus(total, part)
        return compensated(total, lost)

    def body(logits: Any, labels: Any, loss: Any, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            first = row * n
            largest = row_maximum(logits, first, first + n)
            label_logit = logits[first + labels[row]] - largest
            loss[row] = log(sum_of_row(offset(logits, first), n, largest)) - label_logit

    return range_kernel_of(
        attr,
        f"cross_entropy_{attr.dtype}",
        body,
        extent="rows",
        block=grain(attr.n, MIN_THREAD_ELEMENTS) if variant.get("parallel") else 1,
        check=check,
        flags=(),
        **variant,
    )
