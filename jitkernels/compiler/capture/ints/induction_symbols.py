"""Slices and rows whose places loops count: ints of a loop as extents, which have another value in each round.

A symbol stands for the count of a loop, or an int that it carries, and gets its value where a round begins. Bounds are
polynomials of such symbols; what is sure about a slice follows from the limits of the loops.
"""

from typing import Any

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.flow.along import Count
from jitkernels.frontends.flow.ints import as_int
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.whole import as_extent
from jitkernels.graph import extents, limits
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Extent, Number
from jitkernels.graph.ir import Node


def name(tracer: Tracer) -> str:
    """A name for the symbol of an int of a loop; those of symbols with "s" may be of any ints."""
    tracer.named += 1
    return f"sc{tracer.named}"


def note(tracer: Tracer, node: Node, count: Count | None = None) -> None:
    """Remember between which bounds an int of a loop lies in all of a round: those of the count, if it is that."""
    first, last = (known(tracer, as_int(tracer, one)) for one in count[:2]) if count else (None, None)
    if count is not None and first is not None and last is not None:
        found: Any = (first, last - 1) if count.step > 0 else (last + 1, first)
    else:
        found = ranges.interval(tracer, node)
    tracer.limits[id(node)] = node, found


def is_counted(value: Any) -> bool:
    """Whether a value is an int of a loop."""
    return type(value) is Traced and not value.ndim and value.is_scalar and value.dtype == "int64"


def is_computed(value: Any) -> bool:
    """Whether a value is an int of a loop or branch that is no extent."""
    if not is_counted(value) or not value.tracer.depth or getattr(value, "number_leaf", None) is not None:
        return False
    return known(value.tracer, value.node) is None


def as_number(value: Any) -> Number:
    """An int, also one of a loop, as an extent. Raises UnknownError for what is computed in other ways."""
    if not is_counted(value) or not value.tracer.depth or getattr(value, "number_leaf", None) is not None:
        return as_extent(value)
    found = known(value.tracer, value.node)
    if found is None:
        raise UnknownError("a bound or an index of rows that is no sum of counts of loops")
    return found


def known(tracer: Tracer, node: Node) -> Number | None:
    """An int as an extent; None where it is none."""
    if node.operation == "constant":
        return int(node.options["value"])
    if node.operation == "extent":
        found: Number = node.options["extent"]
        return found
    if node.operation == "parameter":
        return _symbol(tracer, node)
    if node.operation in ("add", "subtract", "multiply") and node.dtype == "int64":
        one, other = (known(tracer, given) for given in node.inputs)
        if one is None or other is None:
            return None
        return (
            one + other
            if node.operation == "add"
            else one - other
            if node.operation == "subtract"
            else one * other
        )
    return None


def _symbol(tracer: Tracer, node: Node) -> Extent | None:
    """The symbol of an int of a loop."""
    own = node.options.get("symbol")
    if own is None:
        return None
    if own not in tracer.scope.moving:
        _, found = tracer.limits.get(id(node), (node, None))
        if found is None:
            return None
        high = limits.limit(found[1], is_upper=True)
        tracer.scope.symbol(own, max(extents.value_of(high if high is not None else 2) // 2, 2))
        tracer.scope.moving[own] = found
    return Extent({(extents.Atom(own),): 1}, tracer.scope)
