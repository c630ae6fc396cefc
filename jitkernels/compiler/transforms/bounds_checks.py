"""What is refused for the values that are given, found before anything is written: numbers beside an array.

Beside these a trace may have checks of its own: Python's functions of numbers raise where NumPy's do not.

A check is a node without dimensions that is true where a call is refused. It is computed ahead of all that depends on
it, and is the status of the code: then NumPy computes, which raises what it raises.
"""

from collections.abc import Sequence
from typing import Any

from jitkernels.graph import cones, construct, extents, ir
from jitkernels.graph.construct import elementwise
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Graph, Node

PICKS = frozenset({"gather", "scatter"})


def checks_of(node: Node) -> list[Node]:
    """What has to be looked at before a node picks elements, or places them."""
    given, axis = node.inputs[1 if node.operation == "gather" else 2 :], node.options["axis"]
    sizes = node.inputs[0].shape[axis:]
    return [_is_beside(numbers, extent) for numbers, extent in zip(given, sizes, strict=False)]


def checked(graph: Graph) -> Graph:
    """The graph with the checks that it needs, each before what only comes behind the elements that it is about."""
    found: dict[tuple[int, Any], Node] = {}
    for node in graph:
        if node.operation == "gather" or (node.operation == "scatter" and cones.changes(node)):
            found |= {key: one for key, one in _of(node).items() if key not in found}
    own = [node for node in graph.checks if node.operation != "constant" or node.options["value"]]
    return graph.remade(graph.outputs, graph.writes, _distinct([*found.values(), *own]))


def with_picks(graph: Graph, picks: Sequence[Node]) -> Graph:
    """The graph with checks of what picks elements by numbers for nothing: NumPy refuses those that lie beside."""
    nodes = list(graph)
    inside = {id(node) for node in nodes}
    lost = [node for node in picks if id(node) not in inside]
    if not lost:
        return graph
    checked_anyway = {key for node in nodes if node.operation in PICKS for key in _of(node)}
    own = {key: one for node in lost for key, one in _of(node).items() if key not in checked_anyway}
    return graph.remade(graph.outputs, graph.writes, (*graph.checks, *own.values()))


def _of(node: Node) -> dict[tuple[int, Any], Node]:
    """What is refused of a node that picks or places elements, by the numbers and the extent."""
    found: dict[tuple[int, Any], Node] = {}
    if node.options.get("is_inside"):
        return found
    axis = node.options["axis"]
    for i, numbers in enumerate(node.inputs[1 if node.operation == "gather" else 2 :]):
        extent, numbers = node.inputs[0].shape[axis + i], _without_repeats(numbers)
        if not _is_count(numbers, extent):
            found[id(numbers), extents.key_of(extent)] = _is_beside(numbers, extent)
    return found


def picks_in(graph: Graph) -> int:
    """How many different nodes pick elements by numbers, or place them."""
    picks = [node for node in graph if node.operation in PICKS and not node.options.get("is_inside")]
    return len(_distinct(picks))


def _distinct(nodes: list[Node]) -> list[Node]:
    """Nodes without those that compute what others do."""
    if len(nodes) < 2:
        return nodes
    numbers: dict[int, int] = {}
    known: dict[Any, int] = {}
    for node in ir.sorted_nodes(nodes):
        key = ir.key_of(node, tuple(numbers[id(one)] for one in node.inputs))
        is_given = node.operation in ("input", "parameter")
        numbers[id(node)] = known.setdefault(id(node) if is_given else key, len(known))
    return list({numbers[id(node)]: node for node in nodes}.values())


def _is_beside(numbers: Node, extent: Number) -> Node:
    """Whether any number is none of an element, counted from the start or from the end."""
    below = elementwise("less", numbers, construct.extent(-extent))
    above = elementwise("greater_equal", numbers, construct.extent(extent))
    either = elementwise("logical_or", below, above)
    return construct.reduce("any", either, range(either.ndim)) if either.ndim else either


def _without_repeats(numbers: Node) -> Node:
    """What is broadcast, as it was before."""
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


def _is_count(numbers: Node, extent: Number) -> bool:
    """Whether the numbers count the elements from the first on."""
    return numbers.operation == "iota" and same(numbers.shape[numbers.options["axis"]], extent)
