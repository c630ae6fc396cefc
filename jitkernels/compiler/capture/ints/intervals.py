"""Between which bounds the Python ints of loops lie: polynomials of extents, or plain numbers.

In these no sum overflows, and an index needs no test. An int that rounds move by little (`moves`) cannot get far in the
time there is: even in steps of `NEAR`, `FAR` is a day away.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.whole import Whole
from jitkernels.graph import extents, limits
from jitkernels.graph.extents import Extent, Number
from jitkernels.graph.ir import Node

LARGEST_EXTENT, FAR, NEAR = 2**40, 2**62, 2**16
MARGIN = 2**31
Interval = tuple[Number, Number]
LEAST, MOST = -(2**63), 2**63 - 1
FREE: Interval = (-FAR, FAR)
"""Where an int lies that moves by little in each round."""


def interval(tracer: Tracer, value: Any) -> Interval | None:
    """The bounds of an int, both included; None where they are not known."""
    if type(value) is bool or type(value) is int:
        return int(value), int(value)
    if type(value) is Whole:
        extent = value.extent
        low, high = (limits.limit(extent, is_upper=one) for one in (False, True))
        return None if low is None or high is None else (low, high)
    node = value if isinstance(value, Node) else value.node if type(value) is Traced else None
    if node is None:
        return None
    found = tracer.ranges.get(id(node))
    if found is not None:
        return found[1]  # type: ignore[no-any-return]
    if node.operation == "constant" and node.dtype == "int64":
        return node.options["value"], node.options["value"]
    if node.operation == "extent":
        return node.options["extent"], node.options["extent"]
    if node.dtype == "bool":
        return 0, 1
    return None


def note(tracer: Tracer, node: Node, found: Interval | None) -> None:
    """Remember the bounds of a node, which does not need more than 64 bits."""
    if found is not None:
        low = found[0] if lowest(found[0]) >= LEAST else LEAST
        high = found[1] if highest(found[1]) <= MOST else MOST
        tracer.ranges[id(node)] = node, (low, high)


def are_same(one: Sequence[Number], other: Sequence[Number]) -> bool:
    """Whether bounds are equal for all calls."""
    return extents.key_of_shape(one) == extents.key_of_shape(other)


def is_small(found: Interval) -> bool:
    """Whether all of an interval is within 64 bits, by far."""
    return lowest(found[0]) >= -2 * FAR + MARGIN and highest(found[1]) <= 2 * FAR - MARGIN


def highest(extent: Number) -> int:
    """A number that an extent does not exceed."""
    if not isinstance(extent, Extent):
        return int(extent)
    return sum(_limit(monomial, count, largest=count > 0) for monomial, count in extent.terms.items())


def lowest(extent: Number) -> int:
    """A number that an extent does not fall below."""
    if not isinstance(extent, Extent):
        return int(extent)
    return sum(_limit(monomial, count, largest=count < 0) for monomial, count in extent.terms.items())


def _limit(monomial: Any, count: int, *, largest: bool) -> int:
    degree = len(monomial)
    most: int = LARGEST_EXTENT**degree
    if any(atom.operation or atom.text[0] == "s" for atom in monomial):
        return count * (most if largest else -most)
    return count * (most if largest else 1 << degree)


def is_no_more(one: Number, other: Number) -> bool:
    """Whether a bound is surely not above another one."""
    return is_at_least(other - one, 0) or highest(one) <= lowest(other)


def hull(found: Iterable[Interval]) -> Interval:
    """The bounds of what lies in one of some intervals."""
    lows, highs = zip(*found, strict=True)
    low, high = lows[0], highs[0]
    for one in lows[1:]:
        low = _ordered(low, one)[0]
    for one in highs[1:]:
        high = _ordered(high, one)[1]
    return low, high


def _ordered(one: Number, other: Number) -> tuple[Number, Number]:
    """The smaller and the larger of two bounds, or numbers that are below and above both."""
    if is_no_more(one, other):
        return one, other
    if is_no_more(other, one):
        return other, one
    return min(lowest(one), lowest(other)), max(highest(one), highest(other))


def is_at_least(extent: Number, number: int) -> bool:
    """Whether an extent is surely no less than a number."""
    least = extents.least_of(extent - number)
    return least is not None and least >= 0


def added(one: Interval | None, other: Interval | None, sign: int = 1) -> Interval | None:
    """The bounds of sums, or of differences."""
    if one is None or other is None:
        return None
    if sign > 0:
        return one[0] + other[0], one[1] + other[1]
    return one[0] - other[1], one[1] - other[0]


def multiplied(one: Interval | None, other: Interval | None) -> Interval | None:
    """The bounds of products."""
    if one is None or other is None:
        return None
    if is_at_least(one[0], 0) and is_at_least(other[0], 0):
        return one[0] * other[0], one[1] * other[1]
    found = [a * b for a in (lowest(one[0]), highest(one[1])) for b in (lowest(other[0]), highest(other[1]))]
    return min(found), max(found)


def guarded_at_least_zero(extent: Number) -> bool:
    """Whether an extent is no less than zero: surely, or in the call that is traced, for which the code is then."""
    if is_at_least(extent, 0):
        return True
    if not isinstance(extent, Extent) or extent.value < 0:
        return False
    extent.guard(extent, ">=")
    return True


def counted(begin: Any, end: Any, step: int) -> Interval | None:
    """The bounds of what a range gives, from those of its limits."""
    if begin is None or end is None:
        return None
    return (begin[0], end[1] - 1) if step > 0 else (end[0] + 1, begin[1])


def most_rounds(tracer: Tracer, begin: Any, end: Any, step: int) -> Number | None:
    """A number that the rounds of a range do not exceed, if there are any; None where that is not known."""
    one, other = interval(tracer, begin), interval(tracer, end)
    if one is None or other is None:
        return None
    apart = other[1] - one[0] if step > 0 else one[1] - other[0]
    return None if extents.is_moving(apart) else apart


class Move(NamedTuple):
    """How an int follows from a carried one: by little, and in which directions at most.

    `step`: by how much in a round, if that is known. `also`: the bounds of what it may be instead, as a length that
    begins again at 0.
    """

    base: Node
    is_little: bool = True
    is_up: bool = True
    is_down: bool = True
    step: Interval | None = (0, 0)
    also: Interval | None = None


def moved(tracer: Tracer, node: Node, one: Node, other: Node, sign: int) -> None:
    """Remember that a sum, or difference, is a carried int that has moved."""
    for base, by in ((one, other), (other, one))[: 2 if sign > 0 else 1]:
        start, step = move_of(tracer, base), interval(tracer, by)
        if start is not None and step is not None:
            low, high = step if sign > 0 else (-step[1], -step[0])
            is_little = start.is_little and max(-lowest(low), highest(high)) <= NEAR
            is_up, is_down = start.is_up and is_at_least(low, 0), start.is_down and is_at_least(-high, 0)
            also = added(start.also, step, sign)
            if also is None or _is_near(also):
                whole = added(start.step, (low, high))
                tracer.moves[id(node)] = node, Move(start.base, is_little, is_up, is_down, whole, also)
            return


def move_of(tracer: Tracer, node: Node) -> Move | None:
    """How a node follows from a carried int, if it does."""
    found = tracer.moves.get(id(node))
    return found[1] if found is not None else None


def either(
    tracer: Tracer, node: Node, moves: Sequence[Move | None], bounds: Sequence[Interval | None]
) -> None:
    """Remember that a node is one of some of which some follow from a carried int."""
    known = [one for one in moves if one is not None]
    others = [found for one, found in zip(moves, bounds, strict=True) if one is None]
    others += [one.also for one in known if one.also is not None]
    if not known or not all(one.base is known[0].base for one in known) or None in others:
        return
    also = hull(one for one in others if one is not None) if others else None
    if also is None or _is_near(also):
        little, up, down = (
            all(getattr(one, name) for one in known) for name in ("is_little", "is_up", "is_down")
        )
        steps = [one.step for one in known if one.step is not None]
        step = hull(steps) if len(steps) == len(known) else None
        tracer.moves[id(node)] = node, Move(known[0].base, little, up, down, step, also)


def _is_near(found: Interval) -> bool:
    """Whether bounds are such that what moves by little from there does not get out of 64 bits."""
    return lowest(found[0]) >= -FAR and highest(found[1]) <= FAR


def within(found: Interval, other: Interval) -> Interval:
    """Bounds of what lies in both of two intervals, as narrow as can be told; none of a round from the other one."""
    low, high = found
    return (
        other[0] if not extents.is_moving(other[0]) and is_no_more(low, other[0]) else low,
        other[1] if not extents.is_moving(other[1]) and is_no_more(other[1], high) else high,
    )
