"""Interval analysis of the Python ints of loops: bounds are polynomials of extents, or plain numbers.

Within them sums do not overflow and indices need no bounds check. An int that each iteration changes by a small step
(`Recurrence`) cannot get far in practice: even in steps of `NEAR`, `FAR_LIMIT` is a day away.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import dim_bounds, symbolic_dims
from jitkernels.compiler.ir.graph import Node, number_of
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, is_at_least

LARGEST_EXTENT, FAR_LIMIT, NEAR = 2**40, 2**62, 2**16
RECURRENCE_MARGIN = 2**31
Interval = tuple[Number, Number]
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
ANY: Interval = (INT64_MIN, INT64_MAX)
FREE: Interval = (-FAR_LIMIT, FAR_LIMIT)
"""The interval of an int that each iteration changes by a small step."""


def interval(tracer: Tracer, value: Any) -> Interval | None:
    """The bounds of an int, both inclusive; None where they are unknown."""
    if type(value) is bool or type(value) is int:
        return int(value), int(value)
    if type(value) is SymInt:
        low, high = (dim_bounds.limit(value.extent, is_upper=is_upper) for is_upper in (False, True))
        return None if low is None or high is None else (low, high)
    node = value.node if type(value) is Traced else value
    if not isinstance(node, Node):
        return None
    recorded: Interval | None = tracer.ranges.get(node)
    if recorded is not None:
        return recorded
    number = number_of(node) if node.operation == "extent" or node.dtype == "int64" else None
    if number is not None:
        return number, number
    return (0, 1) if node.dtype == "bool" else _of_operation(tracer, node)


def _of_operation(tracer: Tracer, node: Node) -> Interval | None:
    """The bounds of an int by its dtype, and by how NumPy computes it."""
    if node.ndim or node.dtype[0] not in "iu":
        return None
    limits = np.iinfo(node.dtype)
    own = (int(limits.min), int(limits.max)) if limits.max < INT64_MAX else None
    if node.operation == "cast" and node.dtype == "int64" and node.inputs[0].dtype != "uint64":
        return interval(tracer, node.inputs[0]) if node.inputs[0].dtype[0] in "iu" else None
    if node.operation in ("remainder", "minimum", "maximum") and node.dtype == "int64":
        first, second = (interval(tracer, operand) or ANY for operand in node.inputs)
        if node.operation == "remainder":
            return (0, second[1] - 1) if is_at_least(second[0], 1) else None
        return extreme(first, second, is_min=node.operation == "minimum")
    return own


def note(tracer: Tracer, node: Node, bounds: Interval | None) -> None:
    """Record the bounds of a node, clamped to 64 bits."""
    if bounds is not None:
        low, high = bounds
        tracer.ranges[node] = (
            low if lower_limit(low) >= INT64_MIN else INT64_MIN,
            high if upper_limit(high) <= INT64_MAX else INT64_MAX,
        )


# Comparison of bounds


def are_same(first: Sequence[Number], second: Sequence[Number]) -> bool:
    """Whether bounds are equal in all calls."""
    return symbolic_dims.key_of_shape(first) == symbolic_dims.key_of_shape(second)


def is_at_most(bound: Number, limit: Number) -> bool:
    """Whether a bound is surely not above another one."""
    return is_at_least(limit - bound, 0) or upper_limit(bound) <= lower_limit(limit)


def is_natural(bounds: Interval | None) -> bool:
    """Whether an int is surely not negative."""
    return bounds is not None and is_at_least(bounds[0], 0)


def is_small(bounds: Interval | None) -> bool:
    """Whether an interval lies within 64 bits by a wide margin."""
    return bounds is not None and _is_between(
        bounds, -2 * FAR_LIMIT + RECURRENCE_MARGIN, 2 * FAR_LIMIT - RECURRENCE_MARGIN
    )


def _is_between(bounds: Interval, low: int, high: int) -> bool:
    return lower_limit(bounds[0]) >= low and upper_limit(bounds[1]) <= high


def is_within(bounds: Interval | None, low: int, high: int) -> bool:
    """Whether an int is surely between two others, both inclusive."""
    return bounds is not None and _is_between(bounds, low, high)


def fits_dtype(bounds: Interval | None, limits: Any) -> bool:
    """Whether an int surely fits a dtype with these limits (`numpy.iinfo`)."""
    return bounds is not None and _is_between(bounds, int(limits.min), int(limits.max))


def guarded_at_least_zero(extent: Number) -> bool:
    """Whether an extent is at least zero: surely, or in the traced call, which then becomes a guard.

    No guard holds for an extent that differs between iterations.
    """
    if is_at_least(extent, 0):
        return True
    if not isinstance(extent, Extent) or symbolic_dims.is_loop_variant(extent) or extent.value < 0:
        return False
    extent.guard(extent, ">=")
    return True


def upper_limit(extent: Number) -> int:
    """A constant upper bound of an extent."""
    return _constant_bound(extent, is_upper=True)


def lower_limit(extent: Number) -> int:
    """A constant lower bound of an extent."""
    return _constant_bound(extent, is_upper=False)


def _constant_bound(extent: Number, *, is_upper: bool) -> int:
    if not isinstance(extent, Extent):
        return int(extent)
    return sum(
        _limit(extent, monomial, count, largest=(count > 0) == is_upper) for monomial, count in extent.terms.items()
    )


def _limit(extent: Extent, monomial: Any, count: int, *, largest: bool) -> int:
    """The same of one product of an extent."""
    degree = 1 if len(monomial) > 1 and dim_bounds.is_size(monomial, extent) else len(monomial)
    if any(atom.operation == "floordiv" and _is_among(atom.right, monomial) for atom in monomial):
        degree -= 1  # a quotient times its divisor is at most the dividend
    most: int = LARGEST_EXTENT**degree
    if any(atom.operation or atom.text[0] == "s" for atom in monomial):
        return count * (most if largest else -most)
    return count * (most if largest else 1 << len(monomial))


def _is_among(extent: Number, monomial: Any) -> bool:
    """Whether an extent is a symbol that is a factor of a monomial."""
    name = symbolic_dims.bare(extent)
    return name is not None and any(atom.text == name for atom in monomial)


# Arithmetic of intervals


def hull(all_bounds: Iterable[Interval]) -> Interval:
    """The smallest interval known to contain some intervals."""
    lows, highs = zip(*all_bounds, strict=True)
    low, high = lows[0], highs[0]
    for bound in lows[1:]:
        low = _ordered(low, bound)[0]
    for bound in highs[1:]:
        high = _ordered(high, bound)[1]
    return low, high


def _ordered(first: Number, second: Number) -> tuple[Number, Number]:
    """The smaller and the larger of two bounds, or constants below and above both."""
    if is_at_most(first, second):
        return first, second
    if is_at_most(second, first):
        return second, first
    return min(lower_limit(first), lower_limit(second)), max(upper_limit(first), upper_limit(second))


def intersect(bounds: Interval, other: Interval) -> Interval:
    """The intersection of two intervals, as narrow as is known; loop-variant bounds of `other` are ignored."""
    low, high = bounds
    return (
        other[0] if not symbolic_dims.is_loop_variant(other[0]) and is_at_most(low, other[0]) else low,
        other[1] if not symbolic_dims.is_loop_variant(other[1]) and is_at_most(other[1], high) else high,
    )


def extreme(first: Interval, second: Interval, *, is_min: bool) -> Interval:
    """The interval of the minimum or maximum of two ints."""
    low, high = hull((first, second))
    if is_min:
        return low, second[1] if is_at_most(second[1], first[1]) else first[1]
    return first[0] if is_at_most(second[0], first[0]) else second[0], high


def add(first: Interval | None, second: Interval | None, sign: int = 1) -> Interval | None:
    """The interval of a sum, or of a difference."""
    if first is None or second is None:
        return None
    low, high = second if sign > 0 else (-second[1], -second[0])
    return first[0] + low, first[1] + high


def multiply(first: Interval | None, second: Interval | None) -> Interval | None:
    """The interval of a product."""
    if first is None or second is None:
        return None
    if is_natural(first) and is_natural(second):
        return first[0] * second[0], first[1] * second[1]
    limits = [(lower_limit(low), upper_limit(high)) for low, high in (first, second)]
    products = [a * b for a in limits[0] for b in limits[1]]
    return min(products), max(products)


# Ranges of loops


def range_interval(begin: Any, end: Any, step: int) -> Interval | None:
    """The interval of a range's elements, from those of its limits."""
    if begin is None or end is None:
        return None
    return (begin[0], end[1] - 1) if step > 0 else (end[0] + 1, begin[1])


def max_trip_count(tracer: Tracer, begin: Any, end: Any, step: int) -> Number | None:
    """An upper bound of a range's trip count, if that is positive; None where it is unknown."""
    first, last = interval(tracer, begin), interval(tracer, end)
    if first is None or last is None:
        return None
    distance = last[1] - first[0] if step > 0 else first[1] - last[0]
    return None if symbolic_dims.is_loop_variant(distance) else distance


# Recurrences


class Recurrence(NamedTuple):
    """How an int derives from the loop-carried int `base`: by a small step or not, and in which directions.

    `step`: the change per iteration, if known. `also`: the interval of alternative values, as of a length reset to 0.
    """

    base: Node
    is_small: bool = True
    is_up: bool = True
    is_down: bool = True
    step: Interval | None = (0, 0)
    also: Interval | None = None


def note_step(tracer: Tracer, node: Node, left: Node, right: Node, sign: int) -> None:
    """Record that a sum, or difference, is a loop-carried int plus a step."""
    for base, change in ((left, right), (right, left))[: 2 if sign > 0 else 1]:
        start, step = tracer.recurrences.get(base), interval(tracer, change)
        if start is not None and step is not None:
            low, high = step if sign > 0 else (-step[1], -step[0])
            is_small_step = start.is_small and max(-lower_limit(low), upper_limit(high)) <= NEAR
            is_up, is_down = start.is_up and is_at_least(low, 0), start.is_down and is_at_least(-high, 0)
            also = add(start.also, step, sign)
            if also is None or _is_between(also, *FREE):
                total_step = add(start.step, (low, high))
                tracer.recurrences[node] = Recurrence(start.base, is_small_step, is_up, is_down, total_step, also)
            return


def note_selection(
    tracer: Tracer, node: Node, values: Sequence[Recurrence | None], bounds: Sequence[Interval | None]
) -> None:
    """Record that a node is one of several values, some of which derive from a loop-carried int."""
    known = [value for value in values if value is not None]
    others = [bound for value, bound in zip(values, bounds, strict=True) if value is None]
    others += [value.also for value in known if value.also is not None]
    if not known or not all(value.base is known[0].base for value in known) or None in others:
        return
    also = hull(bound for bound in others if bound is not None) if others else None
    if also is None or _is_between(also, *FREE):
        small, up, down = (all(getattr(value, name) for value in known) for name in ("is_small", "is_up", "is_down"))
        steps = [value.step for value in known if value.step is not None]
        step = hull(steps) if len(steps) == len(known) else None
        tracer.recurrences[node] = Recurrence(known[0].base, small, up, down, step, also)
