"""Range checks of traced numbers that must fit a dtype of ints: Python numbers beside NumPy's, and assigned elements.

NumPy raises OverflowError for numbers out of range. Where intervals do not prove the range, a runtime guard bails out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
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


def check_float(tracer: Tracer, node: Node, dtype: str) -> None:
    """The same for a float, which becomes an int."""
    if np.dtype(dtype).kind not in "iu":
        return
    info, number = np.iinfo(dtype), builder.cast(node, "float64")
    is_wide = info.bits == 64 and info.min < 0  # float64 cannot represent the minimum minus one
    low = builder.constant(float(info.min - (not is_wide)), "float64")
    high = builder.constant(float(int(info.max) + 1), "float64")
    above = elementwise("greater_equal" if is_wide else "greater", number, low)
    inside = elementwise("logical_and", above, elementwise("less", number, high))
    tracer.checks.append(elementwise("logical_not", inside))


def check_constant(value: Any, dtype: str) -> None:
    """The same for a float that is known now. Raises UnsupportedError, and NumPy its own error."""
    if np.dtype(dtype).kind not in "iub" or not isinstance(value, float):
        return
    if not np.isfinite(value):
        raise UnsupportedError("assignment of an infinite number or NaN to ints")
    limits = np.iinfo(dtype) if dtype != "bool" else None
    if limits is not None and not limits.min <= int(value) <= limits.max:
        raise UnsupportedError(f"a number out of bounds for {dtype}")


def check_assigned(array: Traced, value: Any) -> None:
    """The same for a NumPy number that is assigned to signed ints; unsigned elements wrap."""
    is_number = type(value) is Traced and value.is_scalar and not value.is_weak
    if is_number and value.dtype.kind == "f":
        check_float(array.tracer, value.node, array.node.dtype)
    elif is_number and value.dtype.kind in "iu" and array.dtype.kind == "i":
        check(array.tracer, value.node, array.node.dtype)


def comparison_dtypes(tracer: Tracer, operands: Sequence[Any], loop: tuple[str, ...]) -> tuple[str, ...]:
    """The dtypes of a comparison: int64 where a Python int might not fit the other operand's dtype."""
    if loop[0] in ("uint64", "int64") or np.dtype(loop[0]).kind not in "iu":
        return loop
    ints = [operand for operand in operands if type(operand) is Traced and operand.python is int]
    if all(_fits(tracer, operand.node, loop[0]) for operand in ints):
        return loop
    return "int64", "int64", *loop[2:]
