"""CROSS_ENTROPY by numba."""

from typing import Any

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.softmax import CrossEntropyAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.gen.softmax import check
from jitkernels.more.numba.numba_kernel import add, exp, larger, log, numba_kernel, real, threads_along, usable


@implements(CrossEntropyAttr, can_be_used=usable, variants=threads_along("rows"))
def cross_entropy(attr: CrossEntropyAttr, parallel: bool = False) -> RangeKernel:
    def body(logits: Any, labels: Any, loss: Any, rows: int, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            largest = logits[row * n]
            for j in range(1, n):
                largest = larger(largest, logits[row * n + j])
            total = real(0)
            for first in range(0, n, 1024):
                part = real(0)
                for j in range(first, min(first + 1024, n)):
                    part = add(part, exp(logits[row * n + j] - largest))
                total += part
            loss[row] = log(total) - (logits[row * n + labels[row]] - largest)

    return numba_kernel(attr, body, "rows", check=check, parallel=parallel)
