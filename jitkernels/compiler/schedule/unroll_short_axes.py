"""Short extents written out: what has two to four elements along an axis becomes as many arrays of the rest.

Points, colours and complex numbers are arrays whose last axis is short. A loop over it fills no vector. Where such an
extent is a number of the code (see `jitkernels.frontends.arguments`):

1. A reduction over it is a chain of operations on its elements.
2. A result that cannot be computed as one long row is put together from one array for each of them.
"""

from collections.abc import Callable
from functools import reduce as folded

from jitkernels.graph import cones, construct
from jitkernels.graph.cones import Cone, is_inline, place_in
from jitkernels.graph.construct import IndexMap, elementwise
from jitkernels.graph.extents import Extent, Number, same
from jitkernels.graph.ir import Graph, Node, remade_of, transformed
from jitkernels.graph.operations import OPERATIONS
from jitkernels.graph.short import MOST

LARGEST = 300
"""Graphs of more nodes stay as they are."""
COMBINED = {
    "sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum", "any": "logical_or", "all": "logical_and",
}  # fmt: skip


Known = dict[object, tuple[Node, Node]]
"""Nodes at places: what they are there, and the nodes. In chains each would be made again for all behind."""


def unrolled(graph: Graph) -> Graph:
    """The graph with its short extents written out."""
    if len(list(graph)) > LARGEST:
        return graph
    known: Known = {}
    graph = transformed(graph, lambda node: _reduction(node, known))
    given = frozenset(id(node) for node in graph.inputs)
    return remade_of(graph, lambda node: _apart(node, given, known))


def is_short(extent: Number) -> bool:
    """Whether an extent is a number that is written out."""
    return not isinstance(extent, Extent) and 2 <= int(extent) <= MOST


def _reduction(node: Node, known: Known) -> Node:
    if node.operation != "reduce" or len(node.options["axes"]) != 1 or not is_inline(node.inputs[0]):
        return node
    (axis,), (inner,) = node.options["axes"], node.inputs
    if not is_short(inner.shape[axis]):
        return node
    parts = []
    for number in range(int(inner.shape[axis])):
        place = construct.identity_map(node.ndim)
        place.insert(axis, (number, ()))
        parts.append(at(inner, tuple(place), node.shape, known))
    kind = node.options["kind"]
    if kind in COMBINED:
        if kind in ("any", "all"):
            parts = [construct.cast(one, "bool") for one in parts]
        return folded(_combining(COMBINED[kind]), parts)
    return _found(kind, parts)


def _combining(name: str) -> Callable[[Node, Node], Node]:
    return lambda one, other: elementwise(name, one, other)


def _found(kind: str, parts: list[Node]) -> Node:
    """The number of the first element that is smaller, or larger, than all others; the first NaN before all."""
    best, where = parts[0], construct.constant(0, "int64")
    is_float = best.dtype.startswith("float")
    for number, one in enumerate(parts[1:], 1):
        better = elementwise("less" if kind == "argmin" else "greater", one, best)
        if is_float:
            strange = elementwise(
                "logical_and",
                elementwise("isnan", one),
                elementwise("logical_not", elementwise("isnan", best)),
            )
            better = elementwise("logical_or", better, strange)
        where = elementwise("where", better, construct.constant(number, "int64"), where)
        best = elementwise("where", better, one, best)
    return where


def _apart(node: Node, given: frozenset[int], known: Known) -> Node:
    """A result as one array for each element of its last axis, where it cannot be computed as one long row."""
    if node.ndim < 2 or not is_short(node.shape[-1]) or not is_inline(node) or node.operation == "view":
        return node
    cone = Cone(node, given)
    loops = frozenset(range(node.ndim))
    places = [cones.loops_of(place) for key in cone.leaves for place in cone.places[key].values()]
    if not cone.reductions and all(found in (loops, frozenset()) for found in places):
        return node
    pieces = []
    for number in range(int(node.shape[-1])):
        place = (*construct.identity_map(node.ndim - 1), (number, ()))
        pieces.append(construct.expand_dims(at(node, place, node.shape[:-1], known), [node.ndim - 1]))
    return Node("concatenate", pieces, node.dtype, node.shape, {"axis": node.ndim - 1, "named": True})


def at(node: Node, place: IndexMap, shape: tuple[Number, ...], known: Known) -> Node:
    """A node at some place, where the place is taken to what the node is computed from."""

    def taken(one: Node, where: IndexMap, extents: tuple[Number, ...]) -> Node:
        key = id(one), cones.key_of(where), tuple(map(str, extents))
        if key not in known:
            known[key] = made(one, where, extents), one
        return known[key][0]

    def made(one: Node, where: IndexMap, extents: tuple[Number, ...]) -> Node:
        if not one.shape:
            return one
        if one.operation == "view":
            return taken(one.inputs[0], place_in(one, 0, where), extents)
        used = sorted(cones.loops_of(where))
        if len(used) < len(
            extents
        ):  # what is the same along a loop is one thing, wherever it is needed there
            own = tuple(
                (start, tuple((used.index(loop), step) for loop, step in steps)) for start, steps in where
            )
            found = taken(one, own, tuple(extents[loop] for loop in used))
            return construct.view(found, tuple((0, ((loop, 1),)) for loop in used), extents)
        if one.operation == "iota":
            return _counted(one, where, extents)
        if one.operation == "reduce":
            axes = one.options["axes"]
            inner = tuple(
                (
                    start,
                    tuple(
                        (len(extents) + loop - cones.INNER if loop >= cones.INNER else loop, step)
                        for loop, step in steps
                    ),
                )
                for start, steps in place_in(one, 0, where)
            )
            over = tuple(one.inputs[0].shape[i] for i in axes)
            source = taken(one.inputs[0], inner, (*extents, *over))
            source = construct.broadcast_to(source, (*extents, *over))
            new = tuple(range(len(extents), len(extents) + len(axes)))
            return Node("reduce", (source,), one.dtype, extents, {"kind": one.options["kind"], "axes": new})
        if one.operation == "cast" or OPERATIONS[one.operation].is_elementwise:
            inputs = [taken(other, place_in(one, i, where), extents) for i, other in enumerate(one.inputs)]
            inputs = [
                construct.broadcast_to(other, extents) if one.operation == "cast" else other
                for other in inputs
            ]
            return Node(one.operation, inputs, one.dtype, extents, one.options)
        return construct.view(one, where, extents)

    return construct.broadcast_to(taken(node, place, shape), shape)


def _counted(node: Node, where: IndexMap, shape: tuple[Number, ...]) -> Node:
    start, steps = where[node.options["axis"]]
    total = construct.extent(start)
    for loop, step in steps:
        numbers = Node("iota", (), "int64", shape, {"axis": loop})
        one = numbers if same(step, 1) else elementwise("multiply", numbers, construct.extent(step))
        total = elementwise("add", total, one)
    return construct.cast(construct.broadcast_to(total, shape), node.dtype)
