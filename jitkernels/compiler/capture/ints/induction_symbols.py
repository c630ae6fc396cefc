"""Symbolic extents for ints of loops: slices and rows at loop-variant positions.

A symbol stands for an induction variable, or a loop-carried int, and gets its value at the start of an iteration.
Bounds are polynomials of such symbols; the limits of the loops decide what is certain about a slice.
"""

from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.iterables import LoopRange
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.symint import as_extent, known_extent
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import dim_bounds, symbolic_dims
from jitkernels.compiler.ir.dim_proofs import larger, smaller
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Extent, Number
from jitkernels.compiler.ir.unsupported import UnknownSizeError
from jitkernels.compiler.transforms.loop_ints import INDEX_ARITHMETIC, MAX_SHIFT


def new_name(tracer: Tracer) -> str:
    """A name for the symbol of a loop's int; symbols whose names start with "s" may have any sign."""
    tracer.symbol_count += 1
    return f"sc{tracer.symbol_count}"


def note(tracer: Tracer, node: Node, loop_range: LoopRange | None = None) -> None:
    """Record the bounds of a loop's int throughout an iteration; `loop_range`: of an induction variable."""
    bounds: Any = intervals.interval(tracer, node)
    if loop_range is not None:
        first, last = (extent_of_node(tracer, as_int(tracer, limit)) for limit in loop_range[:2])
        if first is not None and last is not None:
            bounds = (first, last - 1) if loop_range.step > 0 else (last + 1, first)
    tracer.symbol_limits[node] = bounds


def is_traced_int(value: Any) -> bool:
    return type(value) is Traced and not value.ndim and value.is_scalar and value.dtype.kind in "iu"


def _is_of_region(value: Any) -> bool:
    return is_traced_int(value) and value.tracer.depth > 0 and getattr(value, "number_leaf", None) is None


def has_no_extent(value: Any) -> bool:
    """Whether a value is an int of a loop or branch that is no symbolic extent."""
    return _is_of_region(value) and extent_of_node(value.tracer, value.node) is None


def extent_of(value: Any) -> Number:
    """An int, possibly of a loop, as an extent.

    Raises UnsupportedError for values that are no polynomial of induction variables.
    """
    if not _is_of_region(value):
        return as_extent(value)
    extent = extent_of_node(value.tracer, value.node)
    if extent is None:
        raise UnknownSizeError("a slice bound or row index that is no affine function of induction variables")
    return extent


def extent_of_node(tracer: Tracer, node: Node) -> Number | None:
    """An int as an extent; None where it has none."""
    return known_extent(tracer, node, _extent_in_loop)


def _extent_in_loop(tracer: Tracer, node: Node) -> Number | None:
    """The extent of a loop's int beyond sums and products: quotients, remainders, minima and maxima."""
    if node.operation == "parameter":
        return _symbol(tracer, node)
    if node.operation not in ARITHMETIC or node.dtype != "int64":
        return None
    numbers = [extent_of_node(tracer, operand) for operand in node.inputs if operand.dtype == "int64"]
    if None in numbers:
        return None
    if node.operation == "where":
        return _extreme(tracer, node.inputs[0], *numbers)
    return ARITHMETIC[node.operation](*numbers)


def _remainder(dividend: Number, divisor: Number) -> Number | None:
    return dividend % divisor if type(divisor) is int and divisor > 0 else None


def _masked(number: Number, mask: Number) -> Number | None:
    """The low bits of a number: the remainder by a power of two."""
    is_power = type(mask) is int and 0 <= mask < 1 << MAX_SHIFT and not mask & (mask + 1)
    return number % (mask + 1) if is_power else None


ARITHMETIC: dict[str, Any] = {**INDEX_ARITHMETIC, "remainder": _remainder, "bitwise_and": _masked, "where": None}


def _extreme(tracer: Tracer, condition: Node, yes: Number, no: Number) -> Number | None:
    """``yes if condition else no`` where that is the minimum or the maximum of both."""
    if condition.operation not in ("less", "less_equal", "greater", "greater_equal"):
        return None
    left, right = (extent_of_node(tracer, operand) for operand in condition.inputs)
    if left is None or right is None:
        return None
    is_less = condition.operation.startswith("less")
    if symbolic_dims.same(left, no) and symbolic_dims.same(right, yes):
        is_less = not is_less
    elif not (symbolic_dims.same(left, yes) and symbolic_dims.same(right, no)):
        return None
    if dim_bounds.is_surely_at_least(no - yes, 0):
        return yes if is_less else no
    if dim_bounds.is_surely_at_least(yes - no, 0):
        return no if is_less else yes
    return (smaller if is_less else larger)(yes, no)


def _symbol(tracer: Tracer, node: Node) -> Extent | None:
    """The symbol of a loop's int."""
    symbol_name = node.options.get("symbol")
    if symbol_name is None:
        return None
    if symbol_name not in tracer.scope.loop_variant:
        bounds = tracer.symbol_limits.get(node)
        if bounds is None:
            return None
        high = dim_bounds.limit(bounds[1], is_upper=True)
        tracer.scope.symbol(symbol_name, max(symbolic_dims.value_of(high if high is not None else 2) // 2, 2))
        tracer.scope.loop_variant[symbol_name] = bounds
    return Extent({(symbolic_dims.Atom(symbol_name),): 1}, tracer.scope)
