"""Unroll short axes: an array with two to four elements along an axis becomes as many arrays of the other axes.

Points, colours and complex numbers are arrays whose last axis is short. A loop over it fills no vector. Where such an
extent is static (see `jitkernels.compiler.capture.pytree.flatten`):

1. A reduction over it is a chain of operations on its elements.
2. A result that cannot be computed as one long row is concatenated from one array per element.
"""

from functools import partial
from functools import reduce as folded

from jitkernels.compiler.ir import access_map, builder
from jitkernels.compiler.ir.access_map import operand_access_map
from jitkernels.compiler.ir.builder import IndexMap, elementwise
from jitkernels.compiler.ir.graph import Graph, Node, rebuild_roots, transformed
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.static_dim_policy import MAX_STATIC_EXTENT
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same
from jitkernels.compiler.schedule.fusion_region import FusionRegion, is_inline

MAX_UNROLLED_GRAPH_NODES = 300
"""The most nodes of a graph that is unrolled."""
COMBINED = {
    "sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum", "any": "logical_or", "all": "logical_and",
}  # fmt: skip


Known = dict[object, Node]
"""Memo table of nodes at access maps: chains would otherwise take quadratic time."""


def unroll_short_axes(graph: Graph) -> Graph:
    if len(list(graph)) > MAX_UNROLLED_GRAPH_NODES:
        return graph
    memo: Known = {}
    graph = transformed(graph, lambda node: _reduction(node, memo))
    inputs = frozenset(graph.inputs)
    return rebuild_roots(graph, lambda node: _split(node, inputs, memo))


def is_short(extent: Number) -> bool:
    """Return whether an extent is static and short."""
    return not isinstance(extent, Extent) and 2 <= int(extent) <= MAX_STATIC_EXTENT


def _reduction(node: Node, memo: Known) -> Node:
    if node.operation != "reduce" or len(node.options["axes"]) != 1 or not is_inline(node.inputs[0]):
        return node
    (axis,), (inner,) = node.options["axes"], node.inputs
    if not is_short(inner.shape[axis]):
        return node
    parts = []
    for element in range(int(inner.shape[axis])):
        index_map = builder.identity_map(node.ndim)
        index_map.insert(axis, (element, ()))
        parts.append(at(inner, tuple(index_map), node.shape, memo))
    kind = node.options["kind"]
    if kind in COMBINED:
        if kind in ("any", "all"):
            parts = [builder.cast(part, "bool") for part in parts]
        return folded(partial(elementwise, COMBINED[kind]), parts)
    return _arg_extreme(kind, parts)


def _arg_extreme(kind: str, parts: list[Node]) -> Node:
    """The index of the first smallest or largest element; the first NaN before all."""
    best, where = parts[0], builder.constant(0, "int64")
    is_float = best.dtype.startswith("float")
    for index, part in enumerate(parts[1:], 1):
        better = elementwise("less" if kind == "argmin" else "greater", part, best)
        if is_float:
            is_new_nan = elementwise(
                "logical_and", elementwise("isnan", part), elementwise("logical_not", elementwise("isnan", best))
            )
            better = elementwise("logical_or", better, is_new_nan)
        where = elementwise("where", better, builder.constant(index, "int64"), where)
        best = elementwise("where", better, part, best)
    return where


def _split(node: Node, inputs: frozenset[Node], memo: Known) -> Node:
    """Split a result along its last axis, where it cannot be computed as one long row."""
    if node.ndim < 2 or not is_short(node.shape[-1]) or not is_inline(node) or node.operation == "view":
        return node
    region = FusionRegion(node, inputs)
    loops = frozenset(range(node.ndim))
    loops_read = [
        access_map.loops_of(index_map) for leaf in region.leaves for index_map in region.access_maps[leaf].values()
    ]
    if not region.reductions and all(loops_ in (loops, frozenset()) for loops_ in loops_read):
        return node
    parts = []
    for element in range(int(node.shape[-1])):
        index_map = (*builder.identity_map(node.ndim - 1), (element, ()))
        parts.append(builder.expand_dims(at(node, index_map, node.shape[:-1], memo), [node.ndim - 1]))
    return Node("concatenate", parts, node.dtype, node.shape, {"axis": node.ndim - 1, "named": True})


def at(node: Node, index_map: IndexMap, shape: tuple[Number, ...], memo: Known) -> Node:
    """Return a node at an access map, which is composed into the nodes that it is computed from."""

    def mapped(current: Node, where: IndexMap, extents: tuple[Number, ...]) -> Node:
        key = current, access_map.key_of(where), tuple(map(str, extents))
        if key not in memo:
            memo[key] = compute(current, where, extents)
        return memo[key]

    def compute(current: Node, where: IndexMap, extents: tuple[Number, ...]) -> Node:
        if not current.shape:
            return current
        if current.operation == "view":
            return mapped(current.inputs[0], operand_access_map(current, 0, where), extents)
        used = sorted(access_map.loops_of(where))
        if len(used) < len(extents):  # loop-invariant values are computed without that loop
            own = tuple(
                (start, tuple((used.index(loop), coefficient) for loop, coefficient in terms)) for start, terms in where
            )
            result = mapped(current, own, tuple(extents[loop] for loop in used))
            return builder.view(result, tuple((0, ((loop, 1),)) for loop in used), extents)
        if current.operation == "iota":
            return _iota(current, where, extents)
        if current.operation == "reduce":
            axes = current.options["axes"]
            inner = tuple(
                (
                    start,
                    tuple(
                        (len(extents) + loop - access_map.INNER if loop >= access_map.INNER else loop, coefficient)
                        for loop, coefficient in terms
                    ),
                )
                for start, terms in operand_access_map(current, 0, where)
            )
            over = tuple(current.inputs[0].shape[i] for i in axes)
            source = mapped(current.inputs[0], inner, (*extents, *over))
            source = builder.broadcast_to(source, (*extents, *over))
            new = tuple(range(len(extents), len(extents) + len(axes)))
            return Node("reduce", (source,), current.dtype, extents, {"kind": current.options["kind"], "axes": new})
        if current.operation == "cast" or OPERATIONS[current.operation].is_elementwise:
            inputs = [
                mapped(one, operand_access_map(current, i, where), extents) for i, one in enumerate(current.inputs)
            ]
            if current.operation == "cast":
                inputs = [builder.broadcast_to(inputs[0], extents)]
            return Node(current.operation, inputs, current.dtype, extents, current.options)
        return builder.view(current, where, extents)

    return builder.broadcast_to(mapped(node, index_map, shape), shape)


def _iota(node: Node, index_map: IndexMap, shape: tuple[Number, ...]) -> Node:
    start, terms = index_map[node.options["axis"]]
    total = builder.extent(start)
    for loop, coefficient in terms:
        numbers = Node("iota", (), "int64", shape, {"axis": loop})
        term = numbers if same(coefficient, 1) else elementwise("multiply", numbers, builder.extent(coefficient))
        total = elementwise("add", total, term)
    return builder.cast(builder.broadcast_to(total, shape), node.dtype)
