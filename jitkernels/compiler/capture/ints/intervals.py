"""Interval analysis of the Python ints of loops: bounds are polynomials of extents, or plain numbers.

Within them sums do not overflow and indices need no bounds check. An int that each iteration changes by a small step
(`moves`) cannot get far in practice: even in steps of `NEAR`, `FAR` is a day away.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.symint import Whole
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import dim_bounds, symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Extent, Number

LARGEST_EXTENT, FAR, NEAR = 2**40, 2**62, 2**16
MARGIN = 2**31
Interval = tuple[Number, Number]
LEAST, MOST = -(2**63), 2**63 - 1
FREE: Interval = (-FAR, FAR)
"""The interval of an int that each iteration changes by a small step."""


def interval(tracer: Tracer, value: Any) -> Interval | None:
    """The bounds of an int, both inclusive; None where they are unknown."""
    if type(value) is bool or type(value) is int:
        return int(value), int(value)
    if type(value) is Whole:
        extent = value.extent
        low, high = (dim_bounds.limit(extent, is_upper=is_upper) for is_upper in (False, True))
        return None if low is None or high is None else (low, high)
    node = value if isinstance(value, Node) else value.node if type(value) is Traced else None
    if node is None:
        return None
    recorded = tracer.ranges.get(id(node))
    if recorded is not None:
        return recorded[1]  # type: ignore[no-any-return]
    if node.operation == "constant" and node.dtype == "int64":
        return node.options["value"], node.options["value"]
    if node.operation == "extent":
        return node.options["extent"], node.options["extent"]
    if node.dtype == "bool":
        return 0, 1
    return None


def note(tracer: Tracer, node: Node, bounds: Interval | None) -> None:
    """Record the bounds of a node, clamped to 64 bits."""
    if bounds is not None:
        low = bounds[0] if lowest(bounds[0]) >= LEAST else LEAST
        high = bounds[1] if highest(bounds[1]) <= MOST else MOST
        tracer.ranges[id(node)] = node, (low, high)


def are_same(first: Sequence[Number], second: Sequence[Number]) -> bool:
    """Whether bounds are equal in all calls."""
    return symbolic_dims.key_of_shape(first) == symbolic_dims.key_of_shape(second)


def is_small(bounds: Interval) -> bool:
    """Whether an interval lies within 64 bits by a wide margin."""
    return lowest(bounds[0]) >= -2 * FAR + MARGIN and highest(bounds[1]) <= 2 * FAR - MARGIN


def highest(extent: Number) -> int:
    """A constant upper bound of an extent."""
    if not isinstance(extent, Extent):
        return int(extent)
    return sum(_limit(monomial, count, largest=count > 0) for monomial, count in extent.terms.items())


def lowest(extent: Number) -> int:
    """A constant lower bound of an extent."""
    if not isinstance(extent, Extent):
        return int(extent)
    return sum(_limit(monomial, count, largest=count < 0) for monomial, count in extent.terms.items())


def _limit(monomial: Any, count: int, *, largest: bool) -> int:
    degree = len(monomial)
    most: int = LARGEST_EXTENT**degree
    if any(atom.operation or atom.text[0] == "s" for atom in monomial):
        return count * (most if largest else -most)
    return count * (most if largest else 1 << degree)


def is_at_most(bound: Number, limit: Number) -> bool:
    """Whether a bound is surely not above another one."""
    return is_at_least(limit - bound, 0) or highest(bound) <= lowest(limit)


def hull(all_bounds: Iterable[Interval]) -> Interval:
    """The smallest interval known to contain some intervals."""
    lows, highs = zip(*all_bounds, strict=True)
    low, high = lows[0], highs[0]
    for bound in lows[1:]:
        low = _ordered(low, bound)[0]
    for bound in highs[1:]:
        high = _ordered(high, bound)[1]
    return low, high


def extreme(first: Interval, second: Interval, *, is_min: bool) -> Interval:
    """The interval of the minimum or maximum of two ints."""
    low, high = hull((first, second))
    if is_min:
        high = second[1] if is_at_most(second[1], first[1]) else first[1]
    else:
        low = first[0] if is_at_most(second[0], first[0]) else second[0]
    return low, high


def _ordered(first: Number, second: Number) -> tuple[Number, Number]:
    """The smaller and the larger of two bounds, or constants below and above both."""
    if is_at_most(first, second):
        return first, second
    if is_at_most(second, first):
        return second, first
    return min(lowest(first), lowest(second)), max(highest(first), highest(second))


def is_at_least(extent: Number, number: int) -> bool:
    """Whether an extent is surely at least a number."""
    least = symbolic_dims.least_of(extent - number)
    return least is not None and least >= 0


def added(first: Interval | None, second: Interval | None, sign: int = 1) -> Interval | None:
    """The interval of a sum, or of a difference."""
    if first is None or second is None:
        return None
    if sign > 0:
        return first[0] + second[0], first[1] + second[1]
    return first[0] - second[1], first[1] - second[0]


def multiplied(first: Interval | None, second: Interval | None) -> Interval | None:
    """The interval of a product."""
    if first is None or second is None:
        return None
    if is_at_least(first[0], 0) and is_at_least(second[0], 0):
        return first[0] * second[0], first[1] * second[1]
    products = [a * b for a in (lowest(first[0]), highest(first[1])) for b in (lowest(second[0]), highest(second[1]))]
    return min(products), max(products)


def guarded_at_least_zero(extent: Number) -> bool:
    """Whether an extent is at least zero: surely, or in the traced call, which then becomes a guard."""
    if is_at_least(extent, 0):
        return True
    if not isinstance(extent, Extent) or extent.value < 0:
        return False
    extent.guard(extent, ">=")
    return True


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
    return None if symbolic_dims.is_moving(distance) else distance


class Move(NamedTuple):
    """How an int derives from a loop-carried one: by a small step or not, and in which directions.

    `step`: the change per iteration, if known. `also`: the interval of alternative values, as of a length reset to 0.
    """

    base: Node
    is_little: bool = True
    is_up: bool = True
    is_down: bool = True
    step: Interval | None = (0, 0)
    also: Interval | None = None


def moved(tracer: Tracer, node: Node, left: Node, right: Node, sign: int) -> None:
    """Record that a sum, or difference, is a loop-carried int plus a step."""
    for base, change in ((left, right), (right, left))[: 2 if sign > 0 else 1]:
        start, step = move_of(tracer, base), interval(tracer, change)
        if start is not None and step is not None:
            low, high = step if sign > 0 else (-step[1], -step[0])
            is_little = start.is_little and max(-lowest(low), highest(high)) <= NEAR
            is_up, is_down = start.is_up and is_at_least(low, 0), start.is_down and is_at_least(-high, 0)
            also = added(start.also, step, sign)
            if also is None or _is_near(also):
                total_step = added(start.step, (low, high))
                tracer.moves[id(node)] = node, Move(start.base, is_little, is_up, is_down, total_step, also)
            return


def move_of(tracer: Tracer, node: Node) -> Move | None:
    """How a node derives from a loop-carried int, if it does."""
    recorded = tracer.moves.get(id(node))
    return recorded[1] if recorded is not None else None


def either(tracer: Tracer, node: Node, moves: Sequence[Move | None], bounds: Sequence[Interval | None]) -> None:
    """Record that a node is one of several values, some of which derive from a loop-carried int."""
    known = [move for move in moves if move is not None]
    others = [bound for move, bound in zip(moves, bounds, strict=True) if move is None]
    others += [move.also for move in known if move.also is not None]
    if not known or not all(move.base is known[0].base for move in known) or None in others:
        return
    also = hull(move for move in others if move is not None) if others else None
    if also is None or _is_near(also):
        little, up, down = (all(getattr(move, name) for move in known) for name in ("is_little", "is_up", "is_down"))
        steps = [move.step for move in known if move.step is not None]
        step = hull(steps) if len(steps) == len(known) else None
        tracer.moves[id(node)] = node, Move(known[0].base, little, up, down, step, also)


def _is_near(bounds: Interval) -> bool:
    """Whether values that start in an interval and change by small steps stay within 64 bits."""
    return lowest(bounds[0]) >= -FAR and highest(bounds[1]) <= FAR


def within(bounds: Interval, other: Interval) -> Interval:
    """The intersection of two intervals, as narrow as is known; loop-variant bounds of `other` are ignored."""
    low, high = bounds
    return (
        other[0] if not symbolic_dims.is_moving(other[0]) and is_at_most(low, other[0]) else low,
        other[1] if not symbolic_dims.is_moving(other[1]) and is_at_most(other[1], high) else high,
    )
