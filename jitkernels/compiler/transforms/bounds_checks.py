"""Bounds checks of gather and scatter indices, which run before anything is written.

A trace may have further checks: Python's functions of numbers raise where NumPy's do not.

A check is a scalar node that is true if the call bails out. It is computed ahead of everything that depends on it,
and determines the status of the code: the call then falls back to NumPy, which raises its own error.
"""

from collections.abc import Sequence
from typing import Any

from jitkernels.compiler.ir import access_map, builder, symbolic_dims
from jitkernels.compiler.ir import graph as ir
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import Number, same

PICKS = frozenset({"gather", "scatter"})


def with_bounds_checks(graph: Graph) -> Graph:
    """Add the bounds checks that a graph needs, without duplicates."""
    result: dict[tuple[Node, Any], Node] = {}
    for node in graph:
        if node.operation == "gather" or (node.operation == "scatter" and access_map.changes(node)):
            result |= {key: check for key, check in _checks_of(node).items() if key not in result}
    own = [node for node in graph.checks if node.operation != "constant" or node.options["value"]]
    return graph.remade(graph.outputs, graph.writes, _distinct([*result.values(), *own]))


def with_unused_gather_checks(graph: Graph, picks: Sequence[Node]) -> Graph:
    """Add checks of gathers whose result is unused: NumPy raises for their indices too."""
    nodes = list(graph)
    inside = set(nodes)
    lost = [node for node in picks if node not in inside]
    if not lost:
        return graph
    checked_anyway = {key for node in nodes if node.operation in PICKS for key in _checks_of(node)}
    own = {key: check for node in lost for key, check in _checks_of(node).items() if key not in checked_anyway}
    return graph.remade(graph.outputs, graph.writes, (*graph.checks, *own.values()))


def _checks_of(node: Node) -> dict[tuple[Node, Any], Node]:
    """The checks of a gather or scatter, by index array and extent."""
    result: dict[tuple[Node, Any], Node] = {}
    if node.options.get("is_inside"):
        return result
    axis = node.options["axis"]
    for i, operand in enumerate(node.inputs[1 if node.operation == "gather" else 2 :]):
        extent, operand = node.inputs[0].shape[axis + i], _without_broadcasts(operand)
        if not (_is_full_iota(operand, extent) or _are_declared_inside(operand, extent)):
            result[operand, symbolic_dims.key_of(extent)] = _out_of_bounds(operand, extent)
    return result


def count_gathers(graph: Graph) -> int:
    """The number of distinct gathers and scatters."""
    picks = [node for node in graph if node.operation in PICKS and not node.options.get("is_inside")]
    return len(_distinct(picks))


def _distinct(nodes: list[Node]) -> list[Node]:
    """Remove duplicate nodes (common subexpressions)."""
    if len(nodes) < 2:
        return nodes
    numbers: dict[Node, int] = {}
    known: dict[Any, int] = {}
    for node in ir.sorted_nodes(nodes):
        key = ir.key_of(node, tuple(numbers[operand] for operand in node.inputs))
        is_given = node.operation in ("input", "parameter")
        numbers[node] = known.setdefault(node if is_given else key, len(known))
    return list({numbers[node]: node for node in nodes}.values())


def _out_of_bounds(numbers: Node, extent: Number) -> Node:
    """Return whether any index is out of bounds, counted from the start or from the end."""
    below = elementwise("less", numbers, builder.extent(-extent))
    above = elementwise("greater_equal", numbers, builder.extent(extent))
    either = elementwise("logical_or", below, above)
    return builder.reduce("any", either, range(either.ndim)) if either.ndim else either


def _without_broadcasts(numbers: Node) -> Node:
    """Strip broadcasts of an index array."""
    while numbers.operation == "view" and _shows_all(numbers, numbers.inputs[0]):
        numbers = numbers.inputs[0]
    return numbers


def _shows_all(view: Node, of: Node) -> bool:
    return all(
        same(start, 0)
        and (
            same(extent, 1)
            if not steps
            else len(steps) == 1 and same(steps[0][1], 1) and same(view.shape[steps[0][0]], extent)
        )
        for (start, steps), extent in zip(view.options["map"], of.shape, strict=True)
    )


def _are_declared_inside(numbers: Node, extent: Number) -> bool:
    """Return whether indices are those that a kernel returns, and declares to be less than the extent."""
    if numbers.operation != "item" or numbers.inputs[0].operation != "kernel":
        return False
    kernel = numbers.inputs[0].options["function"]
    outputs = [argument for argument in kernel.attr.arrays if argument.role == "out"]
    low, high = outputs[numbers.options["index"]].domain if len(outputs) > numbers.options["index"] else (-1, "")
    return low == 0 and isinstance(high, str) and high in kernel.values and same(kernel.values[high], extent)


def _is_full_iota(numbers: Node, extent: Number) -> bool:
    """Return whether indices are 0, 1, ..., extent - 1."""
    return numbers.operation == "iota" and same(numbers.shape[numbers.options["axis"]], extent)
