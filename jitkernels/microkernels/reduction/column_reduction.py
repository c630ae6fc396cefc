"""Reductions along columns of matrices larger than the caches: row by row, with the results in the first-level cache.

Loops that keep some columns in registers read a short piece of each row. From the caches that is faster; from memory it
gets half of the bandwidth, and reading several rows at once gets less.
"""

from typing import Any

from jitkernels.attrs.reduction import ReductionAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.maths.blocked_summation import ADDS
from jitkernels.microkernels.range_kernel_of import range_kernel_of

STRIP_COLUMNS = 2048
"""Columns per strip, whose results stay in the first-level cache."""


def extremes_kernel(attr: ReductionAttr, *, largest: bool, block: int, parallel: bool) -> RangeKernel:
    """Compute the maximum or minimum of each column, NaN where there is one."""

    @inlined()
    def taken(x: Any, y: Any, count: int) -> None:
        for k in range(count):
            value, most = x[k], y[k]
            further = value > most if largest else value < most
            y[k] = value if further | (value != value) else most

    def body(x: Any, y: Any, n: int, remain: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            for first in range(0, remain, STRIP_COLUMNS):
                own, to = offset(x, row * n * remain + first), offset(y, row * remain + first)
                count = min(remain - first, STRIP_COLUMNS)
                for k in range(count):
                    to[k] = own[k]
                for j in range(1, n):
                    taken(offset(own, j * remain), to, count)

    return _range_kernel(attr, body, block, parallel)


def sums_kernel(attr: ReductionAttr, *, is_mean: bool, block: int, parallel: bool) -> RangeKernel:
    """Compute the sum or mean of each column. The compensation term of an infinite sum is NaN and is ignored."""
    number: Any = dtypes.named(attr.dtype).numpy.type

    @inlined()
    def added(x: Any, part: Any, count: int) -> None:
        for k in range(count):
            part[k] += x[k]

    @inlined()
    def joined(y: Any, part: Any, lost: Any, count: int) -> None:
        for k in range(count):
            whole = y[k] + part[k]
            new = whole - y[k]
            error = (y[k] - (whole - new)) + (part[k] - new)
            lost[k] += error
            y[k] = whole

    def body(x: Any, y: Any, n: int, remain: int, workspace: Any, begin: int, end: int) -> None:
        size = number(n)
        part, lost = workspace, offset(workspace, STRIP_COLUMNS)
        for row in range(begin, end):
            for first in range(0, remain, STRIP_COLUMNS):
                own, to = offset(x, row * n * remain + first), offset(y, row * remain + first)
                count = min(remain - first, STRIP_COLUMNS)
                for k in range(count):
                    to[k] = number(0)
                    lost[k] = number(0)
                for start in range(0, n, ADDS):
                    for k in range(count):
                        part[k] = number(0)
                    for j in range(start, min(start + ADDS, n)):
                        added(offset(own, j * remain), part, count)
                    joined(to, part, lost, count)
                for k in range(count):
                    whole = to[k] + lost[k] if lost[k] == lost[k] else to[k]
                    to[k] = whole / size if is_mean else whole

    scratch_bytes = 2 * STRIP_COLUMNS * dtypes.named(attr.dtype).size
    return _range_kernel(attr, body, block, parallel, workspace=scratch_bytes, workspace_dtype=attr.dtype)


def _range_kernel(attr: ReductionAttr, body: Any, block: int, parallel: bool, **more: Any) -> RangeKernel:
    return range_kernel_of(
        attr, f"{attr.name}_rows_{attr.dtype}", body, extent="rows", block=block, flags=(), parallel=parallel, **more
    )
