"""``round`` of traced numbers: Python's, which rounds the decimal text of floats, and that of NumPy's scalars."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.numpy.scalar_functions import rounded_to_int
from jitkernels.compiler.capture.override_registry import SERVICES, serves
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import refuse
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node

MAX_DECIMALS = 10
"""The powers of ten up to this one have at most 24 bits, behind their zeros."""
WHOLE = 2.0**52
"""Larger numbers are integers."""


@serves("round")
def round_(value: Traced, digits: Any = None) -> Any:
    """``round(value, digits)`` of a number."""
    if value.ndim:
        refuse(value)
    tracer, digits = value.tracer, int(digits) if type(digits) is SymInt else digits
    if tracer.is_known(value.node):
        return round(float(value) if value.is_weak else tracer.number(value.node, value), digits)
    if digits is None:
        return rounded_to_int(value, "rint")
    if type(digits) is not int:
        raise UnsupportedError("round to a number of decimals that is not known")
    if value.dtype.kind != "f":
        if digits < 0 or value.dtype.kind == "b":
            raise UnsupportedError("round of bools, or of ints to tens")
        return value
    if value.is_scalar and not value.is_weak:
        return SERVICES["function"](tracer, np.round, (value, digits), {})
    if not 0 <= digits <= MAX_DECIMALS:
        raise UnsupportedError(f"round of a float to {digits} decimals: expected 0 to {MAX_DECIMALS}")
    number, power = value.node, 10.0**digits
    size = elementwise("absolute", number)
    is_whole = elementwise("greater_equal", size, WHOLE)
    is_exact = elementwise("less", elementwise("multiply", size, power), WHOLE)
    tracer.checks.append(elementwise("logical_not", elementwise("logical_or", is_whole, is_exact)))
    decimal = elementwise("divide", _nearest_integer(number, power), power)
    result = elementwise("where", is_whole, number, elementwise("copysign", decimal, number))
    return as_number(tracer, result, float)


def _nearest_integer(number: Node, power: float) -> Node:
    """The integer nearest to the exact product, even of two.

    The product is that of the first 24 bits, and of the others, which are exact.
    """
    head = builder.cast(builder.cast(number, "float32"), "float64")
    first = elementwise("multiply", head, power)
    second = elementwise("multiply", elementwise("subtract", number, head), power)
    nearest = elementwise("rint", elementwise("add", first, second))
    beyond = elementwise("subtract", first, nearest)
    is_odd = elementwise("not_equal", elementwise("fmod", nearest, 2.0), 0.0)
    opposite = elementwise("negative", second)
    result = nearest
    for name, half in (("greater", 0.5), ("less", -0.5)):
        from_middle = elementwise("subtract", beyond, half)
        is_tie = elementwise("logical_and", elementwise("equal", from_middle, opposite), is_odd)
        is_past = elementwise("logical_or", elementwise(name, from_middle, opposite), is_tie)
        result = elementwise("where", is_past, elementwise("add", nearest, 2 * half), result)
    return result
