"""Range checks of traced ints that must fit a dtype: Python ints beside NumPy's, and ints assigned to elements.

NumPy raises OverflowError for ints out of range. Where intervals do not prove the range, a runtime guard bails out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node

COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
"""Ufuncs that accept every Python int, whatever the other operand's dtype."""


def _fits(tracer: Tracer, node: Node, dtype: str) -> bool:
    """Whether an int surely fits a dtype."""
    return np.can_cast(node.dtype, dtype) or intervals.fits_dtype(intervals.interval(tracer, node), np.iinfo(dtype))


def check(tracer: Tracer, node: Node, dtype: str) -> None:
    """Guard that an int fits a dtype, otherwise NumPy raises; floating-point dtypes accept all ints."""
    if np.dtype(dtype).kind not in "iu" or _fits(tracer, node, dtype):
        return
    limits, own = np.iinfo(dtype), np.iinfo(node.dtype)
    if limits.min > own.min:
        tracer.checks.append(elementwise("less", node, builder.constant(int(limits.min), node.dtype)))
    if limits.max < own.max:
        tracer.checks.append(elementwise("greater", node, builder.constant(int(limits.max), node.dtype)))


def check_assigned(array: Traced, value: Any) -> None:
    """The same for a NumPy int that is assigned to signed ints; unsigned elements wrap."""
    is_number = type(value) is Traced and value.is_scalar and not value.is_weak
    if is_number and value.dtype.kind in "iu" and array.dtype.kind == "i":
        check(array.tracer, value.node, array.node.dtype)


def comparison_dtypes(tracer: Tracer, operands: Sequence[Any], loop: tuple[str, ...]) -> tuple[str, ...]:
    """The dtypes of a comparison: int64 where a Python int might not fit the other operand's dtype."""
    if loop[0] in ("uint64", "int64") or np.dtype(loop[0]).kind not in "iu":
        return loop
    ints = [operand for operand in operands if type(operand) is Traced and operand.python is int]
    if all(_fits(tracer, operand.node, loop[0]) for operand in ints):
        return loop
    return "int64", "int64", *loop[2:]
