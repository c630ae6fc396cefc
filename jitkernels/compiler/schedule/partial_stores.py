"""Arrays that are put together in memory: what is stored for them, each part in some region of the whole."""

from collections.abc import Iterable

from jitkernels.graph import cones
from jitkernels.graph.construct import IndexMap, contiguous, map_of_split
from jitkernels.graph.extents import Number, same, same_shape
from jitkernels.graph.ir import Graph, Node


def is_in_pieces(node: Node, graph: Graph) -> bool:
    """Whether a result is put together in memory from what else is computed."""
    if node.operation == "reshape":
        return joined(node) is not None and not is_reshaped_input(node, graph)
    return node.operation == "concatenate" or cones.changes(node)


def is_reshaped_input(node: Node, graph: Graph) -> bool:
    """Whether a node is an argument without gaps in another shape, which its memory is as well."""
    if node.operation != "reshape" or graph.writes or node in graph.outputs:
        return False
    (base,) = node.inputs
    strides = base.options.get("strides") if base.operation == "input" else ()
    return base.operation == "input" and (strides is None or same_shape(strides, contiguous(base.shape)))


def joined(node: Node) -> IndexMap | None:
    """Where a reshape that takes dimensions together has each element of its input; None if it is another."""
    return map_of_split(node.shape, node.inputs[0].shape)


BY_NUMBERS: IndexMap = ()
"""The region of what numbers place in an array."""


def pieces_of(node: Node) -> list[tuple[Node, IndexMap | None]]:
    """What is stored for such a node, each in some region; views so that each is a root of its own."""
    found: list[tuple[Node, IndexMap | None]] = []
    if node.operation == "reshape":
        (given,) = node.inputs
        return [(copied(given, given.shape), joined(node))]
    if node.operation == "update":
        base, value = node.inputs
        found.append((copied(base, node.shape), None))
        found.append((copied(value, node.options["extents"]), node.options["map"]))
        return found
    if node.operation == "scatter":
        base, value, *numbers = node.inputs
        axis = node.options["axis"]
        options = {"axis": axis, "extents": base.shape[axis : axis + len(numbers)], "adds": cones.adds(node)}
        placed = Node("placed", (value, *numbers), value.dtype, value.shape, options)
        return [(copied(base, node.shape), None), (placed, BY_NUMBERS)]
    axis, start = node.options["axis"], 0
    for one in node.inputs:
        region = tuple((start if i == axis else 0, ((i, 1),)) for i in range(one.ndim))
        found.append((copied(one, one.shape), region))
        start = start + one.shape[axis]
    return found


def copied(node: Node, shape: Iterable[Number]) -> Node:
    """All of a node, broadcast, as a root of its own."""
    wanted = tuple(shape)
    missing = len(wanted) - node.ndim
    places = tuple(
        (0, ()) if same(extent, 1) and not same(wanted[missing + i], 1) else (0, ((missing + i, 1),))
        for i, extent in enumerate(node.shape)
    )
    return Node("view", (node,), node.dtype, wanted, {"map": places})
