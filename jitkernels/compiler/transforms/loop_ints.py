"""Ints of loops as extents: what a region knows of induction variables, its own and those of enclosing loops.

A region captures an int of an enclosing loop as a parameter of its own, and computes indices of elements from it. As
polynomials of the loops' symbols, such indices are access maps like those of views.
"""

import operator
from collections.abc import Callable, Mapping

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.dim_proofs import larger, smaller
from jitkernels.compiler.ir.graph import Graph, Node, number_of
from jitkernels.compiler.ir.regions import LoopParts
from jitkernels.compiler.ir.symbolic_dims import Atom, Extent, Number, Scope

MAX_SHIFT = 62
"""The least number of bits by which no index is shifted."""


def _quotient(dividend: Number, divisor: Number) -> Number | None:
    return dividend // divisor if type(divisor) is int and divisor > 0 else None


def _shifted(number: Number, bits: Number) -> Number | None:
    return number // (1 << bits) if type(bits) is int and 0 <= bits < MAX_SHIFT else None


INDEX_ARITHMETIC: dict[str, Callable[[Number, Number], Number | None]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "floor_divide": _quotient,
    "right_shift": _shifted,
}  # fmt: skip
CHOICES = {"greater": True, "greater_equal": True, "less": False, "less_equal": False}
"""Comparisons, and whether the left operand is the maximum where they are true."""
Ints = Mapping[Node, Number]
"""The parameters of a region that are ints of enclosing loops, as extents of the loops' symbols."""


def ints_inside(flow: Node, region: Graph, ints: Ints, scope: Scope) -> dict[Node, Number]:
    """The ints of loops that a region knows: those that it captures, and its own loop's induction variable."""
    if flow.operation == "branch":
        captured = zip(region.inputs, flow.inputs[1:], strict=True)
    else:
        parts = LoopParts(flow)
        first = parts.first_parameter + parts.carried_count
        captured = zip(region.inputs[first:], parts.captured, strict=True)
    known = {parameter: int_of(operand, ints) for parameter, operand in captured if not parameter.ndim}
    if flow.operation == "loop" and parts.counts:
        known[region.inputs[0]] = _induction_symbol(parts, ints, scope)
    return {parameter: number for parameter, number in known.items() if number is not None}


def with_carried_ints(region: Graph, ints: Ints, scope: Scope) -> dict[Node, Number]:
    """The ints that a region knows, and those that its loop carries, if these have symbols with bounds."""
    names = {node: str(node.options.get("symbol", "")) for node in region.inputs}
    carried = {node: Extent({(Atom(name),): 1}, scope) for node, name in names.items() if name in scope.loop_variant}
    return {**carried, **ints}


def _induction_symbol(parts: LoopParts, ints: Ints, scope: Scope) -> Extent | None:
    """The symbol of an induction variable, if it has one and its limits are extents."""
    name = parts.induction[0].options.get("symbol")
    begin, end, step = (int_of(bound, ints) for bound in parts.bounds)
    if not name or begin is None or end is None or not isinstance(step, int):
        return None
    if name not in scope.loop_variant:
        scope.loop_variant[name] = (begin, end - 1) if step > 0 else (end + 1, begin)
        scope.symbol(name, max(symbolic_dims.value_of(scope.loop_variant[name][1]) // 2, 2))
    return Extent({(Atom(name),): 1}, scope)


def int_of(node: Node, ints: Ints) -> Number | None:
    """A 0-d node as an extent of loops' symbols; None where it is none."""
    if node in ints:
        return ints[node]
    if node.operation == "where" and node.dtype == "int64" and not node.ndim:
        return _extreme_of(node, ints)
    if node.operation not in INDEX_ARITHMETIC or node.dtype != "int64" or node.ndim:
        return number_of(node)
    left, right = (int_of(operand, ints) for operand in node.inputs)
    return None if left is None or right is None else INDEX_ARITHMETIC[node.operation](left, right)


def _extreme_of(node: Node, ints: Ints) -> Number | None:
    """The maximum or minimum that Python's `max` or `min` of two ints is; None for other choices."""
    condition, yes, no = node.inputs
    if condition.operation not in CHOICES:
        return None
    left, right, first, second = (int_of(one, ints) for one in (*condition.inputs, yes, no))
    if left is None or right is None or first is None or second is None:
        return None
    if symbolic_dims.same(left, first) and symbolic_dims.same(right, second):
        is_max = CHOICES[condition.operation]
    elif symbolic_dims.same(left, second) and symbolic_dims.same(right, first):
        is_max = not CHOICES[condition.operation]
    else:
        return None
    return (larger if is_max else smaller)(left, right)
