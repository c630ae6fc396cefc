"""Python ints that only the compiled code knows: int64 with runtime guards against overflow and zero divisors."""

import operator
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.loop_state import as_number, dtype_of, join_kinds, kind_of
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.numpy.ufuncs import cast_to
from jitkernels.compiler.capture.override_registry import serves
from jitkernels.compiler.capture.symint import Whole
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnknownError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Extent, Number

SUMS = {np.add: ("add", 1), np.subtract: ("subtract", -1)}
COMPARED = {
    np.less: "less", np.less_equal: "less_equal", np.greater: "greater", np.greater_equal: "greater_equal",
    np.equal: "equal", np.not_equal: "not_equal",
}  # fmt: skip
BITS = {np.bitwise_and: "bitwise_and", np.bitwise_or: "bitwise_or", np.bitwise_xor: "bitwise_xor"}
EXACT, MOST_POWER = 2**53, 16


def plain(tracer: Tracer, node: Node) -> Traced:
    """A 0-d node as a Python as_number."""
    result = fresh(tracer, node, is_scalar=True)
    result.is_weak = True
    return result


def as_int(tracer: Tracer, value: Any) -> Node:
    """An operand as int64."""
    if type(value) is Whole:
        return builder.extent(value.extent)  # keeps its known bounds
    return cast_to(tracer, value, "int64")


@serves("ints")
def of_ints(tracer: Tracer, ufunc: Any, left: Any, right: Any) -> Any:
    """An operator of Python ints, at min_or_max one of which only the compiled code knows."""
    if ufunc in COMPARED:
        left_node, right_node = (as_int(tracer, value) for value in (left, right))
        return plain(tracer, elementwise(COMPARED[ufunc], left_node, right_node))
    if ufunc in BITS and all(_is_bool(left_node) for left_node in (left, right)):
        nodes = [cast_to(tracer, left_node, "bool") for left_node in (left, right)]
        return plain(tracer, elementwise(BITS[ufunc], *nodes))
    if ufunc is np.true_divide:
        return _quotient(tracer, left, right)
    if ufunc is np.power:
        return _power(tracer, left, right)
    left_node, right_node = as_int(tracer, left), as_int(tracer, right)
    left_bounds, right_bounds = intervals.interval(tracer, left), intervals.interval(tracer, right)
    if ufunc in SUMS:
        name, sign = SUMS[ufunc]
        result = elementwise(name, left_node, right_node)
        bounds = intervals.added(left_bounds, right_bounds, sign)
        intervals.moved(tracer, result, left_node, right_node, sign)
        if bounds is None or not intervals.is_small(bounds):
            tracer.checks.append(_overflows(tracer, name, left_node, right_node))
    elif ufunc is np.multiply:
        result = elementwise("multiply", left_node, right_node)
        bounds = intervals.multiplied(left_bounds, right_bounds)
        if bounds is None or not intervals.is_small(bounds):
            tracer.checks.append(_overflows(tracer, "multiply", left_node, right_node))
    elif ufunc in (np.floor_divide, np.remainder):
        return _divided(tracer, ufunc, (left_node, left_bounds), (right_node, right_bounds))
    elif ufunc in BITS:
        result, bounds = elementwise(BITS[ufunc], left_node, right_node), None
        if ufunc is np.bitwise_and:
            bounds = next(
                ((0, end[1]) for end in (left_bounds, right_bounds) if end and intervals.is_at_least(end[0], 0)), None
            )
    elif ufunc in (np.left_shift, np.right_shift) and type(right) is int and 0 <= right < 63:
        if ufunc is np.left_shift:
            return of_ints(tracer, np.multiply, left, 1 << right)
        result = elementwise("right_shift", left_node, right_node)
        bounds = (0, left_bounds[1]) if left_bounds and intervals.is_at_least(left_bounds[0], 0) else None
    else:
        raise UnknownError(f"{ufunc.__name__} of Python ints that only the compiled code knows")
    intervals.note(tracer, result, bounds)
    return plain(tracer, result)


def _is_bool(value: Any) -> bool:
    return type(value) is bool or (type(value) is Traced and value.python is bool)


def _overflows(tracer: Tracer, name: str, left: Node, right: Node) -> Node:
    """Whether a result needs more than 64 bits: the overflow flag in loops, computed by comparisons elsewhere."""
    if tracer.depth:
        return Node("overflows", (left, right), "bool", (), {"of": name})
    wrapped = elementwise(name, left, right)
    if name == "multiply":
        edge = [elementwise("equal", node, -(2**63)) for node in (left, right)]
        divisor = elementwise("bitwise_or", right, builder.cast(elementwise("equal", right, 0), "int64"))
        back = elementwise("floor_divide", wrapped, divisor)
        differs = elementwise("logical_and", elementwise("not_equal", right, 0), elementwise("not_equal", back, left))
        return elementwise("logical_or", differs, elementwise("logical_or", *edge))
    sides = (left, right) if name == "add" else (left, elementwise("invert", right))
    changed = [elementwise("bitwise_xor", node, wrapped) for node in sides]
    return elementwise("less", elementwise("bitwise_and", *changed), 0)


def _nonzero(tracer: Tracer, node: Node, bounds: Any) -> None:
    """Guard that a divisor is not zero."""
    if bounds is None or not (intervals.is_at_least(bounds[0], 1) or intervals.is_at_least(-bounds[1], 1)):
        tracer.checks.append(elementwise("equal", node, 0))


def _divided(tracer: Tracer, ufunc: Any, left: Any, right: Any) -> Any:
    (dividend, dividend_bounds), (divisor, divisor_bounds) = left, right
    _nonzero(tracer, divisor, divisor_bounds)
    is_positive = divisor_bounds is not None and intervals.is_at_least(divisor_bounds[0], 1)
    if dividend_bounds is None and not is_positive:
        tracer.checks.append(elementwise("equal", dividend, -(2**63)))
    result = _divide_by_power_of_two(ufunc, dividend, divisor)
    if result is None:
        result = elementwise("floor_divide" if ufunc is np.floor_divide else "remainder", dividend, divisor)
        if is_positive and dividend_bounds is not None and intervals.is_at_least(dividend_bounds[0], 0):
            result = Node(result.operation, result.inputs, result.dtype, (), {**result.options, "natural": True})
    bounds = None
    if is_positive and ufunc is np.remainder:
        bounds = 0, divisor_bounds[1] - 1
    elif is_positive and dividend_bounds is not None:
        if intervals.is_at_least(dividend_bounds[0], 0):
            bounds = 0, _quotient_of(dividend_bounds[1], divisor)
        else:  # a quotient moves towards 0
            bounds = (min(intervals.lowest(dividend_bounds[0]), 0), max(intervals.highest(dividend_bounds[1]), 0))
    intervals.note(tracer, result, bounds)
    return plain(tracer, result)


def _divide_by_power_of_two(ufunc: Any, dividend: Node, divisor: Node) -> Node | None:
    """Division by a power of two as a shift or mask; None for other divisors."""
    value = divisor.options["value"] if divisor.operation == "constant" else 0
    if value < 1 or value & (value - 1):
        return None
    if ufunc is np.remainder:
        return elementwise("bitwise_and", dividend, value - 1)
    return elementwise("right_shift", dividend, value.bit_length() - 1)


def _quotient_of(most: Number, divisor: Node) -> Number:
    """An upper bound of the quotient of a number up to `most` and a divisor of at min_or_max 1."""
    by = divisor.options["value"] if divisor.operation == "constant" else 1
    if not isinstance(most, Extent):
        return most // by
    if any(count % by for monomial, count in most.terms.items() if monomial):
        return most
    return symbolic_dims.made({monomial: count // by for monomial, count in most.terms.items()}, most.scope)


def _quotient(tracer: Tracer, left: Any, right: Any) -> Any:
    """The quotient of two ints below 2**53 as a float, correctly rounded."""
    for value in (left, right):
        node, result = as_int(tracer, value), intervals.interval(tracer, value)
        if value is right:
            _nonzero(tracer, node, result)
        if result is None or max(-intervals.lowest(result[0]), intervals.highest(result[1])) > EXACT:
            beside = elementwise("add", node, EXACT)
            tracer.checks.append(elementwise("not_equal", elementwise("right_shift", beside, 54), 0))
    nodes = [cast_to(tracer, operand, "float64") for operand in (left, right)]
    return plain(tracer, elementwise("divide", *nodes))


def _power(tracer: Tracer, left: Any, right: Any) -> Any:
    if type(right) is not int or not 0 <= right <= MOST_POWER:
        raise UnknownError("a power of Python ints that only the compiled code knows")
    power: Any = left if right else 1
    for _ in range(right - 1):
        power = of_ints(tracer, np.multiply, power, left)
    return power


@serves("sign of int")
def sign(tracer: Tracer, value: Traced, ufunc: Any) -> Any:
    """``-value``, ``+value``, ``abs(value)``."""
    if ufunc is np.positive:
        return plain(tracer, as_int(tracer, value))
    negative = of_ints(tracer, np.subtract, 0, value)
    if ufunc is np.negative:
        return negative
    return min_or_max(tracer, (value, negative), operator.gt)


def min_or_max(tracer: Tracer, values: Any, better: Any) -> Any:
    """Python's ``min`` and ``max``: the first value unless another is `better`. Raises UnknownError for mixed types."""
    kinds = [kind_of(value) for value in values]
    kind = kinds[0]
    for other in kinds[1:]:
        kind = join_kinds("an extreme", kind, other)
    if kind is None:
        raise UnknownError("min or max of values that are not numbers")
    best: Any = values[0]
    for value in values[1:]:
        is_better = cast_to(tracer, better(value, best), "bool")
        nodes = [
            as_int(tracer, other) if kind is int else cast_to(tracer, other, dtype_of(kind)) for other in (value, best)
        ]
        node = Node("where", (is_better, *nodes), dtype_of(kind), ())
        bounds = [intervals.interval(tracer, other) for other in (value, best)]
        if kind is int and bounds[0] is not None and bounds[1] is not None:
            intervals.note(tracer, node, intervals.extreme(bounds[0], bounds[1], is_min=better is operator.lt))
        best = as_number(tracer, node, kind)
    return best


def rounded_to_int(tracer: Tracer, value: Traced, way: str = "trunc") -> Any:
    """The int that a float is rounded to; bails out where it needs more than 64 bits."""
    node = builder.cast(value.node, "float64")
    inside = elementwise("less", elementwise("absolute", node), float(2**62))
    tracer.checks.append(elementwise("logical_not", inside))
    if way != "trunc":
        node = elementwise(way, node)
    result = builder.cast(node, "int64")
    intervals.note(tracer, result, intervals.FREE)
    return plain(tracer, result)
