"""Python ints that only the running code knows: 64 bits, and where Python would need more, or raise, NumPy computes."""

import operator
from typing import Any

import numpy as np

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.flow.state import dtype_of, joined, kind_of, number
from jitkernels.frontends.tables import serves
from jitkernels.frontends.traced import Traced, fresh
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.universal import cast_to
from jitkernels.frontends.whole import Whole
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError, elementwise
from jitkernels.graph.extents import Extent, Number
from jitkernels.graph.ir import Node

SUMS = {np.add: ("add", 1), np.subtract: ("subtract", -1)}
COMPARED = {
    np.less: "less", np.less_equal: "less_equal", np.greater: "greater", np.greater_equal: "greater_equal",
    np.equal: "equal", np.not_equal: "not_equal",
}  # fmt: skip
BITS = {np.bitwise_and: "bitwise_and", np.bitwise_or: "bitwise_or", np.bitwise_xor: "bitwise_xor"}
EXACT, MOST_POWER = 2**53, 16


def plain(tracer: Tracer, node: Node) -> Traced:
    """A 0-d node as a Python number."""
    made = fresh(tracer, node, is_scalar=True)
    made.is_weak = True
    return made


def as_int(tracer: Tracer, value: Any) -> Node:
    """An operand in 64 bits."""
    if type(value) is Whole:
        return construct.extent(value.extent)  # whose bounds are known
    return cast_to(tracer, value, "int64")


@serves("ints")
def of_ints(tracer: Tracer, ufunc: Any, left: Any, right: Any) -> Any:
    """An operator between Python ints, of which at least one is not known."""
    if ufunc in COMPARED:
        one, other = (as_int(tracer, value) for value in (left, right))
        return plain(tracer, elementwise(COMPARED[ufunc], one, other))
    if ufunc in BITS and all(_is_bool(one) for one in (left, right)):
        nodes = [cast_to(tracer, one, "bool") for one in (left, right)]
        return plain(tracer, elementwise(BITS[ufunc], *nodes))
    if ufunc is np.true_divide:
        return _quotient(tracer, left, right)
    if ufunc is np.power:
        return _power(tracer, left, right)
    one, other = as_int(tracer, left), as_int(tracer, right)
    first, second = ranges.interval(tracer, left), ranges.interval(tracer, right)
    if ufunc in SUMS:
        name, sign = SUMS[ufunc]
        made = elementwise(name, one, other)
        found = ranges.added(first, second, sign)
        ranges.moved(tracer, made, one, other, sign)
        if found is None or not ranges.is_small(found):
            tracer.checks.append(_overflows(tracer, name, one, other))
    elif ufunc is np.multiply:
        made = elementwise("multiply", one, other)
        found = ranges.multiplied(first, second)
        if found is None or not ranges.is_small(found):
            tracer.checks.append(_overflows(tracer, "multiply", one, other))
    elif ufunc in (np.floor_divide, np.remainder):
        return _divided(tracer, ufunc, (one, first), (other, second))
    elif ufunc in BITS:
        made, found = elementwise(BITS[ufunc], one, other), None
        if ufunc is np.bitwise_and:
            found = next(
                ((0, end[1]) for end in (first, second) if end and ranges.is_at_least(end[0], 0)), None
            )
    elif ufunc in (np.left_shift, np.right_shift) and type(right) is int and 0 <= right < 63:
        if ufunc is np.left_shift:
            return of_ints(tracer, np.multiply, left, 1 << right)
        made = elementwise("right_shift", one, other)
        found = (0, first[1]) if first and ranges.is_at_least(first[0], 0) else None
    else:
        raise UnknownError(f"{ufunc.__name__} of Python ints that only the running code knows")
    ranges.note(tracer, made, found)
    return plain(tracer, made)


def _is_bool(value: Any) -> bool:
    return type(value) is bool or (type(value) is Traced and value.python is bool)


def _overflows(tracer: Tracer, name: str, one: Node, other: Node) -> Node:
    """Whether 64 bits are too few for a result: what loops ask the processor, and is computed elsewhere."""
    if tracer.depth:
        return Node("overflows", (one, other), "bool", (), {"of": name})
    found = elementwise(name, one, other)
    if name == "multiply":
        edge = [elementwise("equal", node, -(2**63)) for node in (one, other)]
        divisor = elementwise("bitwise_or", other, construct.cast(elementwise("equal", other, 0), "int64"))
        back = elementwise("floor_divide", found, divisor)
        differs = elementwise(
            "logical_and", elementwise("not_equal", other, 0), elementwise("not_equal", back, one)
        )
        return elementwise("logical_or", differs, elementwise("logical_or", *edge))
    sides = (one, other) if name == "add" else (one, elementwise("invert", other))
    changed = [elementwise("bitwise_xor", node, found) for node in sides]
    return elementwise("less", elementwise("bitwise_and", *changed), 0)


def _nonzero(tracer: Tracer, node: Node, found: Any) -> None:
    """Let NumPy compute where a divisor is zero."""
    if found is None or not (ranges.is_at_least(found[0], 1) or ranges.is_at_least(-found[1], 1)):
        tracer.checks.append(elementwise("equal", node, 0))


def _divided(tracer: Tracer, ufunc: Any, left: Any, right: Any) -> Any:
    (one, first), (other, second) = left, right
    _nonzero(tracer, other, second)
    is_positive = second is not None and ranges.is_at_least(second[0], 1)
    if first is None and not is_positive:
        tracer.checks.append(elementwise("equal", one, -(2**63)))
    made = _quick(ufunc, one, other)
    if made is None:
        made = elementwise("floor_divide" if ufunc is np.floor_divide else "remainder", one, other)
        if is_positive and first is not None and ranges.is_at_least(first[0], 0):
            made = Node(made.operation, made.inputs, made.dtype, (), {**made.options, "natural": True})
    found = None
    if is_positive and ufunc is np.remainder:
        found = 0, second[1] - 1
    elif is_positive and first is not None:
        if ranges.is_at_least(first[0], 0):
            found = 0, _quotient_of(first[1], other)
        else:  # towards 0, where it may be on the other side of it
            found = min(ranges.lowest(first[0]), 0), max(ranges.highest(first[1]), 0)
    ranges.note(tracer, made, found)
    return plain(tracer, made)


def _quick(ufunc: Any, one: Node, other: Node) -> Node | None:
    """What is divided by a power of two, which bits tell; None for other divisors."""
    by = other.options["value"] if other.operation == "constant" else 0
    if by < 1 or by & (by - 1):
        return None
    if ufunc is np.remainder:
        return elementwise("bitwise_and", one, by - 1)
    return elementwise("right_shift", one, by.bit_length() - 1)


def _quotient_of(most: Number, divisor: Node) -> Number:
    """No less than what a number up to `most` gives divided by an int from 1 on."""
    by = divisor.options["value"] if divisor.operation == "constant" else 1
    if not isinstance(most, Extent):
        return most // by
    if any(count % by for monomial, count in most.terms.items() if monomial):
        return most
    return extents.made({monomial: count // by for monomial, count in most.terms.items()}, most.scope)


def _quotient(tracer: Tracer, left: Any, right: Any) -> Any:
    """A float of two ints below 2**53, of which that is the nearest one."""
    for value in (left, right):
        node, found = as_int(tracer, value), ranges.interval(tracer, value)
        if value is right:
            _nonzero(tracer, node, found)
        if found is None or max(-ranges.lowest(found[0]), ranges.highest(found[1])) > EXACT:
            beside = elementwise("add", node, EXACT)
            tracer.checks.append(elementwise("not_equal", elementwise("right_shift", beside, 54), 0))
    nodes = [cast_to(tracer, one, "float64") for one in (left, right)]
    return plain(tracer, elementwise("divide", *nodes))


def _power(tracer: Tracer, left: Any, right: Any) -> Any:
    if type(right) is not int or not 0 <= right <= MOST_POWER:
        raise UnknownError("a power of Python ints that only the running code knows")
    found: Any = left if right else 1
    for _ in range(right - 1):
        found = of_ints(tracer, np.multiply, found, left)
    return found


@serves("sign of int")
def sign(tracer: Tracer, value: Traced, ufunc: Any) -> Any:
    """``-value``, ``+value``, ``abs(value)``."""
    if ufunc is np.positive:
        return plain(tracer, as_int(tracer, value))
    negative = of_ints(tracer, np.subtract, 0, value)
    if ufunc is np.negative:
        return negative
    return least(tracer, (value, negative), operator.gt)


def least(tracer: Tracer, values: Any, better: Any) -> Any:
    """Python's ``min`` and ``max``: the first one, unless another is `better`. Raises UnknownError for mixed types."""
    kinds = [kind_of(one) for one in values]
    kind = kinds[0]
    for other in kinds[1:]:
        kind = joined("an extreme", kind, other)
    if kind is None:
        raise UnknownError("an extreme of what are no numbers")
    found: Any = values[0]
    for one in values[1:]:
        is_better = cast_to(tracer, better(one, found), "bool")
        nodes = [cast_to(tracer, other, dtype_of(kind)) for other in (one, found)]
        made = Node("where", (is_better, *nodes), dtype_of(kind), ())
        bounds = [ranges.interval(tracer, other) for other in (one, found)]
        if kind is int and None not in bounds:
            ranges.note(tracer, made, ranges.hull(bounds))  # type: ignore[arg-type]
        found = number(tracer, made, kind)
    return found


def truncated(tracer: Tracer, value: Traced, way: str = "trunc") -> Any:
    """The int that a float is rounded to; NumPy computes where it has more than 64 bits."""
    node = construct.cast(value.node, "float64")
    inside = elementwise("less", elementwise("absolute", node), float(2**62))
    tracer.checks.append(elementwise("logical_not", inside))
    if way != "trunc":
        node = elementwise(way, node)
    made = construct.cast(node, "int64")
    ranges.note(tracer, made, ranges.FREE)
    return plain(tracer, made)
