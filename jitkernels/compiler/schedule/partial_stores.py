"""Partial stores: arrays assembled in memory, each part stored to a region of the whole."""

from collections.abc import Iterable

from jitkernels.compiler.ir import access_map
from jitkernels.compiler.ir.builder import IndexMap, contiguous, map_of_split
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import Number, same, same_shape


def has_partial_stores(node: Node, graph: Graph) -> bool:
    """Return whether a result is assembled from partial stores."""
    if node.operation == "reshape":
        return merged_region(node) is not None and not is_reshaped_input(node, graph)
    return node.operation == "concatenate" or access_map.changes(node)


def is_reshaped_input(node: Node, graph: Graph) -> bool:
    """Return whether a node reshapes a dense argument, whose memory it can alias."""
    if node.operation != "reshape" or graph.writes or node in graph.outputs:
        return False
    (base,) = node.inputs
    strides = base.options.get("strides") if base.operation == "input" else ()
    return base.operation == "input" and (strides is None or same_shape(strides, contiguous(base.shape)))


def merged_region(node: Node) -> IndexMap | None:
    """The region of a reshape that merges dimensions; None for another reshape."""
    return map_of_split(node.shape, node.inputs[0].shape)


BY_NUMBERS: IndexMap = ()
"""The region of a scatter."""


def partial_stores_of(node: Node) -> list[tuple[Node, IndexMap | None]]:
    """The partial stores of a node, each with its region; views make each an output of its own."""
    results: list[tuple[Node, IndexMap | None]] = []
    if node.operation == "reshape":
        (source,) = node.inputs
        return [(broadcast_copy(source, source.shape), merged_region(node))]
    if node.operation == "update":
        base, value = node.inputs
        results.append((broadcast_copy(base, node.shape), None))
        results.append((broadcast_copy(value, node.options["extents"]), node.options["map"]))
        return results
    if node.operation == "scatter":
        base, value, *indices = node.inputs
        axis = node.options["axis"]
        options = {"axis": axis, "extents": base.shape[axis : axis + len(indices)], "adds": access_map.adds(node)}
        placed = Node("placed", (value, *indices), value.dtype, value.shape, options)
        return [(broadcast_copy(base, node.shape), None), (placed, BY_NUMBERS)]
    axis, start = node.options["axis"], 0
    for operand in node.inputs:
        region = tuple((start if i == axis else 0, ((i, 1),)) for i in range(operand.ndim))
        results.append((broadcast_copy(operand, operand.shape), region))
        start = start + operand.shape[axis]
    return results


def broadcast_copy(node: Node, shape: Iterable[Number]) -> Node:
    """All of a node, broadcast, as an output of its own."""
    target_shape = tuple(shape)
    missing = len(target_shape) - node.ndim
    index_map = tuple(
        (0, ()) if same(extent, 1) and not same(target_shape[missing + i], 1) else (0, ((missing + i, 1),))
        for i, extent in enumerate(node.shape)
    )
    return Node("view", (node,), node.dtype, target_shape, {"map": index_map})
