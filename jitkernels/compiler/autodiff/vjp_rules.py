"""What becomes of the cotangent of a node: the rules of all operations that are not elementwise.

A rule takes a node and its cotangent, and gives one for each input, or None where none flows. The operations are
linear, or are where they choose, so a rule is the transpose of the operation.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.graph import construct, extents, linear_algebra, running
from jitkernels.graph.construct import elementwise, zeros
from jitkernels.graph.extents import same
from jitkernels.graph.ir import Node
from jitkernels.graph.matrices import product, turned
from jitkernels.graph.summing import summed_to

Transpose = Callable[[Node, Node], Sequence[Node | None]]


def where(node: Node, cotangent: Node) -> Sequence[Node | None]:
    condition, one, other = node.inputs
    return (
        None,
        summed_to(elementwise("where", condition, cotangent, 0.0), one.shape),
        summed_to(elementwise("where", condition, 0.0, cotangent), other.shape),
    )


def cast(node: Node, cotangent: Node) -> Sequence[Node | None]:
    return (construct.cast(cotangent, node.inputs[0].dtype),)


def reshape(node: Node, cotangent: Node) -> Sequence[Node | None]:
    return (construct.reshape(cotangent, node.inputs[0].shape),)


def view(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """Elements that are shown several times get the sum, those that are not shown zero."""
    given, index_map, shape = node.inputs[0], node.options["map"], node.shape
    shown = {own for _, steps in index_map for own, step in steps if not same(step, 0)}
    over = [i for i in range(len(shape)) if i not in shown and not same(shape[i], 1)]
    kept = [i for i in range(len(shape)) if i in shown]
    gone = [i for i in range(len(shape)) if i not in shown]
    if over:
        cotangent = construct.reduce("sum", cotangent, over)
        gone = [i - sum(other < i for other in over) for i in gone if i not in over]
    if gone:
        cotangent = construct.squeeze(cotangent, gone)
    index_map = tuple(
        (start, tuple((kept.index(own), step) for own, step in steps if own in shown))
        for start, steps in index_map
    )
    return (_placed_back(cotangent, given, index_map),)


def _placed_back(cotangent: Node, given: Node, index_map: Any) -> Node:
    """What a view that shows each element once at most was made of, zero elsewhere."""
    steps = [one for _, one in index_map]
    order = [
        own for one in steps for own, _ in sorted(one, key=lambda pair: _from_outermost(pair, cotangent))
    ]
    if len(order) == len(set(order)) == cotangent.ndim and all(
        _is_all(start, one, cotangent.shape, extent)
        for (start, one), extent in zip(index_map, given.shape, strict=True)
    ):
        return construct.reshape(construct.transpose(cotangent, order), given.shape)
    for one in steps:
        if len(one) > 1 and not _is_split(one, cotangent.shape):
            return _added_back(cotangent, given, index_map)
    options = {"map": index_map, "extents": cotangent.shape}
    return Node("update", (zeros(given.dtype, given.shape), cotangent), given.dtype, given.shape, options)


def _added_back(cotangent: Node, given: Node, index_map: Any) -> Node:
    """What a view was made of that shows elements several times, as sliding windows do: each gets the sum."""
    shape, places = cotangent.shape, []
    for start, steps in index_map:
        place = construct.extent(start)
        for own, step in steps:
            count = Node("iota", (), "int64", shape, {"axis": own})
            place = elementwise("add", place, elementwise("multiply", count, construct.extent(step)))
        places.append(construct.broadcast_to(place, shape))
    given_nodes = (zeros(given.dtype, given.shape), cotangent, *places)
    return Node(
        "scatter", given_nodes, given.dtype, given.shape, {"axis": 0, "adds": True, "is_inside": True}
    )


def _from_outermost(pair: Any, cotangent: Node) -> int:
    """A key that puts outermost dimensions first: those of large steps, then those of one place."""
    own, step = pair
    return -int(extents.value_of(step)) * 2 + (extents.value_of(cotangent.shape[own]) == 1)


def _is_split(steps: Any, shape: Sequence[Any]) -> bool:
    """Whether dimensions are one dimension taken apart, without gaps but for those of the whole."""
    ordered = sorted(steps, key=lambda pair: abs(extents.value_of(pair[1])))
    return all(
        _are_equal(further[1], step * shape[own]) for (own, step), further in itertools.pairwise(ordered)
    )


def _are_equal(one: Any, other: Any) -> bool:
    """Whether extents are equal, if only in calls like the one that is traced."""
    return same(one, other) or (extents.value_of(one) == extents.value_of(other) and bool(one == other))


def _is_all(start: Any, steps: Any, shape: Sequence[Any], extent: Any) -> bool:
    """Whether dimensions show all of one."""
    if not same(start, 0):
        return False
    if not steps:
        return same(extent, 1)
    count = extents.product(shape[own] for own, _ in steps)
    ordered = sorted(steps, key=lambda pair: extents.value_of(pair[1]))
    return _are_equal(count, extent) and same(ordered[0][1], 1) and _is_split(steps, shape)


def reduce(node: Node, cotangent: Node) -> Sequence[Node | None]:
    given, kind, axes = node.inputs[0], node.options["kind"], node.options["axes"]

    def spread(one: Node) -> Node:
        return construct.broadcast_to(construct.expand_dims(one, axes), given.shape)

    if kind == "sum":
        return (spread(cotangent),)
    if kind in ("min", "max"):
        chosen = elementwise("equal", given, spread(node))
        shares = elementwise("where", chosen, construct.constant(1.0, node.dtype), 0.0)
        share = elementwise("divide", cotangent, construct.reduce("sum", shares, axes))
        return (elementwise("where", chosen, spread(share), 0.0),)
    if kind == "prod":
        return (elementwise("multiply", spread(cotangent), running.others(given, axes)),)
    return (None,)


def scan(node: Node, cotangent: Node) -> Sequence[Node | None]:
    kind, axis = node.options["kind"], node.options["axis"]
    if kind == "prod":
        return (running.of_products(node, cotangent),)
    if kind in ("min", "max"):
        return (running.of_extremes(node, cotangent),)
    turned = construct.flip(cotangent, axis)
    return (construct.flip(Node("scan", (turned,), node.dtype, node.shape, node.options), axis),)


def matmul(node: Node, cotangent: Node) -> Sequence[Node | None]:
    left, right = node.inputs
    to_left = summed_to(product(cotangent, turned(right)), left.shape)
    if right.ndim == 2 and left.ndim > 2:  # one product of all rows
        rows = extents.product(left.shape[:-1])
        all_left = construct.reshape(left, (rows, left.shape[-1]))
        return to_left, product(turned(all_left), construct.reshape(cotangent, (rows, cotangent.shape[-1])))
    return to_left, summed_to(product(turned(left), cotangent), right.shape)


def concatenate(node: Node, cotangent: Node) -> Sequence[Node | None]:
    axis, found, start = node.options["axis"], [], 0
    for one in node.inputs:
        index_map = construct.identity_map(node.ndim)
        index_map[axis] = (start, ((axis, 1),))
        found.append(construct.view(cotangent, tuple(index_map), one.shape))
        start = start + one.shape[axis]
    return found


def update(node: Node, cotangent: Node) -> Sequence[Node | None]:
    index_map, value = node.options["map"], node.inputs[1]
    hidden = Node(
        "update", (cotangent, zeros(value.dtype, value.shape)), node.dtype, node.shape, node.options
    )
    return hidden, construct.view(cotangent, index_map, value.shape)


def gather(node: Node, cotangent: Node) -> Sequence[Node | None]:
    array, *indices = node.inputs
    indices = _known_inside(indices)
    given = (zeros(array.dtype, array.shape), cotangent, *indices)
    options: dict[str, Any] = {**node.options, "adds": any(one.ndim for one in indices)}
    return Node("scatter", given, array.dtype, array.shape, options), *[None] * len(indices)


def scatter(node: Node, cotangent: Node) -> Sequence[Node | None]:
    _, values, *indices = node.inputs
    indices = _known_inside(indices)
    hidden = cotangent
    if not node.options.get("adds"):
        given = (cotangent, zeros(values.dtype, values.shape), *indices)
        hidden = Node("scatter", given, node.dtype, node.shape, node.options)
    picked = _picked(cotangent, indices, node.options["axis"])
    if hidden is not cotangent and indices[0].ndim:
        picked = elementwise("where", _stays(node, indices, picked), picked, 0.0)
    return hidden, summed_to(picked, values.shape), *[None] * len(indices)


def _known_inside(indices: Sequence[Node]) -> list[Node]:
    """Numbers that were looked at on the way there, in loops and branches: without the zero that waits for that."""
    return [
        one.inputs[0] if one.operation == "add" and one.inputs[1].operation == "bounded" and one.ndim else one
        for one in indices
    ]


def _stays(node: Node, indices: Sequence[Node], values: Node) -> Node:
    """Whether each of the values is the last one that is written to its place."""
    axis, shape = node.options["axis"], construct.broadcast_shapes([one.shape for one in indices])
    count = extents.product(shape)
    numbers = construct.reshape(Node("iota", (), "int64", (count,), {"axis": 0}), shape)
    room = zeros("int64", node.shape[axis : axis + len(indices)])
    options = {"axis": 0, "is_inside": True}
    last = Node("scatter", (room, numbers, *indices), "int64", room.shape, options)
    found = elementwise("equal", _picked(last, indices, 0), numbers)
    return construct.expand_dims(found, [i for i in range(values.ndim) if not axis <= i < axis + len(shape)])


def _picked(array: Node, indices: Sequence[Node], axis: int) -> Node:
    around = construct.broadcast_shapes([one.shape for one in indices])
    shape = (*array.shape[:axis], *around, *array.shape[axis + len(indices) :])
    return Node("gather", (array, *indices), array.dtype, shape, {"axis": axis, "is_inside": True})


def call(node: Node, cotangent: Node) -> Sequence[Node | None]:
    return linear_algebra.of_call(node, {0: cotangent})


TRANSPOSES: dict[str, Transpose] = {
    "where": where, "cast": cast, "reshape": reshape, "view": view, "reduce": reduce, "scan": scan, "matmul": matmul,
    "concatenate": concatenate, "update": update, "gather": gather, "scatter": scatter, "call": call,
    "kernel": call,
}  # fmt: skip
