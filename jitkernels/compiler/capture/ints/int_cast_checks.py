"""Range checks of traced numbers that must fit a dtype of ints: Python numbers beside NumPy's, and assigned elements.

NumPy raises OverflowError for numbers out of range. Where intervals do not prove the range, a runtime guard bails out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.symint import SymInt
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


def check_joined(tracer: Tracer, value: Any, dtype: str) -> None:
    """Guard that a number keeps its value as the float that a variable is on another path.

    An int stays exact, a finite number finite, and no other number becomes 0; floats lose digits. Python numbers that
    only the code knows are checked for narrow floats alone, since many loops that count have ints beside float64.
    """
    if np.dtype(dtype).kind not in "fc":
        return
    floats = np.finfo(dtype)
    if type(value) in (int, float):
        _check_joined_constant(value, floats)
    elif type(value) is not Traced and isinstance(value, np.integer):
        _check_joined_constant(int(value), floats)
    elif floats.bits < 64 and getattr(value, "python", None) is float:
        number = builder.cast(value.node, "float64")
        size = elementwise("absolute", number)
        is_large = elementwise("greater", size, builder.constant(float(floats.max), "float64"))
        tracer.checks.append(elementwise("logical_and", elementwise("isfinite", number), is_large))
        is_small = elementwise("less_equal", size, builder.constant(float(floats.smallest_subnormal) / 2, "float64"))
        tracer.checks.append(elementwise("logical_and", elementwise("not_equal", number, 0.0), is_small))
    elif _is_long_integer(value, dtype) or (
        floats.bits < 64 and (type(value) is SymInt or getattr(value, "python", None) is int)
    ):
        limit = 2 ** (floats.nmant + 1)
        if not intervals.is_within(intervals.interval(tracer, value), -limit, limit):
            node = (
                builder.cast(value.node, "int64") if type(value) is Traced else value.cast("int64", np.dtype("int64"))
            )
            tracer.checks.append(elementwise("greater", node, builder.constant(limit, "int64")))
            tracer.checks.append(elementwise("less", node, builder.constant(-limit, "int64")))


def _is_long_integer(value: Any, dtype: str) -> bool:
    """Whether a value is a NumPy integer of a type that the float does not represent."""
    is_integer = type(value) is Traced and value.python is None and value.dtype.kind in "iu"
    return is_integer and not np.can_cast(value.dtype, dtype)


def _check_joined_constant(value: float, floats: Any) -> None:
    with np.errstate(all="ignore"):
        number = floats.dtype.type(value)
    is_kept = int(number) == value if type(value) is int and np.isfinite(number) else False
    if type(value) is float:
        is_kept = not np.isfinite(value) or (np.isfinite(number) and bool(number) == bool(value))
    if not is_kept:
        raise UnsupportedError(f"{value} on one path, which is no {floats.dtype}, and a {floats.dtype} on another")


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
