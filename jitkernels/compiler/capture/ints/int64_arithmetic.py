"""Python ints that only the compiled code knows: int64 with runtime guards against overflow and zero divisors."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import as_number, dtype_of, join_kinds, kind_of
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.numpy.ufuncs import CLASSES, cast_to
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.override_registry import serves
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.elementwise_ops import is_known
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, is_at_least

SUMS = {np.add: ("add", 1), np.subtract: ("subtract", -1)}
COMPARISONS = {
    np.less: "less", np.less_equal: "less_equal", np.greater: "greater", np.greater_equal: "greater_equal",
    np.equal: "equal", np.not_equal: "not_equal",
}  # fmt: skip
BITWISE = {np.bitwise_and: "bitwise_and", np.bitwise_or: "bitwise_or", np.bitwise_xor: "bitwise_xor"}
MAX_EXACT_DOUBLE, MAX_POWER = 2**53, 16


class BoundedInt(NamedTuple):
    """An int64 operand with its bounds, if known."""

    node: Node
    bounds: intervals.Interval | None


def as_int(tracer: Tracer, value: Any) -> Node:
    """An operand as int64."""
    if type(value) is SymInt:
        return builder.extent(value.extent)  # keeps its known bounds
    return cast_to(tracer, value, "int64")


def _shifted_constant(tracer: Tracer, left: int, distance: Node) -> Any:
    """``left << distance``. Calls bail out where the distance is negative, or the result has more than 63 bits."""
    most = 63 - left.bit_length()
    tracer.checks += [elementwise("less", distance, 0), elementwise("greater", distance, most)]
    result = elementwise("left_shift", builder.constant(left, "int64"), distance)
    intervals.note(tracer, result, (left, left << max(most, 0)))
    return as_number(tracer, result, int)


@serves("ints")
def of_ints(tracer: Tracer, ufunc: Any, left: Any, right: Any) -> Any:
    """An operator of Python ints, at least one of which only the compiled code knows."""
    if ufunc in COMPARISONS:
        nodes = [as_int(tracer, value) for value in (left, right)]
        return as_number(tracer, elementwise(COMPARISONS[ufunc], *nodes), bool)
    if ufunc in BITWISE and all(map(_is_bool, (left, right))):
        nodes = [cast_to(tracer, value, "bool") for value in (left, right)]
        return as_number(tracer, elementwise(BITWISE[ufunc], *nodes), bool)
    if ufunc is np.true_divide:
        return _true_divide(tracer, left, right)
    if ufunc is np.power:
        return _power(tracer, left, right)
    if ufunc is np.left_shift and type(right) is int and 0 <= right < 63:
        return of_ints(tracer, np.multiply, left, 1 << right)
    if ufunc is np.left_shift and type(left) is int and left > 0:
        return _shifted_constant(tracer, left, as_int(tracer, right))
    first, second = (BoundedInt(as_int(tracer, value), intervals.interval(tracer, value)) for value in (left, right))
    if ufunc in SUMS or ufunc is np.multiply:
        name, sign = SUMS.get(ufunc, ("multiply", 0))
        result = elementwise(name, first.node, second.node)
        if sign:
            bounds = intervals.add(first.bounds, second.bounds, sign)
            intervals.note_step(tracer, result, first.node, second.node, sign)
        else:
            bounds = intervals.multiply(first.bounds, second.bounds)
        if not intervals.is_small(bounds):
            tracer.checks.append(_overflows(tracer, name, first.node, second.node))
    elif ufunc in (np.floor_divide, np.remainder):
        result, bounds = _divide(tracer, ufunc, first, second)
    elif ufunc in BITWISE:
        result = elementwise(BITWISE[ufunc], first.node, second.node)
        natural = [operand.bounds[1] for operand in (first, second) if operand.bounds and _is_natural(operand)]
        bounds = (0, natural[0]) if natural and ufunc is np.bitwise_and else None
    elif ufunc is np.right_shift and type(right) is int and 0 <= right < 63:
        result = elementwise("right_shift", first.node, second.node)
        bounds = (0, first.bounds[1]) if first.bounds and _is_natural(first) else None
    else:
        raise UnsupportedError(f"{ufunc.__name__} of Python ints that only the compiled code knows")
    intervals.note(tracer, result, bounds)
    return as_number(tracer, result, int)


def _is_bool(value: Any) -> bool:
    return type(value) is bool or (type(value) is Traced and value.python is bool)


def _is_natural(operand: BoundedInt) -> bool:
    return intervals.is_natural(operand.bounds)


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


def _guard_nonzero(tracer: Tracer, divisor: BoundedInt) -> None:
    """Guard that a divisor is not zero."""
    bounds = divisor.bounds
    if bounds is None or not (is_at_least(bounds[0], 1) or is_at_least(-bounds[1], 1)):
        tracer.checks.append(elementwise("equal", divisor.node, 0))


def _divide(tracer: Tracer, ufunc: Any, dividend: BoundedInt, divisor: BoundedInt) -> tuple[Node, Any]:
    """The quotient or remainder of two ints, and its bounds."""
    _guard_nonzero(tracer, divisor)
    is_positive = divisor.bounds is not None and is_at_least(divisor.bounds[0], 1)
    if dividend.bounds is None and not is_positive:
        tracer.checks.append(elementwise("equal", dividend.node, -(2**63)))
    result = _divide_by_power_of_two(ufunc, dividend.node, divisor.node)
    if result is None:
        result = elementwise("floor_divide" if ufunc is np.floor_divide else "remainder", dividend.node, divisor.node)
        wraps = _wraps(dividend, divisor) if is_positive and ufunc is np.remainder else None
        if wraps == (False, False):
            return dividend.node, dividend.bounds
        if wraps is not None:
            result = Node(result.operation, result.inputs, result.dtype, (), {**result.options, "wraps": wraps})
        elif is_positive:
            divided = "natural" if _is_natural(dividend) else "by_positive"
            result = Node(result.operation, result.inputs, result.dtype, (), {**result.options, divided: True})
    if not is_positive:
        return result, None
    if ufunc is np.remainder:
        return result, (0, divisor.bounds[1] - 1)  # type: ignore[index]  # `is_positive`
    if dividend.bounds is None:
        return result, None
    low, high = dividend.bounds
    if _is_natural(dividend):
        return result, (0, _quotient_bound(high, divisor.node))
    # A quotient moves towards 0.
    return result, (min(intervals.lower_limit(low), 0), max(intervals.upper_limit(high), 0))


def _wraps(dividend: BoundedInt, divisor: BoundedInt) -> tuple[bool, bool] | None:
    """Whether an int may lie below 0, and at or above the divisor, if never by more than that; None if it may.

    Its remainder is a selection then: loops over periodic grids take it of ``i - 1`` and ``i + 1``.
    """
    if dividend.bounds is None or divisor.bounds is None:
        return None
    (low, high), least = dividend.bounds, divisor.bounds[0]
    if not (intervals.is_at_most(-low, least) and intervals.is_at_most(high, 2 * least - 1)):
        return None
    return not is_at_least(low, 0), not intervals.is_at_most(high, least - 1)


def _divide_by_power_of_two(ufunc: Any, dividend: Node, divisor: Node) -> Node | None:
    """Division by a power of two as a shift or mask; None for other divisors."""
    value = divisor.options["value"] if divisor.operation == "constant" else 0
    if value < 1 or value & (value - 1):
        return None
    if ufunc is np.remainder:
        return elementwise("bitwise_and", dividend, value - 1)
    return elementwise("right_shift", dividend, value.bit_length() - 1)


def _quotient_bound(most: Number, divisor: Node) -> Number:
    """An upper bound of the quotient of a number up to `most` and a divisor of at least 1."""
    by = divisor.options["value"] if divisor.operation == "constant" else 1
    if not isinstance(most, Extent):
        return most // by
    if any(count % by for monomial, count in most.terms.items() if monomial):
        return most
    return symbolic_dims.polynomial({monomial: count // by for monomial, count in most.terms.items()}, most.scope)


def _true_divide(tracer: Tracer, left: Any, right: Any) -> Any:
    """The quotient of two ints below 2**53 as a float, correctly rounded."""
    for value in (left, right):
        node, bounds = as_int(tracer, value), intervals.interval(tracer, value)
        if value is right:
            _guard_nonzero(tracer, BoundedInt(node, bounds))
        if (
            bounds is None
            or max(-intervals.lower_limit(bounds[0]), intervals.upper_limit(bounds[1])) > MAX_EXACT_DOUBLE
        ):
            beside = elementwise("add", node, MAX_EXACT_DOUBLE)
            tracer.checks.append(elementwise("not_equal", elementwise("right_shift", beside, 54), 0))
    nodes = [cast_to(tracer, value, "float64") for value in (left, right)]
    return as_number(tracer, elementwise("divide", *nodes), float)


def _power(tracer: Tracer, left: Any, right: Any) -> Any:
    if type(right) is not int or not 0 <= right <= MAX_POWER:
        raise UnsupportedError("a power of Python ints that only the compiled code knows")
    power: Any = left if right else 1
    for _ in range(right - 1):
        power = of_ints(tracer, np.multiply, power, left)
    return power


@serves("sign of int")
def sign(tracer: Tracer, value: Traced, ufunc: Any) -> Any:
    """``-value``, ``+value``, ``abs(value)``."""
    if ufunc is np.positive:
        return as_number(tracer, as_int(tracer, value), int)
    whole = sign(tracer, value, np.positive) if value.python is bool else value
    negative = of_ints(tracer, np.subtract, 0, whole)
    if ufunc is np.negative:
        return negative
    return min_or_max(tracer, (whole, negative), operator.gt)


def min_or_max(tracer: Tracer, values: Any, better: Any) -> Any:
    """Python's ``min`` and ``max``: the first value unless another is `better`. UnsupportedError for mixed types."""
    kind = kind_of(values[0])
    for value in values[1:]:
        kind = join_kinds("an extreme", kind, kind_of(value))
    if kind is None:
        raise UnsupportedError("min or max of values that are not numbers")
    best: Any = values[0]
    for value in values[1:]:
        is_better = cast_to(tracer, better(value, best), "bool")
        pair = (value, best)
        nodes = [as_int(tracer, a) if kind is int else cast_to(tracer, a, dtype_of(kind)) for a in pair]
        node = Node("where", (is_better, *nodes), dtype_of(kind), ())
        first, second = (intervals.interval(tracer, a) for a in pair)
        if kind is int and first is not None and second is not None:
            intervals.note(tracer, node, intervals.extreme(first, second, is_min=better is operator.lt))
        best = as_number(tracer, node, kind)
    return best


def round_to_int(tracer: Tracer, value: Traced, rounding: str = "trunc") -> Any:
    """The int that a float is rounded to; bails out where it needs more than 64 bits."""
    node = builder.cast(value.node, "float64")
    inside = elementwise("less", elementwise("absolute", node), float(2**62))
    tracer.checks.append(elementwise("logical_not", inside))
    result = builder.cast(node if rounding == "trunc" else elementwise(rounding, node), "int64")
    intervals.note(tracer, result, intervals.FREE)
    return as_number(tracer, result, int)


def _is_number(value: Any) -> bool:
    if type(value) is Traced:
        return value.is_scalar or value.is_weak
    return type(value) is SymInt or type(value) in CLASSES or (isinstance(value, np.generic) and is_known(value.dtype))


def _traced_scalar(tracer: Tracer, value: Any) -> Any:
    """A scalar of NumPy as a number of the trace, whose comparisons NumPy leaves to the trace; else the value."""
    if type(value) is Traced or not isinstance(value, np.generic):
        return value
    dtype = value.dtype.name
    return as_number(tracer, cast_to(tracer, value, dtype), dtype)


def _traced_extreme(function: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Python's ``min`` or ``max`` in a trace."""

    def call(*arguments: Any, **options: Any) -> Any:
        traced = [argument for argument in arguments if type(argument) is Traced]
        if len(arguments) < 2 or options or not traced or not all(map(_is_number, arguments)):
            return function(*arguments, **options)
        tracer = traced[0].tracer
        if all(tracer.is_known(argument.node) for argument in traced):
            return function(*arguments)
        return min_or_max(tracer, [_traced_scalar(tracer, argument) for argument in arguments], better)

    return call


CALLED.update({min: _traced_extreme(min, operator.lt), max: _traced_extreme(max, operator.gt)})
